"""A class of entities: its keys, its properties, its version."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar, cast

from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.columns import KeyName
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.fields import Field, Shape, get, make
from lazulite_patterns.entities.indexes import Index
from lazulite_patterns.entities.rows_read import attach_row, extra_of
from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
from lazulite_patterns.keys.codecs import Choices, Integers
from lazulite_patterns.keys.components import Component, of_type
from lazulite_patterns.keys.layout import Layout
from lazulite_patterns.outcomes.ring import KEPT

E = TypeVar("E")
TYPE = "_Type"
"""The property with the name of an entity's class."""
VERSION = "_Version"
"""The property with the version of an entity's class; 1 if it is absent."""
RESERVED = frozenset({*limits.SYSTEM, TYPE, VERSION, *KEPT})

Upgrade = Callable[[dict[str, object]], dict[str, object]]
"""Takes the properties of one version, and returns those of the next one."""


class Schema(Generic[E]):
    """How entities of a class are stored."""

    def __init__(
        self,
        cls: type[E],
        type_name: str,
        version: int = 1,
        partition: tuple[Component, ...] = (),
        row: tuple[Component, ...] = (),
        indexes: tuple[Index, ...] = (),
    ) -> None:
        """Read the annotations of a class.

        Raises:
            SchemaError: a key has no field, or a field cannot be stored.
        """
        self.cls = cls
        self.type_name = type_name
        self.version = version
        self.upgrades: dict[int, Upgrade] = {}
        self.shape = Shape(cls)
        self.partition = self._layout("PartitionKey", partition)
        self.row = self._layout("RowKey", row)
        by_column = (made(each.name) for each in self.shape.fields for made in each.declared.indexes)
        self.indexes = tuple(dict.fromkeys((*by_column, *indexes)))
        self.names = frozenset(self.shape.names())
        self._both = Layout(cls.__name__, self.partition.components + self.row.components)
        self._parts = [name for name, each in self._both.components if each.given]
        sources = {each.source for _, each in self._both.components if each.source}
        if absent := sources - set(self._parts):
            raise SchemaError(f"{cls.__name__}: {min(absent)} is no field that is part of a key")
        for name in self.names:
            if name in RESERVED or not limits.is_name(name) or len(name) > limits.NAME_MAX:
                raise SchemaError(f"{cls.__name__}: no property can have the name {name}")

    def key(self, entity: E) -> EntityKey:
        """Return the keys of an entity.

        Raises:
            EntityValueError: a field has no value that can be part of a key.
        """
        return self.key_of({name: get(entity, name) for name in self._parts})

    def encode(self, entity: E) -> dict[str, object]:
        """Return the properties of an entity, with its keys, as the SDK takes them.

        Raises:
            EntityValueError: the service would reject the entity, or a field has a value of another type.
        """
        key = self.key(entity)
        properties: dict[str, object] = {
            **self._extra(entity),
            "PartitionKey": key.partition_key,
            "RowKey": key.row_key,
            TYPE: self.type_name,
        }
        if self.version > 1:
            properties[VERSION] = self.version
        self.shape.write(entity, properties)
        limits.check(self.cls.__name__, properties)
        return properties

    def decode(self, stored: Stored) -> E:
        """Return the entity of a row; older versions are lifted.

        Raises:
            EntityFormatError: the row is of another class or of a later version, or a property is absent or wrong.
        """
        properties = self.lifted(stored.properties)
        values = self.shape.read(properties)
        for layout, name in ((self.partition, "PartitionKey"), (self.row, "RowKey")):
            try:
                found = layout.values(str(properties[name]))
            except KeyFormatError as error:
                raise EntityFormatError(f"{self.cls.__name__}.{name}: {error}") from error
            values |= {each: value for each, value in found.items() if "." not in each}
        extra = self.unknown(properties)
        if self.shape.extra is not None:
            values[self.shape.extra] = extra
        entity: E = make(self.cls, values)
        return cast(E, attach_row(entity, stored, extra))

    def unknown(self, properties: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of a row that are no fields of the class."""
        return {name: value for name, value in properties.items() if name not in self.names | RESERVED}

    def partial(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of some fields, for a merge.

        Raises:
            EntityValueError: there is no such field, or it has no such value; or one is None.
        """
        properties: dict[str, object] = {}
        for name, value in fields.items():
            if value is None:
                raise EntityValueError(f"{self.cls.__name__}.{name}: a merge cannot remove it; see `update`")
            self.shape.write_field(name, value, properties)
        return properties

    def has(self, stored: Stored) -> bool:
        """Tell whether a row is of this class: by its type, or by its keys if it has no type."""
        if TYPE in stored.properties:
            return bool(stored.properties[TYPE] == self.type_name)
        try:
            self.partition.values(stored.key.partition_key)
            self.row.values(stored.key.row_key)
        except KeyFormatError:
            return False
        return True

    def _extra(self, entity: E) -> dict[str, object]:
        name = self.shape.extra
        found = get(entity, name) if name is not None else extra_of(entity)
        if not isinstance(found, Mapping):
            return {}
        if wrong := (self.names | RESERVED) & set(found):
            raise EntityValueError(f"{self.cls.__name__}.{min(wrong)}: the class has it, it is no extra property")
        return dict(found)

    def lifted(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of a row as the latest version of the class has them.

        Raises:
            EntityFormatError: the row is of another class or of a later version.
        """
        properties = dict(given)
        if properties.get(TYPE, self.type_name) != self.type_name:
            raise EntityFormatError(f"{self.cls.__name__}: the row is of type {properties[TYPE]!r}")
        version = properties.get(VERSION, 1)
        if not isinstance(version, int) or not 1 <= version <= self.version:
            raise EntityFormatError(f"{self.cls.__name__}: version {version!r} is not from 1 to {self.version}")
        for number in range(version, self.version):
            if (lift := self.upgrades.get(number)) is None:
                raise EntityFormatError(f"{self.cls.__name__}: nothing upgrades version {number}")
            properties = lift(properties)
        return properties

    def _layout(self, key: KeyName, first: tuple[Component, ...]) -> Layout:
        """Return the layout of a key. Components that are no field have a name with a dot."""
        components = [(f".{number}", each) for number, each in enumerate(first)]
        for field in self.shape.fields:
            if field.declared.key != key:
                continue
            parts = field.declared.components
            own = () if any(each.given for each in parts) else self._component(field)
            for number, each in enumerate((*parts, *own)):
                components.append((field.name if each.given else f"{field.name}.{number}", each))
                if each.given:
                    self._check_component(field, each)
        if not components:
            raise SchemaError(f"{self.cls.__name__}: no column is part of the {key}")
        if any(each.compute is not None and each.source is None for _, each in components):
            raise SchemaError(f"{self.cls.__name__}: a random bucket cannot be found again: bucket(16, by=…)")
        return Layout(self.cls.__name__, tuple(components))

    def _component(self, field: Field) -> tuple[Component]:
        """Return the component of a field that names none: that of its type."""
        if field.kind is int or (found := of_type(field.kind)) is None:
            raise SchemaError(f"{self.cls.__name__}.{field.name}: name its component, as in row(width=6)")
        return (found,)

    def _check_component(self, field: Field, component: Component) -> None:
        """Reject a component that has no value of a field's type."""
        codec = component.codec
        kinds = {Integers: int, Choices: str}.get(type(codec), getattr(codec, "kind", object))
        every = kinds if isinstance(kinds, tuple) else (kinds,)
        if isinstance(field.kind, type) and not any(issubclass(field.kind, each) for each in every):
            raise SchemaError(
                f"{self.cls.__name__}.{field.name}: the component of a key is of {every[0].__name__}, and the field of "
                f"{field.kind.__name__}; name another component, as in row(width=6)"
            )

    @property
    def partition_parts(self) -> frozenset[str]:
        """The names of the columns that tell the PartitionKey."""
        parts = self.partition.components
        return frozenset(name for name, each in parts if each.given) | {each.source for _, each in parts if each.source}

    def partition_key(self, given: Mapping[str, object]) -> str:
        """Return the PartitionKey of the columns that tell it.

        Raises:
            KeyValueError: a column has no value that can be part of a key.
        """
        return self.partition.text({**given, **self.computed(given)})

    def computed(self, known: Mapping[str, object]) -> dict[str, object]:
        """Return the constants of both keys, and the buckets whose column is known."""
        possible = [
            (name, each)
            for name, each in self._both.components
            if each.given or each.constant is not None or each.source in known
        ]
        return Layout(self.cls.__name__, tuple(possible)).computed(known)

    def key_of(self, given: Mapping[str, object]) -> EntityKey:
        """Return the keys of the fields that are parts of them.

        Raises:
            EntityValueError: a field has no value that can be part of a key.
        """
        try:
            values = {**given, **self._both.computed(given)}
            return EntityKey(self.partition.text(values), self.row.text(values))
        except KeyValueError as error:
            raise EntityValueError(str(error)) from error
