"""What a table is used for: its properties, queries and writes, with their rates.

Invariants: rates are per second, at the peak. The numbers of distinct values and the shares of the busiest value are
those of combinations of properties, too: measured where rows were sampled, and else taken to be independent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Final

DISTINCT_ASSUMED: Final = 100
"""The distinct values of a property about which nothing is known."""
RANGE_SHARE: Final = 0.05
"""The share of the values that a range or a prefix has, if nothing is known."""
KIND: Final = "(kind)"
"""The name of what tells the kinds of entities of one table apart; no property can have it."""


class Operator(Enum):
    """How a query restricts a property, the best for a key first."""

    EQUAL = "eq"
    PREFIX = "prefix"
    RANGE = "range"
    OTHER = "other"
    """By `ne`, `or` or `not`, for which no key helps."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A restriction of one property."""

    name: str
    operator: Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Queries with the same filter, but for its constants."""

    name: str
    conditions: tuple[Condition, ...] = ()
    rate: float = 1.0
    order: str = ""
    """The property by which the rows must come; "": in any order."""
    descending: bool = False
    top: int = 0
    """The rows that are wanted at most; 0: all."""
    returned: float | None = None
    """The rows that match, on average; None: estimated."""
    critical: bool = False
    """Whether users wait for it."""
    kind: str = ""
    """The kind of the entities that it finds; "": all."""
    equal: frozenset[str] = field(init=False, compare=False, repr=False)
    """The properties with one known value."""

    def __post_init__(self) -> None:
        """Find the properties with one known value."""
        equal = frozenset(each.name for each in self.conditions if each.operator is Operator.EQUAL)
        object.__setattr__(self, "equal", equal)

    def restricts(self, name: str) -> Operator | None:
        """Return how it restricts a property; None if it does not."""
        return next((each.operator for each in self.conditions if each.name == name), None)

    @property
    def weight(self) -> float:
        """The importance: a query that users wait for counts ten times."""
        return self.rate * (10 if self.critical else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Writes of the same kind."""

    name: str
    rate: float = 1.0
    entities: float = 1
    """The entities that change together, on average."""
    same: tuple[str, ...] = ()
    """The properties whose value these have in common."""
    atomic: bool = False
    """Whether all of them must change or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A property of the entities."""

    name: str
    distinct: float | None = None
    busiest: float | None = None
    """The share of the entities, or of the writes, that have the most frequent value; None: as of any value."""
    rises: bool = False
    """Whether later entities have greater values, as with times and counters."""
    within: str = ""
    """The property that is the same for all entities with one value of this one, as a city's country; "": none."""
    type: str = "text"
    """One of `TYPES`."""


TYPES: Final = ("text", "time", "integer", "guid", "boolean", "double", "binary")
"""What a value is."""
REVERSIBLE: Final = frozenset({"time", "integer"})
"""What can be counted down, so that the greatest value comes first."""
UNFIT: Final = frozenset({"boolean", "double", "binary"})
"""What makes poor keys: too few values, or no order as text."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the entities spread over the values of some properties."""

    distinct: float
    busiest: float
    """The share of the entities with the most frequent value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Everything that is known about the use of a table."""

    name: str
    rows: float
    entity_bytes: float = 1024
    properties: Mapping[str, Property] = field(default_factory=dict)
    queries: tuple[Query, ...] = ()
    writes: tuple[Write, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    """Sets of properties of which no two entities have the same values."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The kinds of entities, and what tells those of a kind apart beside the PartitionKey."""
    today: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The properties in the PartitionKey and RowKey that the table has now; None: it is new."""
    measured: Mapping[frozenset[str], Spread] = field(default_factory=dict)
    """Key properties -> how a sample of the table's rows spreads over them."""
    notes: tuple[str, ...] = ()
    """Where it comes from, and what is not known, in sentences."""
    _spreads: dict[frozenset[str], Spread] = field(default_factory=dict, init=False, compare=False, repr=False)

    def about(self, name: str) -> Property:
        """Return a property; one about which nothing is known if it was not stated."""
        return self.properties.get(name) or Property(name=name)

    def spread(self, names: Iterable[str]) -> Spread:
        """Return how the entities spread over the values of some properties together."""
        asked = frozenset(names)
        found = self._spreads.get(asked)
        if found is None:
            found = self._spreads[asked] = self._spread(self._independent(asked))
        return found

    def _spread(self, wanted: frozenset[str]) -> Spread:
        if not wanted:
            return Spread(1, 1)
        found = self.measured.get(wanted)
        if found is not None:
            return found
        parts = [self._spread_of(name) for name in wanted]
        distinct = min(prod(each.distinct for each in parts), max(self.rows, 1))
        if self.is_unique(wanted):
            return Spread(max(self.rows, 1), 1 / max(self.rows, 1))
        return Spread(distinct, max(prod(each.busiest for each in parts), 1 / distinct))

    def _spread_of(self, name: str) -> Spread:
        found = self.measured.get(frozenset((name,)))
        if found is not None:
            return found
        known = self.about(name)
        if name == KIND:
            distinct = float(max(len(self.kinds), 1))
        elif known.distinct is not None:
            distinct = known.distinct
        else:
            distinct = self.rows if known.rises or self.is_unique((name,)) else DISTINCT_ASSUMED
        distinct = max(min(distinct, self.rows), 1)
        return Spread(distinct, known.busiest or 1 / distinct)

    def _independent(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return properties without what others of them settle."""
        return wanted - self.implied(wanted)

    def implied(self, names: Iterable[str]) -> frozenset[str]:
        """Return the properties whose value some properties settle, without these themselves."""
        found: set[str] = set()
        for name in names:
            parent, seen = self.about(name).within, {name}
            while parent and parent not in seen:
                found.add(parent)
                seen.add(parent)
                parent = self.about(parent).within
        return frozenset(found)

    def is_unique(self, names: Iterable[str]) -> bool:
        """Return whether no two entities have the same values of some properties."""
        given = frozenset(names)
        return any(given >= frozenset(each) for each in self.unique)

    @property
    def written(self) -> float:
        """The entities written in a second."""
        return sum(each.rate * each.entities for each in self.writes)
