"""One page of a query: rows read in slices, tested, spelled, until the page is full or its time is up.

Invariants: a page reads one snapshot; it never outgrows its limits by more than a few rows; it holds the event loop for
no longer than `turn_seconds` and one row's work; it judges at least one row, so that whoever follows its continuations
arrives. The continuation is the first row not yet judged: no row is skipped or seen twice, whatever happens to that row
meanwhile.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from lazulite.engine.contract import Engine, Key, KeyRange, Slice
from lazulite.table.call import QueryLimits
from lazulite.table.turn import Turn


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
    rows_at_once: int
    """Rows spelled between two looks at the clock, where no filter is tested."""
    top: int
    deadline: float
    """On the monotonic clock."""


async def read_page(engine: Engine, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> Page:
    """Read one page."""
    if not request.top or not request.ranges:
        return Page()
    reader = _PageReader(request, limits, monotonic)
    limit = request.top + 1 if request.predicate is None else None
    async with aclosing(engine.scan(request.space, request.ranges, limit)) as slices:
        if request.predicate is None:
            await reader.take(slices)
        else:
            await reader.filter(slices, request.predicate)
    return reader.page


class _PageReader:
    """A page being read."""

    def __init__(self, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> None:
        self.page = Page()
        self._request = request
        self._limits = limits
        self._turn = Turn(limits.turn_seconds, monotonic)
        self._bytes = 0
        self._now = 0.0

    def _is_over(self) -> bool:
        if not self.page.scanned:
            return False
        return self._bytes > self._limits.page_bytes or self._now > self._request.deadline

    async def take(self, slices: AsyncGenerator[Slice, None]) -> None:
        """Add every row."""
        page, request = self.page, self._request
        async for part in slices:
            values = part.values
            for start in range(0, len(values), request.rows_at_once):
                self._now = await self._turn.look()
                room = request.top - len(page.items)
                if room == 0 or self._is_over():
                    page.next = part.key(start)
                    return
                some = values[start : start + request.rows_at_once]
                taken = list(map(request.spell, some[:room]))
                page.items += taken
                page.scanned += len(taken)
                self._bytes += sum(map(len, taken))
                if len(some) > room:
                    page.next = part.key(start + room)
                    return

    async def filter(self, slices: AsyncGenerator[Slice, None], predicate: Callable[[bytes], bool]) -> None:
        """Add the rows that match; look a little beyond a full page for one more match."""
        page, request = self.page, self._request
        beyond: Key | None = None
        lookahead = self._limits.lookahead_rows
        async for part in slices:
            for index, value in enumerate(part.values):
                self._now = await self._turn.look()
                if beyond is None and len(page.items) == request.top:
                    beyond = part.key(index)
                if self._is_over() or lookahead <= 0:
                    page.next = beyond or part.key(index)
                    return
                page.scanned += 1
                lookahead -= beyond is not None
                if not predicate(value):
                    continue
                if beyond is not None:
                    page.next = part.key(index)
                    return
                item = request.spell(value)
                page.items.append(item)
                self._bytes += len(item)
