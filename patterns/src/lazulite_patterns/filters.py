"""Conditions on properties: as a text of OData for the service, and evaluated here for the simulation.

Our own, as the SDK's `parameters` are textual: `(A eq @c)` raises KeyError, and 2³¹ is written without `L`.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.keys.key_range import KeyProperty, KeyRange, quoted
from lazulite_patterns.keys.times import Ticks

T = TypeVar("T")
Comparison = Literal["eq", "ne", "gt", "ge", "lt", "le"]
_TEST: dict[Comparison, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_INT32 = range(-(2**31), 2**31)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _integer(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} has more than 64 bits")
    return str(int(value)) if value in _INT32 else f"{int(value)}L"


def _double(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"a query cannot name {value}")
    return repr(float(value))


def _text(value: str) -> str:
    if _SURROGATE.search(value):
        raise ValueError("a query cannot name a lone surrogate")
    return quoted(value)


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return f"datetime'{value.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%S.%fZ')}'"


# The first type that fits: a `bool` and `Ticks` are an `int`, too.
_LITERALS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (Ticks, lambda value: f"datetime'{value.text}'"),
    (int, _integer),
    (float, _double),
    (str, _text),
    (datetime, _time),
    (UUID, lambda value: f"guid'{value}'"),
    (bytes, lambda value: f"X'{value.hex()}'"),
)


def _typed(value: EntityProperty) -> str:
    if value.edm_type == EdmType.INT64:
        return f"{int(value.value)}L"
    if value.edm_type == EdmType.DATETIME and isinstance(value.value, str):
        return f"datetime'{value.value}'"
    return literal_text(value.value)


def literal_text(value: object) -> str:
    """Return a value of Python or of the SDK as a literal of OData. An `int` beyond 32 bits is an Int64.

    Raises:
        TypeError: no property has such a value.
        ValueError: an integer of more than 64 bits, a time without a zone, or what OData has no literal for.
    """
    if isinstance(value, EntityProperty):
        return _typed(value)
    for kind, write in _LITERALS:
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"{type(value).__name__} is no type of a property")


class Filter:
    """A condition. `&`, `|` and `~` combine conditions."""

    def text(self) -> str:
        """Return the condition in OData."""
        raise NotImplementedError

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Tell whether an entity fulfils the condition. A property that is not there fulfils no comparison."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Reject `a and b`, `a or b` and `not a`, of which Python would drop a part.

        Raises:
            TypeError: always.
        """
        raise TypeError("a filter is not true or false: filters are combined by &, | and ~")

    def __and__(self, other: "Filter") -> "Filter":
        """Return a condition that both fulfil."""
        return Both(self, other, "and")

    def __or__(self, other: "Filter") -> "Filter":
        """Return a condition that one of both fulfils."""
        return Both(self, other, "or")

    def __invert__(self) -> "Filter":
        """Return the opposite."""
        return Not(self)


def _sortable(value: object) -> object:
    if isinstance(value, EntityProperty):
        value = value.value
    return utf16_order(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Compare(Filter):
    """A property compared to a value."""

    name: str
    comparison: Comparison
    value: object

    def text(self) -> str:
        """Return the comparison in OData."""
        return f"{self.name} {self.comparison} {literal_text(self.value)}"

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Tell whether the property is there and compares so."""
        return self.name in properties and bool(
            _TEST[self.comparison](_sortable(properties[self.name]), _sortable(self.value))
        )


_MICROSECOND = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)
"""The time that no other one follows."""


@dataclass(frozen=True)
class CompareTime(Compare):
    """A time of the service compared to one of Python, which lacks the seventh digit: by its microsecond."""

    def text(self) -> str:
        """Return the comparison in OData."""
        return self._ranged(lambda each: f"({each.text()})" if isinstance(each, Both) else each.text())

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Tell whether the property is there and compares so."""
        return self._ranged(lambda each: each.matches(properties))

    def _ranged(self, use: Callable[[Filter], T]) -> T:
        time = self.value
        if not isinstance(time, datetime) or time >= _LAST:
            return use(Compare(self.name, self.comparison, time))
        following = time + _MICROSECOND
        ranged: dict[Comparison, Filter] = {
            "eq": Compare(self.name, "ge", time) & Compare(self.name, "lt", following),
            "ne": Compare(self.name, "lt", time) | Compare(self.name, "ge", following),
            "le": Compare(self.name, "lt", following),
            "gt": Compare(self.name, "ge", following),
        }
        return use(ranged.get(self.comparison, Compare(self.name, self.comparison, time)))


@dataclass(frozen=True)
class Both(Filter):
    """Two conditions, of which both or one hold."""

    left: Filter
    right: Filter
    word: Literal["and", "or"]

    def text(self) -> str:
        """Return the condition in OData; brackets stand around a condition of the other kind."""
        parts = (
            f"({each.text()})" if isinstance(each, Both) and each.word != self.word else each.text()
            for each in (self.left, self.right)
        )
        return f" {self.word} ".join(parts)

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Tell whether both conditions hold, or one of them."""
        test = all if self.word == "and" else any
        return test(each.matches(properties) for each in (self.left, self.right))


@dataclass(frozen=True)
class Not(Filter):
    """The opposite of a condition."""

    inner: Filter

    def text(self) -> str:
        """Return the condition in OData."""
        return f"not ({self.inner.text()})"

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Tell whether the condition does not hold."""
        return not self.inner.matches(properties)


def in_range(name: KeyProperty, keys: KeyRange) -> Filter:
    """Return the condition that a key is in a range."""
    lower: Filter = Compare(name, "ge", keys.lower)
    return lower if keys.upper is None else lower & Compare(name, "lt", keys.upper)


def in_partition(partition_key: str) -> Filter:
    """Return the condition that an entity is in a partition."""
    return Compare("PartitionKey", "eq", partition_key)
