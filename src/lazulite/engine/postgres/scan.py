"""Scans: pages of rows by key, each one statement, bounded in rows and bytes, over one snapshot.

Most scans end within their first page, which is a snapshot by itself. A longer scan starts anew in a transaction with
a snapshot.

A page is read in the order of index keys (see `keys`). It ends before a group of long keys, whose index keys have no
useful order. The group is read separately, sorted by the whole keys, and the scan continues behind it.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

import asyncpg

from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.key_encoding import decode_text
from lazulite.engine.postgres.keys import PREFIX_BYTES, after_group, encode_text, in_group, index_key
from lazulite.engine.postgres.page_reads import ROWS_MAX, PageReads, ShortPage
from lazulite.engine.postgres.pool import Argument, Pool

PAGE_ROWS = 1024
PAGE_BYTES = 4 << 20
"""A page ends with the row that makes it this large."""
_SLICE_ROWS = 256
_SLICE_BYTES = 1 << 20
_ABOVE_ALL = b"\xff"
"""Above every key: no byte of CESU-8 is FF."""

_PAGE = """
SELECT partition_key, row_key, value, before FROM (
    SELECT partition_key, row_key, value, by_partition, by_row,
        sum(octet_length(value)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - octet_length(value) AS before
    FROM (
        SELECT COALESCE(long_partition_key, partition_key) AS partition_key, COALESCE(long_row_key, row_key) AS row_key,
            value, {by_partition} AS by_partition, {by_row} AS by_row
        FROM lazulite.rows WHERE space = $1 AND {where} ORDER BY {order} LIMIT $2
    ) AS page
) AS sized WHERE before < $3 ORDER BY {order}
"""
"""A page of at most $2 rows; it ends with the one that makes it $3 bytes large."""
_BOTH = "by_partition, by_row"
_WHOLE_ROW = "COALESCE(long_row_key, row_key)"

IN_PARTITION = _PAGE.format(
    by_partition="partition_key",
    by_row="row_key",
    order="by_row",
    where="partition_key = $4 AND row_key >= $5 AND row_key < $6",
)
IN_SPACE = _PAGE.format(
    by_partition="partition_key",
    by_row="row_key",
    order=_BOTH,
    where="(partition_key, row_key) >= ($4, $5) AND (partition_key, row_key) < ($6, $7)",
)
ROW_GROUP = _PAGE.format(
    by_partition="partition_key",
    by_row="long_row_key",
    order="by_row",
    where="partition_key = $4 AND row_key > $5 AND row_key < $6 AND long_row_key >= $7 AND long_row_key < $8",
)
PARTITION_GROUP = _PAGE.format(
    by_partition="long_partition_key",
    by_row=_WHOLE_ROW,
    order=_BOTH,
    where=f"partition_key > $4 AND partition_key < $5 AND (long_partition_key, {_WHOLE_ROW}) >= ($6, $7)"
    f" AND (long_partition_key, {_WHOLE_ROW}) < ($8, $9)",
)

_Whole = tuple[bytes, bytes]


class PageSlice:
    """A `Slice` of a page."""

    __slots__ = ("_keys", "values")

    def __init__(self, records: Sequence[asyncpg.Record]) -> None:
        self.values: list[bytes] = [record[2] for record in records]
        self._keys: list[_Whole] = [(record[0], record[1]) for record in records]

    def key(self, index: int) -> Key:
        """See `Slice`."""
        partition_key, row_key = self._keys[index]
        return decode_text(partition_key), decode_text(row_key)


class _Walk:
    """The position of a scan in one range."""

    def __init__(self, space: int, key_range: KeyRange) -> None:
        lower, upper = key_range
        self._space = space
        self._at: _Whole = encode_text(lower[0]), encode_text(lower[1])
        self._end: _Whole = (_ABOVE_ALL, b"") if upper is None else (encode_text(upper[0]), encode_text(upper[1]))
        self._asked = 0
        self._behind: _Whole | None = None
        """The key after the group that is being read; None: none is."""

    @property
    def over(self) -> bool:
        """Whether the whole range was read."""
        return self._at >= self._end

    def ask(self, rows: int) -> tuple[str, Sequence[Argument]]:
        """Return the statement for the next page, of at most `rows` rows, and its arguments."""
        self._asked = rows
        partition_key, row_key = self._at
        statement, where = self._where(partition_key, row_key)
        return statement, (self._space, rows, PAGE_BYTES, *where)

    def ask_short(self, rows: int) -> ShortPage | None:
        """Return the request for the next page; None if it is not one of short keys in one partition."""
        partition_key, row_key = self._at
        if in_group(row_key) or not self._in_one_partition():
            return None
        self._asked, self._behind = rows, None
        row_end = self._end[1] if partition_key == self._end[0] else _ABOVE_ALL
        return ShortPage(self._space, index_key(partition_key), row_key, _index_key_end(row_end), rows)

    def _where(self, partition_key: bytes, row_key: bytes) -> tuple[str, Sequence[Argument]]:
        end_partition, end_row = self._end
        self._behind = None
        one = self._in_one_partition()
        if in_group(partition_key) and not one:
            self._behind = after_group(partition_key), b""
            return PARTITION_GROUP, (partition_key[:PREFIX_BYTES], self._behind[0], *self._at, *self._end)
        row_end = end_row if partition_key == end_partition else _ABOVE_ALL
        if in_group(row_key):
            self._behind = partition_key, after_group(row_key)
            group = row_key[:PREFIX_BYTES], self._behind[1]
            return ROW_GROUP, (index_key(partition_key), *group, row_key, row_end)
        if one:
            return IN_PARTITION, (index_key(partition_key), row_key, _index_key_end(row_end))
        if in_group(end_partition):
            return IN_SPACE, (*self._at, after_group(end_partition), b"")
        return IN_SPACE, (*self._at, end_partition, _index_key_end(end_row))

    def _in_one_partition(self) -> bool:
        partition_key = self._at[0]
        return self._end[0] == partition_key or self._end == (partition_key + b"\0", b"")

    def take(self, page: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
        """Return the next rows of a page, and move behind them."""
        cut = len(page) == self._asked or bool(page and page[-1][3] + len(page[-1][2]) >= PAGE_BYTES)
        if self._behind is None:
            group = self._first_of_group(page)
            if group is not None:
                partition_key, row_key = page[group][0], page[group][1]
                if in_group(row_key) and (self._in_one_partition() or not in_group(partition_key)):
                    self._at = partition_key, row_key[:PREFIX_BYTES] + b"\0"
                else:
                    self._at = partition_key[:PREFIX_BYTES] + b"\0", b""
                return page[:group]
        if cut:
            self._at = page[-1][0], page[-1][1] + b"\0"
        else:
            self._at = self._behind or self._end
        return page

    def _first_of_group(self, page: Sequence[asyncpg.Record]) -> int | None:
        one = self._in_one_partition()
        for index, record in enumerate(page):
            if len(record[1]) > PREFIX_BYTES or (len(record[0]) > PREFIX_BYTES and not one):
                return index
        return None


def _index_key_end(key: bytes) -> bytes:
    """Return a bound of index keys that admits all short keys below a bound, and no other short ones."""
    return after_group(key) if in_group(key) else key


async def scan(
    pool: Pool, pages: PageReads | None, space: int, ranges: Sequence[KeyRange], limit: int | None
) -> AsyncGenerator[PageSlice, None]:
    """Yield the rows of some ranges, see `Engine.scan`; `pages` is None if the database cannot read short pages."""
    walks = _walks(space, ranges)
    if not walks or limit == 0:
        return
    if len(walks) == 1:
        page = await _first_page(pool, pages, walks[0], _rows(limit))
        if walks[0].over or len(page) == limit:
            for part in _slices(page):
                yield part
                await asyncio.sleep(0)
            return
        del page  # Waiting for a connection may take long, and many scans may wait.
    async with pool.snapshot() as connection:
        left = limit
        for walk in _walks(space, ranges):
            while not walk.over and left != 0:
                statement, arguments = walk.ask(_rows(left))
                page = walk.take(await connection.fetch(statement, *arguments))
                left = None if left is None else left - len(page)
                for part in _slices(page):
                    yield part
                    await asyncio.sleep(0)


async def _first_page(pool: Pool, pages: PageReads | None, walk: _Walk, rows: int) -> Sequence[asyncpg.Record]:
    short = walk.ask_short(rows) if pages is not None and rows <= ROWS_MAX else None
    found = None if pages is None or short is None else await pages.read(short)
    if found is None:
        statement, arguments = walk.ask(rows)
        found = await pool.fetch_page(statement, *arguments)
    return walk.take(found)


def _walks(space: int, ranges: Sequence[KeyRange]) -> list[_Walk]:
    return [walk for key_range in ranges if not (walk := _Walk(space, key_range)).over]


def _rows(left: int | None) -> int:
    return PAGE_ROWS if left is None else min(left, PAGE_ROWS)


def _slices(page: Sequence[asyncpg.Record]) -> Iterator[PageSlice]:
    start = size = 0
    for index, record in enumerate(page):
        if index > start and (index - start >= _SLICE_ROWS or size + len(record[2]) > _SLICE_BYTES):
            yield PageSlice(page[start:index])
            start, size = index, 0
        size += len(record[2])
    if start < len(page):
        yield PageSlice(page[start:])
