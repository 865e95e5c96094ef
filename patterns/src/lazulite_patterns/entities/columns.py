"""The columns of a class: how its body declares them, and how conditions name them.

`id: Column[int] = row(width=6)` is an `int` of an entity, and a column of the class: `Employee.id >= 7` is a condition.
In a class of another library, a declaration stands beside the type: `Annotated[int, row(width=6)]`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, Self, TypeVar, cast, overload

from lazulite_patterns.entities.conditions import Compared, Condition, Operator, joined
from lazulite_patterns.entities.errors import SchemaError
from lazulite_patterns.entities.indexes import Index
from lazulite_patterns.keys.components import Component, integer

T = TypeVar("T")
KeyName = Literal["PartitionKey", "RowKey"]
Form = Literal["int32", "json", "flat", "extra"]
NO_DEFAULT: Any = object()
"""Marks that a column must be given."""


@dataclass(frozen=True)
class Declaration:
    """What a class says of a column beside its type."""

    key: KeyName | None = None
    """The key that it is a part of."""
    components: tuple[Component, ...] = ()
    """Of the key: the column and literals; literals alone for the component of the column's type after them."""
    name: str | None = None
    """Of the property; None for that of the column."""
    form: Form | None = None
    """How the value is stored, if not as its type says."""
    prefix: str | None = None
    """Of the properties of a flat class; None for the column's name and `_`."""
    indexes: tuple[Callable[[str], Index], ...] = ()
    """Make the indexes by the column, from its name."""

    def beside(self, other: "Declaration") -> "Declaration":
        """Return what two declarations of one column say."""
        return Declaration(
            self.key or other.key,
            self.components or other.components,
            self.name or other.name,
            self.form or other.form,
            self.prefix if other.prefix is None else other.prefix,
            self.indexes + other.indexes,
        )


class Column(Generic[T]):
    """A column of a class: in conditions, where the class is asked for it, and a value, where an entity is.

    Comparisons return a `Condition`.
    """

    __hash__ = None  # type: ignore[assignment] # `==` does not compare columns

    def __init__(
        self, declared: Declaration = Declaration(), default: T = NO_DEFAULT, factory: Callable[[], T] | None = None
    ) -> None:
        """Take what the class says of the column; `entity` adds where it is."""
        self.declared = declared
        self.default = default
        self.factory = factory
        self._cls: type = object
        self._field = ""

    def of(self, cls: type, field: str) -> Self:
        """Return this column of a class."""
        found = type(self)(self.declared, self.default, self.factory)
        found._cls, found._field = cls, field
        return found

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Any:
        """Return the column of a class. The values of an entity are its own attributes."""
        if instance is not None:
            raise AttributeError(f"{owner.__name__} has no value of {self._field}")
        return self if owner is self._cls else self.of(owner, self._field)

    if TYPE_CHECKING:
        # Tells type checkers of the parameters of a class, and that no entity can be assigned to.
        def __set__(self, instance: Never, value: T) -> None: ...

    def __eq__(self, value: T) -> Condition:  # type: ignore[override] # it is a condition, not a truth value
        """Return the condition that the column has a value."""
        return self._compared("eq", value)

    def __ne__(self, value: T) -> Condition:  # type: ignore[override] # as above
        """Return the condition that the column is there and has another value."""
        return self._compared("ne", value)

    def __lt__(self, value: T) -> Condition:
        """Return the condition that the column is less."""
        return self._compared("lt", value)

    def __le__(self, value: T) -> Condition:
        """Return the condition that the column is less or equal."""
        return self._compared("le", value)

    def __gt__(self, value: T) -> Condition:
        """Return the condition that the column is greater."""
        return self._compared("gt", value)

    def __ge__(self, value: T) -> Condition:
        """Return the condition that the column is greater or equal."""
        return self._compared("ge", value)

    def between(self, first: T, last: T) -> Condition:
        """Return the condition that the column is from one value to another, both included."""
        return joined("and", (self >= first, self <= last))

    def in_(self, values: Iterable[T]) -> Condition:
        """Return the condition that the column has one of some values; with none of them nothing is found."""
        return joined("or", (self == each for each in values))

    def starts_with(self, text: str) -> Condition:
        """Return the condition that a text, as a part of a key, begins with another."""
        return self._compared("starts with", text)

    def _compared(self, operator: Operator, value: object) -> Condition:
        return Compared(self._cls, self._field, operator, value)


