"""Pages by indexes: the entities that entries name, in the order of their keys, all of one snapshot.

Entries of one point of values are in the order of their entities. So a few of each point are read, merged up to the
last entity before which none can be missing, and the next ones follow. Of two indexes, what both name is kept. Entries
of a range are in the order of values: all of them are read and sorted, and beyond `ENTRIES_MAX` the query is a scan.

Invariant: rows come in the order of a scan, each at most once, and only rows of the ranges that a scan would read.
"""

from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from lazulite.engine.contract import Engine, Key, KeyRange, Snapshot
from lazulite.engine.ordinal import ordinal
from lazulite.service.routing import QueryLimits
from lazulite.service.time_slice import TimeSlice
from lazulite.table.indexes.definition import Index, Scope
from lazulite.table.indexes.encoding import entity_of, row_of_entity
from lazulite.table.indexes.planner import IndexPlan, ValueRange
from lazulite.table.query.page import Page, PageReader, PageRequest

ENTRIES_MAX = 20_000
"""Entries of ranges that are sorted for one page."""
_CHUNK = 256
"""Entries that are read in one step."""
_ROWS_FIRST, _ROWS_MAX = 8, 64
_ROWS_BYTES = 256 * 1024
"""What the rows that are read in one step should have."""

_Order = tuple[bytes, bytes]


@dataclass(slots=True)
class EntityRows:
    """Rows in the order of their keys."""

    keys: list[Key]
    values: list[bytes]

    def key(self, index: int) -> Key:
        """Return the key of a row."""
        return self.keys[index]


async def read_page_by_indexes(
    engine: Engine,
    plan: IndexPlan,
    request: PageRequest,
    limits: QueryLimits,
    monotonic: Callable[[], float],
    *,
    is_current: Callable[[], bool],
) -> Page | None:
    """Read one page by indexes; return None if a scan must do it.

    Args:
        engine: holds the rows and the entries.
        plan: of the query.
        request: as for a scan.
        limits: likewise.
        monotonic: returns the time in seconds.
        is_current: tells whether the indexes of the plan are still used, once the snapshot is open.
    """
    if not request.top or not request.ranges:
        return Page()
    async with engine.snapshot() as snapshot:
        if not is_current():
            return None
        reader = PageReader(request, limits, monotonic)
        entries = EntryReader(snapshot, plan, request.ranges, reader.time_slice)
        keys = entries.merged() if plan.is_ordered else await entries.sorted()
        if keys is None:
            return None
        async with aclosing(_rows(snapshot, request.space, keys)) as rows:
            await reader.read(rows)
        reader.page.indexes = tuple(access.index.name for access in plan.accesses)
        reader.page.entries = entries.count
        return reader.page


