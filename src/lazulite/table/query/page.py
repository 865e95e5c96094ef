"""One page of a query: rows read in slices, tested, spelled, until the page is full or its time is up.

Invariants: a page reads one snapshot; it never outgrows its limits by more than a run of rows; it holds the event loop
for no longer than `turn_seconds` and one run's work; it judges at least one row, so that whoever follows its
continuations arrives. Every row before the continuation has been judged, and returned if it belongs: no row is skipped
or seen twice, whatever happens to the one that the continuation names.

A *run* is as many rows as are worked on between two looks at the clock. Runs grow while they take a small part of a
turn and shrink when they take more: neither costly filters and large rows hold the loop, nor do the looks cost much.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from lazulite.engine.contract import Engine, Key, KeyRange, Slice
from lazulite.service.time_slice import Turn
from lazulite.table.call import QueryLimits

_RUN_ROWS_MAX = 64
_RUNS_PER_TURN = 8
"""A run that takes more of a turn is longer than it should be."""


@dataclass(slots=True)
class Page:
    """What a page came to."""

    items: list[bytes] = field(default_factory=list)
    """Each entity returned, as `spell` gave it."""
    next: Key | None = None
    """Where the next page starts; None if there is none."""
    scanned: int = 0
    """Rows read and judged."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a page should hold."""

    space: int
    ranges: Sequence[KeyRange]
    predicate: Callable[[bytes], bool] | None
    """Tests a row's value; None: every row of the ranges belongs."""
    spell: Callable[[bytes], bytes]
    """Takes a row's value to what stands for it in the page's payload."""
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
    """A page being read."""

    def __init__(self, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> None:
        self.page = Page()
        self._request = request
        self._limits = limits
        self._turn = Turn(limits.turn_seconds, monotonic)
        self._run_rows = 1
        self._bytes = 0
        self._now = monotonic()

    async def read(self, slices: AsyncGenerator[Slice, None]) -> None:
        """Read the page from these rows, or as much of it as they are."""
        if self._request.predicate is None:
            await self._take(slices)
        else:
            await self._filter(slices, self._request.predicate)

    async def _look(self) -> None:
        """Let others have their turn if it is time, and fit the next run to what the last one took."""
        now = await self._turn.look()
        took, self._now = now - self._now, now
        if took > self._limits.turn_seconds / _RUNS_PER_TURN:
            self._run_rows = max(1, self._run_rows // 2)
        else:
            self._run_rows = min(_RUN_ROWS_MAX, self._run_rows * 2)

    def _is_over(self) -> bool:
        if not self.page.scanned:
            return False
        return self._bytes > self._limits.page_bytes or self._now > self._request.deadline

    def _add(self, values: Sequence[bytes]) -> None:
        items = list(map(self._request.spell, values))
        self.page.items += items
        self._bytes += sum(map(len, items))

    async def _take(self, slices: AsyncGenerator[Slice, None]) -> None:
        """Add every row."""
        page, top = self.page, self._request.top
        async for part in slices:
            values, start = part.values, 0
            while start < len(values):
                await self._look()
                room = top - len(page.items)
                if not room or self._is_over():
                    page.next = part.key(start)
                    return
                taken = values[start : start + min(self._run_rows, room)]
                self._add(taken)
                page.scanned += len(taken)
                start += len(taken)

    async def _filter(self, slices: AsyncGenerator[Slice, None], predicate: Callable[[bytes], bool]) -> None:
        """Add the rows that match; look a little beyond a full page for one more match."""
        page, top = self.page, self._request.top
        beyond: Key | None = None
        lookahead = self._limits.lookahead_rows
        async for part in slices:
            values, start = part.values, 0
            while start < len(values):
                await self._look()
                room = top - len(page.items)
                if not room and beyond is None:
                    beyond = part.key(start)
                if self._is_over() or lookahead <= 0:
                    page.next = beyond or part.key(start)
                    return
                run = self._run_rows if room else min(self._run_rows, lookahead)
                tested = values[start : start + run]
                matches = [index for index, value in enumerate(tested) if predicate(value)]
                self._add([tested[index] for index in matches[:room]])
                if len(matches) > room:
                    page.next = part.key(start + matches[room])
                    page.scanned += matches[room] + 1
                    return
                page.scanned += len(tested)
                start += len(tested)
                if not room:
                    lookahead -= len(tested)
