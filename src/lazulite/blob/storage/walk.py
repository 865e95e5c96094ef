"""A walk over the rows of a container, row by row, with jumps over rows that do not matter.

A jump within the rows that were read costs next to nothing. Any other begins a new scan, which reads few rows if few of
the last ones mattered. So neither a jump nor the rows that it passes are read in vain.
"""

from collections.abc import AsyncGenerator

from lazulite.engine.contract import Engine, Key, KeyRange, Slice
from lazulite.engine.ordinal import ordinal

_ROWS_MIN = 4
"""The first scan after a jump reads so many rows; each one that goes on from there reads `_GROWTH` times as many."""
_GROWTH = 4
_ROWS_MAX = 1024


class Walk:
    """A position among the rows of a container; each scan sees a snapshot of its own. Use `begin` before all else.

    Args:
        engine: has the rows.
        space: of the container.
        end: the first key that is not walked to; None: the end of the space.
        rows: how many rows are likely to matter.

    Attributes:
        key: of the row at the position; None: the walk is over.
        value: of that row.
        scanned: the rows read so far.
    """

    def __init__(self, engine: Engine, space: int, end: Key | None, rows: int) -> None:
        self.key: Key | None = None
        self.value = b""
        self.scanned = 0
        self._engine = engine
        self._space = space
        self._end = end
        self._limit = min(max(rows, _ROWS_MIN), _ROWS_MAX)
        self._scan: AsyncGenerator[Slice, None] | None = None
        self._left = 0
        """The rows that the scan may still yield."""
        self._slice: Slice | None = None
        self._index = 0
        self._visited = 0
        """The rows of this scan at which the walk was."""

    async def begin(self, start: Key) -> None:
        """Go to the first row that is not before a key."""
        await self._open(start)

    def advance(self) -> bool:
        """Go to the next row if it was read already; return whether it was. Else `step` goes there."""
        rows, index = self._slice, self._index + 1
        if rows is None or index == len(rows.values):
            return False
        self._visit(rows, index)
        return True

    async def step(self) -> None:
        """Go to the next row."""
        if not self.advance():
            await self._read_on()

    async def jump(self, key: Key) -> None:
        """Go to the first row that is not before a key; stay if that is here or behind."""
        rows = self._slice
        if self.key is None or rows is None:
            return
        index = rows.find(key, self._index)
        if index == len(rows.values):
            await self._close()
            self._limit = min(max(_GROWTH * self._visited, _ROWS_MIN), _ROWS_MAX)
            await self._open(key)
        elif index != self._index:
            self._visit(rows, index)

    async def aclose(self) -> None:
        """End the walk."""
        self.key = None
        await self._close()

    def _visit(self, rows: Slice, index: int) -> None:
        self._index, self.key, self.value = index, rows.key(index), rows.values[index]
        self._visited += 1

    async def _open(self, start: Key) -> None:
        self._begin_scan(start)
        await self._read_on()

    def _begin_scan(self, start: Key) -> None:
        self._slice = None
        if self._end is None or _order(start) < _order(self._end):
            self._scan = self._engine.scan(self._space, [KeyRange(start, self._end)], self._limit)
            self._left, self._visited = self._limit, 0

    async def _read_on(self) -> None:
        """Go to the first row that was not read yet."""
        while self._scan is not None:
            rows = await anext(self._scan, None)
            if rows is None:
                await self._begin_next_scan()
            elif rows.values:
                self.scanned += len(rows.values)
                self._left -= len(rows.values)
                self._slice = rows
                self._visit(rows, 0)
                return
        self.key = None

    async def _begin_next_scan(self) -> None:
        """Begin a larger scan behind one that has ended, unless there are no more rows."""
        await self._close()
        if not self._left and self.key is not None:
            partition, row = self.key
            self._limit = min(_GROWTH * self._limit, _ROWS_MAX)
            self._begin_scan((partition, row + "\0"))

    async def _close(self) -> None:
        if self._scan is not None:
            await self._scan.aclose()
            self._scan = None


def _order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])
