"""A walk over the rows of a container, row by row, with jumps over rows that do not matter.

A jump within the rows that were read costs next to nothing. Any other begins a new scan, which reads few rows if few of
the last ones mattered. So neither a jump nor the rows that it passes are read in vain.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from lazulite.engine.contract import Engine, JoinedKeys, Key, KeyRange, Slice
from lazulite.engine.ordinal import ordinal

_GROWTH = 4
"""A scan that goes on behind another one reads so many times as many rows."""


class _ReachableContents(NamedTuple):
    """How far scans of a kind read."""

    least: int
    """Rows of the first scan after a jump."""
    most: int
    patience: int
    """A scan after a jump reads so many rows for each one that mattered before: as many as it costs to begin it."""


_VALUES = _ReachableContents(least=4, most=1024, patience=4)
_KEYS = _ReachableContents(least=64, most=4096, patience=64)


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
        index: of that row in its slice.
        scanned: the rows read so far.
        keys_only: whether the scans that begin from now on read no values.
    """

    def __init__(self, engine: Engine, space: int, end: Key | None, rows: int) -> None:
        self.key: Key | None = None
        self.value = b""
        self.index = 0
        self.scanned = 0
        self.keys_only = False
        self._engine = engine
        self._space = space
        self._end = end
        self._rows = rows
        self._limit = 0
        self._scan: AsyncGenerator[Slice, None] | None = None
        self._left = 0
        """The rows that the scan may still yield."""
        self._has_values = True
        """Whether the scan reads values."""
        self._slice: Slice | None = None
        self._columns: tuple[Sequence[str], Sequence[str]] | None = None
        self._visited = 0
        """The rows of this scan that mattered."""

    @property
    def has_value(self) -> bool:
        """Whether `value` was read."""
        return self._has_values

    async def begin(self, start: Key) -> None:
        """Go to the first row that is not before a key."""
        self._limit = min(max(self._rows, self._reach.least), self._reach.most)
        await self._open(start)

    def columns(self) -> tuple[Sequence[str], Sequence[str], Sequence[bytes]]:
        """Return the partitions, rows and values of the slice, in which the position has an `index`."""
        if self._slice is None:
            return [], [], []
        if self._columns is None:
            self._columns = self._slice.columns()
        return *self._columns, self._slice.values

    def joined(self) -> JoinedKeys | None:
        """Return the keys from the position to the end of the slice, see `Slice.joined`."""
        return None if self._slice is None else self._slice.joined(self.index)

    async def move(self, index: int, mattered: int) -> None:
        """Go to a row of the slice, or behind its last one, after some of the rows before mattered."""
        rows = self._slice
        if rows is None:
            return
        self._visited += mattered
        last = len(rows.values) - 1
        self._stand(rows, min(index, last))
        if index > last:
            await self._read_on()

    async def step(self) -> None:
        """Go to the next row."""
        rows, index = self._slice, self.index + 1
        if rows is not None and index < len(rows.values):
            self._visited += 1
            self._stand(rows, index)
        else:
            await self.move(index, 1)

    async def jump(self, key: Key, *, patience: int = 0, mattered: int = 1) -> None:
        """Go to the first row that is not before a key; stay if that is here or behind.

        Args:
            key: the key.
            patience: while it is not used up by the rows of a slice, the next one is read rather than a new scan begun.
            mattered: how many of the rows that are left did.
        """
        self._visited += mattered
        while self.key is not None and (rows := self._slice) is not None:
            index = rows.find(key, self.index)
            if index < len(rows.values):
                if index != self.index:
                    self._stand(rows, index)
                return
            if patience <= 0 or not self._left or self._is_other_kind:
                await self._close()
                self._limit = min(max(self._reach.patience * self._visited, self._reach.least), self._reach.most)
                await self._open(key)
                return
            patience -= len(rows.values)
            await self.move(len(rows.values), 0)

    async def read_value(self) -> None:
        """Read the value of the row at the position, if the scan reads no values; the position may change."""
        if self.key is not None and not self._has_values:
            key, self.keys_only = self.key, False
            await self._close()
            self._limit = self._reach.least
            await self._open(key)

    async def aclose(self) -> None:
        """End the walk."""
        self.key = None
        await self._close()

    @property
    def _is_other_kind(self) -> bool:
        """Whether the next scan is to read values and this one does not, or the opposite."""
        return self._has_values is self.keys_only

    @property
    def _reach(self) -> _ReachableContents:
        return _KEYS if self.keys_only else _VALUES

    def _stand(self, rows: Slice, index: int) -> None:
        self.index, self.key, self.value = index, rows.key(index), rows.values[index]

    async def _open(self, start: Key) -> None:
        self._begin_scan(start)
        await self._read_on()

    def _begin_scan(self, start: Key) -> None:
        self._slice = None
        if self._end is None or _order(start) < _order(self._end):
            ranges = [KeyRange(start, self._end)]
            self._scan = self._engine.scan(self._space, ranges, self._limit, keys_only=self.keys_only)
            self._left, self._visited, self._has_values = self._limit, 0, not self.keys_only

    async def _read_on(self) -> None:
        """Go to the first row that was not read yet."""
        while self._scan is not None:
            rows = None if self._is_other_kind else await anext(self._scan, None)
            if rows is None:
                await self._begin_next_scan()
            elif rows.values:
                self.scanned += len(rows.values)
                self._left -= len(rows.values)
                self._slice, self._columns = rows, None
                self._stand(rows, 0)
                return
        self.key = None

    async def _begin_next_scan(self) -> None:
        """Begin a larger scan behind one that has ended, unless there are no more rows; or one of another kind."""
        await self._close()
        if self.key is None:
            return
        partition, row = self.key
        if self._is_other_kind:
            self._limit = self._reach.least
        elif self._left:
            return
        else:
            self._limit = min(_GROWTH * self._limit, self._reach.most)
        self._begin_scan((partition, row + "\0"))

    async def _close(self) -> None:
        if self._scan is not None:
            await self._scan.aclose()
            self._scan = None


def _order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])
