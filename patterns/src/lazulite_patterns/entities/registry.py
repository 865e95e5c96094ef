"""Classes that are entities, and several of them in one table."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Generic, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, is_typeddict

import msgspec

from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.entities.columns import checked
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.rows_read import make_room
from lazulite_patterns.entities.schema import RESERVED, TYPE, Schema, Upgrade
from lazulite_patterns.keys.components import Component

E = TypeVar("E")
Class = TypeVar("Class", bound=type)
_schemas: dict[type, Schema[Any]] = {}


@dataclass_transform()
def entity(
    *,
    type: str | None = None,  # noqa: A002 - the name of the property
    version: int = 1,
    partition: Sequence[object] = (),
    row: Sequence[object] = (),
) -> Callable[[Class], Class]:
    """Declare a class of entities: a dataclass, `msgspec.Struct`, TypedDict or pydantic model.

    A class that is none of these becomes a dataclass.

    Args:
        type: the name in the property `_Type`; the class's name if it is None.
        version: of the class, in the property `_Version`; `upgrade` lifts entities of earlier ones.
        partition: components before the fields of the PartitionKey, such as `[bucket(16, by="device")]`.
        row: components before the fields of the RowKey.

    Raises:
        SchemaError: a field cannot be stored, or a key has no field, or instances have no room for the row that they
            were read from: a dataclass with `slots=True`, a Struct without `dict=True`.
    """
    return lambda cls: _declared(cls, type, version, checked(partition), checked(row))


def _declared(
    cls: Class, type_name: str | None, version: int, partition: tuple[Component, ...], row: tuple[Component, ...]
) -> Class:
    known = dataclasses.is_dataclass(cls) or is_typeddict(cls) or hasattr(cls, "model_fields")
    if not known and not issubclass(cls, msgspec.Struct):
        dataclasses.dataclass(cls)
    make_room(cls)
    if version < 1:
        raise SchemaError(f"{cls.__name__}: versions begin with 1")
    _schemas[cls] = Schema(cls, cls.__name__ if type_name is None else type_name, version, partition, row)
    return cls


def upgrade(cls: type[object], version: int) -> Callable[[Upgrade], Upgrade]:
    """Declare the function that lifts the properties of a version to the next one. It is called on each read.

    Args:
        cls: the class of entities.
        version: the version that the function takes.

    Raises:
        SchemaError: the class has no such earlier version, or it has a function.
    """
    schema = schema_of(cls)
    if not 1 <= version < schema.version or version in schema.upgrades:
        raise SchemaError(f"{cls.__name__}: version {version} is not to be upgraded, or is already")

    def declare(function: Upgrade) -> Upgrade:
        schema.upgrades[version] = function
        return function

    return declare


def schema_of(cls: type[E]) -> Schema[E]:
    """Return the schema of a class.

    Raises:
        SchemaError: the class is not declared with `entity`.
    """
    if (found := _schemas.get(cls)) is None:
        raise SchemaError(f"{getattr(cls, '__name__', cls)} is not declared with @entity")
    return cast(Schema[E], found)


class Schemas(Generic[E]):
    """The classes of a table's entities."""

    def __init__(self, kinds: type[E] | UnionType) -> None:
        """Take a class or a union of classes: `Employee | Department`.

        Raises:
            SchemaError: a class is no entity, or two have the same type.
        """
        classes = get_args(kinds) if get_origin(kinds) in {Union, UnionType} else (kinds,)
        self._by_class: dict[type, Schema[Any]] = {each: schema_of(each) for each in classes}
        self._by_type = {each.type_name: each for each in self._by_class.values()}
        if len(self._by_type) < len(self._by_class):
            raise SchemaError("two classes of a table have the same type")

    @property
    def several(self) -> bool:
        """Whether there are several classes."""
        return len(self._by_class) > 1

    @property
    def only(self) -> Schema[E]:
        """The schema of a table's only class."""
        (found,) = self._by_class.values()
        return found

    def of(self, entity: E) -> Schema[E]:
        """Return the schema of an entity. The only class of a table may be a TypedDict, whose entities are mappings.

        Raises:
            EntityValueError: the entity is of no class of the table.
        """
        if (found := self._by_class.get(type(entity))) is not None:
            return found
        if len(self._by_class) == 1 and isinstance(entity, dict) and is_typeddict(next(iter(self._by_class))):
            return next(iter(self._by_class.values()))
        raise EntityValueError(f"the table has no entities of class {type(entity).__name__}")

    def absent(self, names: frozenset[str]) -> frozenset[str]:
        """Return those of some names that no class has as a property; none if a class takes any."""
        if any(each.shape.extra is not None for each in self._by_class.values()):
            return names & RESERVED
        return names.difference(*(each.names for each in self._by_class.values()))

    def partial(self, key: EntityKey, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of some fields of the entity with these keys, for a merge.

        Raises:
            EntityValueError: the keys are not those of one class, or a field is wrong.
        """
        row = Stored({"PartitionKey": key.partition_key, "RowKey": key.row_key}, "")
        fitting = [each for each in self._by_type.values() if each.has(row)]
        if len(fitting) != 1:
            raise EntityValueError(f"{key} are not the keys of one class of the table")
        return fitting[0].partial(fields)

    def decode(self, stored: Stored) -> E:
        """Return the entity of a row: of the class that `_Type` names, or whose keys fit if the row has no type.

        Raises:
            EntityFormatError: no class fits, or several ones.
        """
        name = stored.properties.get(TYPE)
        fitting = [each for each in self._by_type.values() if each.has(stored)]
        if len(fitting) != 1:
            what = "no class" if not fitting else "several classes"
            raise EntityFormatError(f"{what} of the table: type {name!r}, keys {stored.key.partition_key!r}, …")
        return cast(E, fitting[0].decode(stored))
