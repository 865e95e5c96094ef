"""One page of a query: rows read in slices, tested, spelled, until the page is full or its time is up.

Invariants: a page reads one snapshot; it never holds more than its limits; its continuation is the first row not yet
judged, so that no row is skipped or seen twice, whatever happens to that row meanwhile.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from lazulite.engine.contract import Engine, Key, KeyRange, Slice
from lazulite.table.call import QueryLimits


@dataclass(slots=True)
class Page:
    """What a page came to."""

    items: list[bytes] = field(default_factory=list)
    """The members of each entity returned, as `spell` gave them."""
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
    """Takes a row's value to the members of its JSON object."""
    top: int
    deadline: float
    """On the monotonic clock."""


async def read_page(engine: Engine, request: PageRequest, limits: QueryLimits, monotonic: Callable[[], float]) -> Page:
    """Read one page."""
    page = Page()
    if not request.top or not request.ranges:
        return page
    limit = request.top + 1 if request.predicate is None else None
    async with aclosing(engine.scan(request.space, request.ranges, limit)) as slices:
        if request.predicate is None:
            await _take(page, slices, request, limits, monotonic)
        else:
            await _filter(page, slices, request, request.predicate, limits, monotonic)
    return page


async def _take(
    page: Page,
    slices: AsyncGenerator[Slice, None],
    request: PageRequest,
    limits: QueryLimits,
    monotonic: Callable[[], float],
) -> None:
    size = 0
    async for part in slices:
        values = part.values
        room = request.top - len(page.items)
        if values and (room == 0 or size > limits.page_bytes or monotonic() > request.deadline):
            page.next = part.key(0)
            return
        taken = list(map(request.spell, values[:room]))
        page.items += taken
        page.scanned += len(taken)
        size += sum(map(len, taken))
        if len(values) > room:
            page.next = part.key(room)
            return


async def _filter(
    page: Page,
    slices: AsyncGenerator[Slice, None],
    request: PageRequest,
    predicate: Callable[[bytes], bool],
    limits: QueryLimits,
    monotonic: Callable[[], float],
) -> None:
    size = 0
    beyond: Key | None = None
    lookahead = limits.lookahead_rows
    async for part in slices:
        values = part.values
        if values and beyond is None and (size > limits.page_bytes or monotonic() > request.deadline):
            page.next = part.key(0)
            return
        for index, value in enumerate(values):
            if beyond is None and len(page.items) == request.top:
                beyond = part.key(index)
            if beyond is not None and lookahead <= 0:
                page.next = beyond
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
            size += len(item)
        if beyond is not None and monotonic() > request.deadline:
            page.next = beyond
            return