def column(
    *,
    default: T = NO_DEFAULT,
    default_factory: Callable[[], T] | None = None,
    name: str | None = None,
    form: Form | None = None,
    prefix: str | None = None,
) -> Column[T]:
    """Declare a column that is a property.

    Args:
        default: its value if it is not given, or a row has no such property.
        default_factory: makes that value.
        name: of the property, if it is another one.
        form: `int32` stores an `int` as Edm.Int32 instead of Edm.Int64. `json` stores a value of any type in one
            String. `flat` stores the fields of a class as properties of their own: `address_city`. `extra` makes a
            `dict[str, object]` of all properties that the class does not know.
        prefix: replaces `address_` before the properties of a flat class.
    """
    return Column(Declaration(name=name, form=form, prefix=prefix), default, default_factory)


def partition(*components: object, width: int | None = None, default: T = NO_DEFAULT) -> Column[T]:
    """Declare a column that is part of the PartitionKey: `partition()`, `partition(literal("dept"), text())`.

    Args:
        components: of `lazulite_patterns.keys`; one of them is the column, the others are literals. If none is the
            column, that of its type follows them.
        width: digits of an integer.
        default: the value if it is not given.
    """
    return Column(Declaration("PartitionKey", _components(components, width)), default)


def row(*components: object, width: int | None = None, default: T = NO_DEFAULT) -> Column[T]:
    """Declare a column that is part of the RowKey: `row(width=6)`, `row(literal("empid"), integer(6))`.

    Arguments are those of `partition`.
    """
    return Column(Declaration("RowKey", _components(components, width)), default)


def unique(
    *,
    default: T = NO_DEFAULT,
    name: str | None = None,
    component: object = None,
    within_partition: bool = False,
    table: str | None = None,
) -> Column[T]:
    """Declare a property of which no two entities have the same value. `Table.by` finds the entity that has it.

    Args:
        default: its value if it is not given.
        name: of the property, if it is another one.
        component: of the entries' keys, if it is not that of the column's type.
        within_partition: whether it is unique in one partition.
        table: the name of the entries' table; None for the entities' own.
    """

    def made(field: str) -> Index:
        return Index(field, (field, component), unique=True, within_partition=within_partition, table=table)

    return Column(Declaration(name=name, indexes=(made,)), default)


def index(
    *,
    default: T = NO_DEFAULT,
    name: str | None = None,
    component: object = None,
    within_partition: bool = False,
    table: str | None = None,
    copy: Sequence[str] = (),
    queue: str | None = None,
) -> Column[T]:
    """Declare a property by which `Table.by` finds entities.

    Args:
        default: its value if it is not given.
        name: of the property, if it is another one.
        component: of the entries' keys, if it is not that of the column's type.
        within_partition: whether the entries are written in the entity's transaction.
        table: the name of the entries' table; None for the entities' own.
        copy: names of other columns that the entries have, too.
        queue: the name of the queue whose worker writes the entries after the commit; None for no queue.
    """

    def made(field: str) -> Index:
        return Index(field, (field, component), within_partition=within_partition, table=table, copy=copy, queue=queue)

    return Column(Declaration(name=name, indexes=(made,)), default)


def checked(given: Iterable[object]) -> tuple[Component, ...]:
    """Return components of `lazulite_patterns.keys`, which are typed as their values.

    Raises:
        SchemaError: one is no component.
    """
    found = []
    for each in given:
        if not isinstance(each, Component):
            raise SchemaError(f"{each!r} is no component of a key")
        found.append(each)
    return tuple(found)


def _components(given: tuple[object, ...], width: int | None) -> tuple[Component, ...]:
    found = checked((*given, *(() if width is None else (integer(width),))))
    if sum(each.given for each in found) > 1:
        raise SchemaError("a column is one component of a key; the others beside it are literals and buckets")
    return found


def declared(notes: Iterable[object]) -> Declaration:
    """Return what stands in `Annotated[…]` beside a type."""
    found = Declaration()
    for each in notes:
        if isinstance(each, Column):
            found = found.beside(cast("Column[object]", each).declared)
    return found
