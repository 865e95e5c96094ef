"""Links between entities: 1:1 and 1:n, by fields that are equal; and copies of fields along a link."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.conditions import Compared, Condition
from lazulite_patterns.entities.errors import SchemaError
from lazulite_patterns.entities.fields import Property, get
from lazulite_patterns.entities.registry import schema_of

H = TypeVar("H")
T = TypeVar("T")


class Ref(Generic[H, T]):
    """A link from entities of one class, the holders, to those of another, the targets.

    `Ref(Employee, Department, name="department")`: the field `name` of a department is the field `department` of its
    employees. Each holder has one target at most; a target has any number of holders.

    Attributes:
        holder: the class that has the link.
        target: the class that it leads to.
        fields: of the target, each with the field of the holder that has its value.
    """

    def __init__(self, holder: type[H], target: type[T], /, **fields: str) -> None:
        """Declare a link.

        Args:
            holder: a class that is declared with `entity`.
            target: a class that is declared with `entity`.
            fields: all fields of the target that are part of its keys, each with a field of the holder.

        Raises:
            SchemaError: a field is unknown, or a part of the target's keys has none.
        """
        self.holder, self.target, self.fields = holder, target, fields
        self._schema = schema_of(target)
        known = {each.name for each in schema_of(holder).shape.fields}
        if unknown := set(fields.values()) - known:
            raise SchemaError(f"{holder.__name__} has no field {min(unknown)}")
        components = dict(self._schema.partition.components + self._schema.row.components)
        given = {name for name, each in components.items() if each.given}
        if given != set(fields):
            raise SchemaError(f"{target.__name__}: a link names the fields of its keys, which are {sorted(given)}")

    def key(self, holder: H) -> EntityKey | None:
        """Return the keys of a holder's target; None if a field of the link is None."""
        values = {name: get(holder, field) for name, field in self.fields.items()}
        return None if None in values.values() else self._schema.key_of(values)

    def holders(self, target: T) -> tuple[Condition, ...]:
        """Return the conditions that the holders of a target fulfil: `table.where(*link.holders(department))`."""
        return tuple(Compared(self.holder, field, "eq", get(target, name)) for name, field in self.fields.items())


@dataclass(frozen=True, init=False)
class Copied(Generic[H, T]):
    """Fields of a target that its holders have copies of: `Copied(manages, manager_name="name")`.

    Attributes:
        ref: the link.
        properties: of the holder, each with the property of the target that it is a copy of.
    """

    ref: Ref[H, T]
    properties: dict[str, str]

    def __init__(self, ref: Ref[H, T], /, **fields: str) -> None:
        """Declare copies.

        Args:
            ref: the link.
            fields: of the holder, which may be None, each with the field of the target that it is a copy of.

        Raises:
            SchemaError: a field is no property, or both are of different types.
        """
        properties = {}
        for copy, original in fields.items():
            mine, its = _property(ref.holder, copy), _property(ref.target, original)
            if mine.type.edm != its.type.edm or not mine.field.optional:
                raise SchemaError(f"{ref.holder.__name__}.{copy}: a copy is of the same type as {original}, or None")
            if copy in ref.fields.values():
                raise SchemaError(f"{ref.holder.__name__}.{copy}: it is a part of the link")
            properties[mine.name] = its.name
        object.__setattr__(self, "ref", ref)
        object.__setattr__(self, "properties", properties)


def _property(cls: type, name: str) -> Property:
    found = next((each for each in schema_of(cls).shape.properties if each.field.name == name), None)
    if found is None:
        raise SchemaError(f"{cls.__name__}.{name} is no field that is a property")
    return found
