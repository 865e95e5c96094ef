"""Conditions on the fields of a class: `e = columns(Employee)`, then `e.age >= 18`, `e.id.between(100, 199)`."""

from dataclasses import dataclass
from typing import Literal

from lazulite_patterns.entities.registry import schema_of
from lazulite_patterns.filters import Comparison

Operator = Comparison | Literal["starts with"]


class QueryError(ValueError):
    """A query cannot be asked so. The message names the field."""


@dataclass(frozen=True)
class Condition:
    """A field of a class compared to a value."""

    cls: type
    field: str
    operator: Operator
    value: object

    def __bool__(self) -> bool:
        """Reject `a and b`, `not a` and `1 < a < 3`, of which Python would drop a part.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a condition on {self.field} is not true or false: give conditions that all hold one by one, "
            "as in where(a, b), and a range as between(first, last)"
        )


class Column:
    """A field of a class, in conditions. Comparisons return a `Condition`."""

    __hash__ = None  # type: ignore[assignment] # `==` does not compare columns

    def __init__(self, cls: type, field: str) -> None:
        """Take a class and the name of a field."""
        self._cls = cls
        self._field = field

    def __eq__(self, value: object) -> Condition:  # type: ignore[override] # it is a condition, not a truth value
        """Return the condition that the field has a value."""
        return self._compared("eq", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override] # as above
        """Return the condition that the field is there and has another value."""
        return self._compared("ne", value)

    def __lt__(self, value: object) -> Condition:
        """Return the condition that the field is less."""
        return self._compared("lt", value)

    def __le__(self, value: object) -> Condition:
        """Return the condition that the field is less or equal."""
        return self._compared("le", value)

    def __gt__(self, value: object) -> Condition:
        """Return the condition that the field is greater."""
        return self._compared("gt", value)

    def __ge__(self, value: object) -> Condition:
        """Return the condition that the field is greater or equal."""
        return self._compared("ge", value)

    def between(self, first: object, last: object) -> tuple[Condition, Condition]:
        """Return the conditions that the field is from one value to another, both included."""
        return self >= first, self <= last

    def starts_with(self, text: str) -> Condition:
        """Return the condition that a text, as a part of a key, begins with another."""
        return self._compared("starts with", text)

    def _compared(self, operator: Operator, value: object) -> Condition:
        return Condition(self._cls, self._field, operator, value)


class Columns:
    """The fields of a class, as attributes."""

    def __init__(self, cls: type) -> None:
        """Take a class that is declared with `entity`."""
        self._cls = cls
        self._names = frozenset(each.name for each in schema_of(cls).shape.fields)

    def __getattr__(self, name: str) -> Column:
        """Return a field."""
        if name.startswith("__") or name not in self._names:
            raise AttributeError(f"{self._cls.__name__} has no field {name}")
        return Column(self._cls, name)


def columns(cls: type) -> Columns:
    """Return the fields of a class, for conditions.

    Raises:
        SchemaError: the class is not declared with `entity`.
    """
    return Columns(cls)
