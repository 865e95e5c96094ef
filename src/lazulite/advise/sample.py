"""A sample of a table's rows: what its properties are like, for advice on keys.

Invariant: of a long text its beginning and a hash are kept, so a sample of 10,000 rows takes some megabytes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final
from zlib import crc32

from lazulite.advise.workload import Property, Spread

PROPERTIES_MAX: Final = 64
"""The properties of a table that are looked at, the first ones that occur."""
_ROWS_MIN: Final = 100
"""The rows below which nothing is said about uniqueness, order and dependence."""
_ORDERED_SHARE: Final = 0.95
"""The share of neighbours in time that rise, from which a property does."""
_TOGETHER_MAX: Final = 3
"""The properties whose combinations are measured."""
_TYPES: Final[Mapping[str, str]] = {
    "Edm.DateTime": "time",
    "Edm.Int64": "integer",
    "Edm.Guid": "guid",
    "Edm.Binary": "binary",
    "Edm.Double": "double",
}
_JSON_TYPES: Final[Mapping[type, str]] = {bool: "boolean", int: "integer", float: "double", str: "text"}
_NO_PROPERTIES: Final = ("Timestamp",)
_UNIQUE_TYPES: Final = frozenset({"text", "guid", "integer"})


class TableSample:
    """See above.

    Args:
        is_whole: whether the sample has all rows of its table; set it once that is known.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self._columns: dict[str, list[object]] = {}
        self._types: dict[str, str] = {}
        self._times: list[str] = []
        self._spreads: dict[frozenset[str], Spread] = {}
        """What was measured since the latest row."""

    @property
    def rows(self) -> int:
        """The rows of the sample."""
        return len(self._times)

    @property
    def names(self) -> Sequence[str]:
        """The properties that occur, the keys first."""
        return list(self._columns)

    def add(self, entity: Mapping[str, object]) -> None:
        """Add a row, as JSON with minimal metadata has it."""
        place = self.rows
        self._spreads.clear()
        self._times.append(str(entity.get("Timestamp", "")))
        for name, value in entity.items():
            if "odata." in name or name in _NO_PROPERTIES:
                continue
            column = self._columns.get(name)
            if column is None:
                if len(self._columns) >= PROPERTIES_MAX:
                    continue
                column = self._columns[name] = []
                stated = str(entity.get(f"{name}@odata.type", ""))
                self._types[name] = _TYPES.get(stated) or _JSON_TYPES.get(type(value), "text")
            column.extend([None] * (place - len(column)))
            column.append(_kept(value))

    def properties(self) -> dict[str, Property]:
        """Return what the properties are like."""
        by_time = sorted(range(self.rows), key=self._times.__getitem__)
        found = {}
        for name in self._columns:
            spread = self.spread((name,))
            found[name] = Property(
                name=name,
                distinct=spread.distinct,
                busiest=spread.busiest,
                rises=self._rises(name, by_time),
                type=self._types[name],
            )
        return found

    def dependent(self, names: Sequence[str]) -> dict[str, str]:
        """Return of some properties each that settles another one, with that one."""
        found: dict[str, str] = {}
        for inner in names if self.rows >= _ROWS_MIN else ():
            count = self.spread((inner,)).distinct
            for outer in names:
                other = self.spread((outer,)).distinct
                if (
                    outer != inner
                    and 1 < other < count <= self.rows / 2
                    and self.spread((inner, outer)).distinct == count
                ):
                    found[inner] = outer
        return found

    def unique(self) -> Iterator[str]:
        """Yield the properties whose values are all different."""
        for name, kind in self._types.items():
            if self.rows >= _ROWS_MIN and kind in _UNIQUE_TYPES and self.spread((name,)).distinct == self.rows:
                yield name

    def measured(self, names: Iterable[str]) -> dict[frozenset[str], Spread]:
        """Return how the rows spread over the values of each few of some properties."""
        known = [name for name in names if name in self._columns]
        sets = (each for count in range(1, _TOGETHER_MAX + 1) for each in combinations(known, count))
        return {frozenset(each): self.spread(each) for each in sets}

    def spread(self, names: Sequence[str]) -> Spread:
        """Return how the rows spread over the values of some properties together."""
        if not self.rows:
            return Spread(1, 1)
        found = self._spreads.get(frozenset(names))
        if found is None:
            counts = Counter(zip(*(self._column(name) for name in names), strict=True))
            found = self._spreads[frozenset(names)] = Spread(len(counts), max(counts.values()) / self.rows)
        return found

    def _column(self, name: str) -> list[object]:
        column = self._columns[name]
        column.extend([None] * (self.rows - len(column)))
        return column

    def _rises(self, name: str, by_time: Sequence[int]) -> bool:
        """Return whether later rows have greater values; only of what has an order here, which hashes lack."""
        column = self._column(name)
        if self.rows < _ROWS_MIN or self._types[name] not in ("time", "integer", "text"):
            return False
        values = [column[place] for place in by_time]
        pairs = [
            (str(one), str(other)) if isinstance(one, str) or isinstance(other, str) else (one, other)
            for one, other in pairwise(values)
            if one is not None and other is not None and one != other
        ]
        rising = sum(one < other for one, other in pairs)  # type: ignore[operator]  # both are texts, or both numbers
        return len(pairs) >= _ROWS_MIN / 2 and rising / len(pairs) >= _ORDERED_SHARE


_TEXT_CHARACTERS_MAX: Final = 32


def _kept(value: object) -> object:
    """Return what a sample keeps of a value: equal for equal ones, and in their order if it is short."""
    if isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    if len(text) <= _TEXT_CHARACTERS_MAX:
        return text
    return f"{text[:_TEXT_CHARACTERS_MAX]}\0{crc32(text.encode('utf-8', 'surrogatepass')):08x}{len(text)}"
