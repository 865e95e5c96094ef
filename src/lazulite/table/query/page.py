"""One page of a query: rows read in slices, tested and serialized until the page is full or its time is up.

Invariants: a page reads one snapshot; it never outgrows its limits by more than a run of rows; it holds the event loop
for no longer than `slice_seconds` and one run's work; it tests at least one row, so that a client which follows the
continuations reaches the end. Every row before the continuation was tested, and returned if it matches: no row is
skipped or returned twice, whatever happens to the row that the continuation names.

A *run* is the rows between two checkpoints. Runs grow while they take a small part of a time slice and shrink when
they take more: costly filters and large rows do not hold the loop, and the checkpoints cost little.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.protocol.steps import Steps
from lazulite.service.routing import QueryLimits
from lazulite.service.time_slice import TimeSlice
from lazulite.table.model.row import LARGE_BYTES

_RUN_ROWS_MAX = 64
_RUNS_PER_SLICE = 8
"""A run that takes a larger part of a time slice is longer than it should be."""


class Rows(Protocol):
    """Consecutive rows in ascending order, such as a `Slice`."""

    @property
    def values(self) -> Sequence[bytes]:
        """The rows' values."""
        ...

    def key(self, index: int) -> Key:
        """Return the key of the row `values[index]`."""
        ...


@dataclass(slots=True)
class Page:
    """A page that was read."""

    items: list[bytes] = field(default_factory=list)
    """Each entity returned, as `PageRequest.serialize` returned it."""
    items_bytes: int = 0
    """The bytes of all items."""
    next: Key | None = None
    """The start of the next page; None if there is none."""
    scanned: int = 0
    """Rows read and tested."""
    indexes: tuple[str, ...] = ()
    """The names of the indexes that led to the rows."""
    entries: int = 0
    """Entries of indexes that were read."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The rows that a page should hold."""

    space: int
    ranges: Sequence[KeyRange]
    predicate: Callable[[bytes], bool] | None
    """Tests a row's value; None: every row of the ranges matches."""
    serialize: Callable[[bytes], bytes]
    """From a row's value to its item in the payload."""
    serialize_steps: Callable[[bytes], Steps[bytes]]
    """Does the same in steps, for large rows."""
    top: int
    deadline: float
    """On the monotonic clock."""


async def read_page(engine: Engine, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> Page:
    """Read one page."""
    if not request.top or not request.ranges:
        return Page()
    reader = PageReader(request, limits, monotonic)
    limit = request.top + 1 if request.predicate is None else None
    async with aclosing(engine.scan(request.space, request.ranges, limit)) as slices:
        await reader.read(slices)
    return reader.page


class PageReader:
    """A page being read.

    Attributes:
        page: what was read so far.
        time_slice: of this work.
    """

    def __init__(self, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> None:
        self.page = Page()
        self._request = request
        self._limits = limits
        self.time_slice = TimeSlice(limits.slice_seconds, monotonic)
        self._run_rows = 1
        self._now = monotonic()

    async def read(self, slices: AsyncIterator[Rows]) -> None:
        """Read the page from these rows."""
        if self._request.predicate is None:
            await self._take(slices)
        else:
            await self._filter(slices, self._request.predicate)

    async def _checkpoint(self) -> None:
        """Pass a checkpoint, and fit the next run to the time that the last one took."""
        now = await self.time_slice.checkpoint()
        took, self._now = now - self._now, now
        if took > self._limits.slice_seconds / _RUNS_PER_SLICE:
            self._run_rows = max(1, self._run_rows // 2)
        else:
            self._run_rows = min(_RUN_ROWS_MAX, self._run_rows * 2)

    def _is_over(self) -> bool:
        if not self.page.scanned:
            return False
        return self.page.items_bytes > self._limits.page_bytes or self._now > self._request.deadline

    def _run(self, values: Sequence[bytes], start: int, rows_max: int) -> Sequence[bytes]:
        """Return the rows of the next run: as many as `LARGE_BYTES` hold, at least one."""
        run = values[start : start + min(self._run_rows, rows_max)]
        if sum(map(len, run)) <= LARGE_BYTES:
            return run
        return run[: max(1, bisect_right(list(accumulate(map(len, run))), LARGE_BYTES))]

    async def _add(self, values: Sequence[bytes]) -> None:
        if len(values) == 1 and len(values[0]) > LARGE_BYTES:
            items = [await self.time_slice.run(self._request.serialize_steps(values[0]))]
        else:
            items = list(map(self._request.serialize, values))
        self.page.items += items
        self.page.items_bytes += sum(map(len, items))

    async def _take(self, slices: AsyncIterator[Rows]) -> None:
        """Add every row."""
        page, top = self.page, self._request.top
        async for part in slices:
            values, start = part.values, 0
            while start < len(values):
                await self._checkpoint()
                room = top - len(page.items)
                if not room or self._is_over():
                    page.next = part.key(start)
                    return
                taken = self._run(values, start, room)
                await self._add(taken)
                page.scanned += len(taken)
                start += len(taken)

    async def _filter(self, slices: AsyncIterator[Rows], predicate: Callable[[bytes], bool]) -> None:
        """Add the rows that match; look a little beyond a full page for one more match."""
        page, top = self.page, self._request.top
        beyond: Key | None = None
        lookahead = self._limits.lookahead_rows
        async for part in slices:
            values, start = part.values, 0
            while start < len(values):
                await self._checkpoint()
                room = top - len(page.items)
                if not room and beyond is None:
                    beyond = part.key(start)
                if self._is_over() or lookahead <= 0:
                    page.next = beyond or part.key(start)
                    return
                tested = self._run(values, start, _RUN_ROWS_MAX if room else lookahead)
                matches = [index for index, value in enumerate(tested) if predicate(value)]
                await self._add([tested[index] for index in matches[:room]])
                if len(matches) > room:
                    page.next = part.key(start + matches[room])
                    page.scanned += matches[room] + 1
                    return
                page.scanned += len(tested)
                start += len(tested)
                if not room:
                    lookahead -= len(tested)