async def _rows(
    snapshot: Snapshot, space: int, keys: AsyncGenerator[Sequence[Key], None]
) -> AsyncGenerator[EntityRows, None]:
    """Yield the rows of keys, a few at a time: few of large rows."""
    count = _ROWS_FIRST
    async with aclosing(keys):
        async for some in keys:
            start = 0
            while start < len(some):
                asked = some[start : start + count]
                values = await snapshot.values(space, asked)
                rows = [(key, value) for key, value in zip(asked, values, strict=True) if value is not None]
                yield EntityRows([key for key, _ in rows], [value for _, value in rows])
                start += len(asked)
                average = sum(len(value) for _, value in rows) // max(1, len(rows)) + 1
                count = max(1, min(_ROWS_MAX, 2 * count, _ROWS_BYTES // average))


class EntryReader:
    """Reads the entries of a plan.

    Args:
        snapshot: of the store.
        plan: the plan.
        within: the ranges of entities that are wanted, ascending and disjoint; not empty.
        time_slice: of the page.

    Attributes:
        count: how many entries were read.
    """

    def __init__(self, snapshot: Snapshot, plan: IndexPlan, within: Sequence[KeyRange], time_slice: TimeSlice) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._time_slice = time_slice
        self._starts = [_order(each.lower) for each in within]
        self._ends = [None if each.upper is None else _order(each.upper) for each in within]
        self._within = KeyRange(within[0].lower, within[-1].upper)
        self._is_one_range = (
            len(within) == 1 and plan.is_ordered and [len(each.ranges) for each in plan.accesses] == [1]
        )
        self.count = 0

    async def merged(self) -> AsyncGenerator[Sequence[Key], None]:
        """Yield the keys of entities, in order, of a plan whose entries are in order."""
        start: Key | None = self._within.lower
        while start is not None:
            common: dict[Key, None] | None = None
            horizons: list[Key] = []
            for access in self._plan.accesses:
                found: dict[Key, None] = {}
                for values in access.ranges:
                    some = await self._read(access.index, _entries(access.index, values, start, self._within.upper))
                    found.update(dict.fromkeys(some))
                    if len(some) == _CHUNK:
                        horizons.append(some[-1])
                common = found if common is None else dict.fromkeys(common.keys() & found.keys())
            horizon = min(horizons, key=_order, default=None)
            yield self._in_order(common or (), horizon)
            start = None if horizon is None else (horizon[0], f"{horizon[1]}\0")

    async def sorted(self) -> AsyncGenerator[Sequence[Key], None] | None:
        """Return a generator of the keys of entities, in order, of any plan; None if they are too many."""
        [access] = self._plan.accesses
        found: list[Key] = []
        for values in access.ranges:
            entries = _entries(access.index, values, self._within.lower, self._within.upper)
            while True:
                some = await self._read(access.index, entries)
                found += some
                if len(found) > ENTRIES_MAX:
                    return None
                if len(some) < _CHUNK:
                    break
                entries = KeyRange(self._after, entries.upper)
        return _once(self._in_order(found, None))

    async def _read(self, index: Index, entries: KeyRange) -> list[Key]:
        """Return the entities that the first entries of a range name."""
        await self._time_slice.checkpoint()
        keys = await self._snapshot.keys(index.space, entries, _CHUNK)
        self.count += len(keys)
        if keys:
            partition, row = keys[-1]
            self._after = partition, f"{row}\0"
        count, in_table = len(index.on), index.scope is Scope.TABLE
        return [entity_of(key, count, in_table=in_table) for key in keys]

    def _in_order(self, keys: Iterable[Key], horizon: Key | None) -> list[Key]:
        """Return the keys that are wanted, up to a horizon, in order."""
        if self._is_one_range:  # Its entries have the order of their entities.
            return list(keys)
        last = None if horizon is None else _order(horizon)
        wanted = [(order, key) for key in keys if self._has(order := _order(key)) and (last is None or order <= last)]
        wanted.sort(key=lambda each: each[0])
        return [key for _, key in wanted]

    def _has(self, order: _Order) -> bool:
        at = bisect_right(self._starts, order) - 1
        if at < 0:
            return False
        end = self._ends[at]
        return end is None or order < end


async def _once(keys: Sequence[Key]) -> AsyncGenerator[Sequence[Key], None]:
    yield keys


def _entries(index: Index, values: ValueRange, start: Key, end: Key | None) -> KeyRange:
    """Return the range of entries with some values; of a point only those of entities from `start` up to `end`."""
    lower, upper, is_point = values
    if index.scope is Scope.TABLE:
        if not is_point:
            return KeyRange((lower, ""), (upper, ""))
        return KeyRange(
            (lower, row_of_entity(start)), (f"{lower}\0", "") if end is None else (lower, row_of_entity(end))
        )
    partition = start[0]
    if not is_point:
        return KeyRange((partition, lower), (partition, upper))
    behind = lower + end[1] if end is not None and end[0] == partition else upper
    return KeyRange((partition, lower + start[1]), (partition, behind))


def _order(key: Key) -> _Order:
    return ordinal(key[0]), ordinal(key[1])
