"""Classes that are entities, and several of them in one table."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import (
    Any,
    Generic,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    is_typeddict,
    overload,
)

import msgspec

from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.columns import NO_DEFAULT, Column, checked, column, index, partition, row, unique
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.indexes import Index
from lazulite_patterns.entities.rows_read import make_room
from lazulite_patterns.entities.schema import RESERVED, TYPE, Schema, Upgrade
from lazulite_patterns.keys.components import Component

E = TypeVar("E")
Class = TypeVar("Class", bound=type)
_schemas: dict[type, Schema[Any]] = {}


@overload
def entity(cls: Class, /) -> Class: ...
@overload
def entity(
    *,
    type: str | None = ...,
    version: int = ...,
    partition: Sequence[object] = ...,
    row: Sequence[object] = ...,
    indexes: Sequence[Index] = ...,
) -> Callable[[Class], Class]: ...
@dataclass_transform(field_specifiers=(column, index, partition, row, unique))
def entity(
    cls: Any = None,
    /,
    *,
    type: str | None = None,  # noqa: A002 - the name of the property
    version: int = 1,
    partition: Sequence[object] = (),
    row: Sequence[object] = (),
    indexes: Sequence[Index] = (),
) -> Any:
    """Declare a class of entities. It becomes a dataclass, frozen unless it derives from another one.

    A dataclass, `msgspec.Struct`, TypedDict or pydantic model stays what it is. Its columns are declared in
    `Annotated[…]`, and `columns` names them in conditions.

    Args:
        cls: the class, for `@entity` without arguments.
        type: the name in the property `_Type`; the class's name if it is None.
        version: of the class, in the property `_Version`; `upgrade` lifts entities of earlier ones.
        partition: components before the columns of the PartitionKey, such as `[bucket(16, by="device")]`.
        row: components before the columns of the RowKey.
        indexes: of several columns, and listings; a subclass has them, too.

    Raises:
        SchemaError: a column cannot be stored, or a key has no column, or instances have no room for the row that they
            were read from: a dataclass with `slots=True`, a Struct without `dict=True`.
    """
    first, second = checked(partition), checked(row)

    def declare(made: Class) -> Class:
        return _declared(made, type, version, first, second, tuple(indexes))

    return declare if cls is None else declare(cls)


def _declared(
    cls: Class,
    type_name: str | None,
    version: int,
    partition: tuple[Component, ...],
    row: tuple[Component, ...],
    indexes: tuple[Index, ...],
) -> Class:
    if cls in _schemas:
        raise SchemaError(f"{cls.__name__} is declared already")
    known = "__dataclass_fields__" in vars(cls) or is_typeddict(cls) or hasattr(cls, "model_fields")
    if not known and not issubclass(cls, msgspec.Struct):
        _make_dataclass(cls)
    make_room(cls)
    if version < 1:
        raise SchemaError(f"{cls.__name__}: versions begin with 1")
    inherited = tuple(index for each in cls.__mro__ if each in _schemas for index in _schemas[each].indexes)
    name = cls.__name__ if type_name is None else type_name
    _schemas[cls] = Schema(cls, name, version, partition, row, (*inherited, *indexes))
    return cls


def _make_dataclass(cls: type) -> None:
    """Make a class a frozen dataclass, and each annotation in its body a column."""
    own = {}
    for name, kind in inspect.get_annotations(cls).items():
        if "ClassVar" in str(kind):
            continue
        given = vars(cls).get(name, NO_DEFAULT)
        plain = given if isinstance(given, Column) else Column(default=given)
        if isinstance(plain.default, dataclasses.Field):
            raise SchemaError(f"{cls.__name__}.{name}: say column(default_factory=…) instead of field(…)")
        own[name] = plain.of(cls, name)
        if plain.factory is not None:
            setattr(cls, name, dataclasses.field(default_factory=plain.factory))
        elif plain.default is NO_DEFAULT:
            setattr(cls, name, dataclasses.field())  # Else that of a class that it inherits from were the default.
        else:
            setattr(cls, name, plain.default)
    bases = [vars(each)["__dataclass_params__"] for each in cls.__mro__ if "__dataclass_params__" in vars(each)]
    dataclasses.dataclass(frozen=all(each.frozen for each in bases))(cls)
    for name, each in own.items():
        setattr(cls, name, each)


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


class Columns:
    """The columns of a class, as attributes."""

    def __init__(self, cls: type) -> None:
        """Take a class that is declared with `entity`, or `Bag`."""
        self._cls = cls
        self._names = None if issubclass(cls, Bag) else frozenset(each.name for each in schema_of(cls).shape.fields)

    def __getattr__(self, name: str) -> Column[Any]:
        """Return a column. A bag has one for each property that a row may have."""
        if name.startswith("__") or (self._names is not None and name not in self._names):
            raise AttributeError(f"{self._cls.__name__} has no column {name}")
        return Column[Any]().of(self._cls, name)


def columns(cls: type) -> Columns:
    """Return the columns of a class that has none of type `Column`: a model of another library, or `Bag`.

    Raises:
        SchemaError: the class is not declared with `entity`.
    """
    return Columns(cls)


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
    def all(self) -> tuple[Schema[Any], ...]:
        """The schemas of the classes."""
        return tuple(self._by_class.values())

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

    def partial(self, key: E | EntityKey, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the properties of some columns of an entity, or of the one with these keys, for a merge.

        Raises:
            EntityValueError: the keys are not those of one class, and their columns differ; or a column is wrong.
        """
        if not isinstance(key, EntityKey):
            return self.of(key).partial(fields)
        row = Stored({"PartitionKey": key.partition_key, "RowKey": key.row_key}, "")
        found = [each.partial(fields) for each in self._by_type.values() if each.has(row)]
        if not found or any(each != found[0] for each in found):
            raise EntityValueError(f"{key} are not the keys of one class of the table")
        return found[0]

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
