"""Scans: pages of rows by key, each one statement, bounded in rows and bytes, over one snapshot.

Most scans end within their first page, which is a snapshot by itself. A longer scan starts again in a transaction with
a snapshot.

A page is read in the order of index keys (see `keys`). It ends before a group of long keys, whose index keys have no
useful order. The group is read separately, sorted by the whole keys, and the scan continues behind it. A page has the
whole keys and the values of its rows. Behind the row that makes it as large as its bound, values are null.

On Citus, each worker or each shard sends a page for a page over partitions (see `citus.shard_pages`). So the keys and
sizes are read first, and then the values between the first key and the last one that the page has room for. The values
of a node are those of one moment. The page is in one partition where these keys are, and then goes to one shard. A page
in one partition has no subquery, so a worker of Citus keeps its plan. A page over partitions has one: otherwise a
coordinator would collect all rows for the window function.

No output column of a statement has the name of a column of the table. A Citus coordinator writes a statement again for
its workers, and a worker would take `ORDER BY partition_key` for the output column of that name: it would sort all rows
of a shard instead of reading the first ones by the index.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import asyncpg

from lazulite.engine.contract import JoinedKeys, Key, KeyRange
from lazulite.engine.key_encoding import decode_text, escape_partition, join_keys
from lazulite.engine.postgres.citus.shard_pages import ShardPageReads
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.keys import PREFIX_BYTES, after_group, encode_text, in_group, index_key, text_index_key
from lazulite.engine.postgres.page_reads import ROWS_MAX, PageReads, ShortPage
from lazulite.engine.postgres.pool import Argument, Pool
from lazulite.engine.postgres.sql_statements import GET, GET_OF_PARTITION

_WHOLE_ROW = "COALESCE(long_row_key, row_key)"
_KEYS = f"COALESCE(long_partition_key, partition_key) AS whole_partition_key, {_WHOLE_ROW} AS whole_row_key"
_BOUNDED = (
    "CASE WHEN sum(octet_length(value)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - octet_length(value) < $3"
    " THEN value END AS bounded"
)

KEYS_IN_SPACE = """
SELECT partition_key, row_key, octet_length(value) AS bytes FROM lazulite.rows
WHERE space = $1 AND (partition_key, row_key) >= ($3, $4) AND (partition_key, row_key) < ($5, $6)
ORDER BY partition_key, row_key LIMIT $2
"""
"""The index keys and the sizes of the first $2 rows. Each shard sends that many keys, and no values."""
VALUES_IN_SPACE = """
SELECT COALESCE(long_partition_key, partition_key) AS whole_partition_key,
    COALESCE(long_row_key, row_key) AS whole_row_key, value AS bounded FROM lazulite.rows
WHERE space = $1 AND (partition_key, row_key) >= ($3, $4) AND (partition_key, row_key) < ($5, $6)
ORDER BY partition_key, row_key LIMIT $2
"""
"""A page of at most $2 rows, whatever their bytes: its bounds were chosen by `KEYS_IN_SPACE`."""

PAGE_ROWS = 1024
PAGE_BYTES = 4 << 20
"""A page ends with the row that makes it this large."""
_SLICE_ROWS = 256
_SLICE_BYTES = 1 << 20
_ABOVE_ALL = b"\xff"
"""Above every key: no byte of CESU-8 is FF."""

_Whole = tuple[bytes, bytes]
_Asked = tuple[str, Sequence[Argument]]
_Fetch = Callable[[_Asked], Awaitable[Sequence[asyncpg.Record]]]


def _in_partition(where: str, order: str) -> str:
    """Return the statement for at most $2 rows of a partition."""
    return (
        f"SELECT {_KEYS}, {_BOUNDED.format(order=order)} FROM lazulite.rows"
        f" WHERE space = $1 AND partition_key = $4 AND {where} ORDER BY {order} LIMIT $2"
    )


def _over_partitions(where: str, by_partition: str, by_row: str) -> str:
    """Return the statement for at most $2 rows of partitions."""
    return (
        f"SELECT whole_partition_key, whole_row_key, {_BOUNDED.format(order='by_partition, by_row')} FROM ("
        f"SELECT {_KEYS}, value, {by_partition} AS by_partition, {by_row} AS by_row FROM lazulite.rows"
        f" WHERE space = $1 AND {where} ORDER BY by_partition, by_row LIMIT $2"
        ") AS page ORDER BY by_partition, by_row"
    )


IN_PARTITION = _in_partition("row_key >= $5 AND row_key < $6", "row_key")
ROW_GROUP = _in_partition("row_key > $5 AND row_key < $6 AND long_row_key >= $7 AND long_row_key < $8", "long_row_key")
IN_SPACE = _over_partitions(
    "(partition_key, row_key) >= ($4, $5) AND (partition_key, row_key) < ($6, $7)", "partition_key", "row_key"
)
PARTITION_GROUP = _over_partitions(
    f"partition_key > $4 AND partition_key < $5 AND (long_partition_key, {_WHOLE_ROW}) >= ($6, $7)"
    f" AND (long_partition_key, {_WHOLE_ROW}) < ($8, $9)",
    "long_partition_key",
    _WHOLE_ROW,
)

KEYS_ONLY = {
    page: page.replace("octet_length(value)", "0").replace("THEN value", "THEN ''::bytea").replace(", value,", ",")
    for page in (IN_PARTITION, IN_SPACE, ROW_GROUP, PARTITION_GROUP)
}
"""By each statement, the one that returns empty values, which no bytes bound."""


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

    def columns(self) -> tuple[Sequence[str], Sequence[str]]:
        """See `Slice`."""
        pairs = [self.key(index) for index in range(len(self._keys))]
        return [partition for partition, _ in pairs], [row for _, row in pairs]

    def joined(self, start: int) -> JoinedKeys:
        """See `Slice`."""
        return join_keys([escape_partition(partition) + b"\0" + row for partition, row in self._keys[start:]], head=0)

    def find(self, key: Key, start: int) -> int:
        """See `Slice`."""
        return bisect_left(self._keys, (encode_text(key[0]), encode_text(key[1])), start)


class _Walk:
    """The position of a scan in one range."""

    def __init__(self, space: int, key_range: KeyRange, *, keys_only: bool) -> None:
        lower, upper = key_range
        self._space = space
        self._keys_only = keys_only
        self._at: _Whole = encode_text(lower[0]), encode_text(lower[1])
        self._end: _Whole = (_ABOVE_ALL, b"") if upper is None else (encode_text(upper[0]), encode_text(upper[1]))
        self._stop = self._end
        """The end of the page that is being read: not above `_end`."""
        self._asked = 0
        self._behind: _Whole | None = None
        """The key after the group that is being read; None: none is."""

    @property
    def over(self) -> bool:
        """Whether the whole range was read."""
        return self._at >= self._end

    def ask(self, rows: int) -> _Asked:
        """Return the statement for the next page, of at most `rows` rows, and its arguments."""
        self._asked, self._stop = rows, self._end
        return self._bounded(*self._where())

    def ask_keys(self, rows: int) -> _Asked | None:
        """Return the statement for the keys of the next page; None if the page is in one partition or in a group."""
        self._stop = self._end
        statement, where = self._where()
        return (KEYS_IN_SPACE, (self._space, rows, *where)) if statement is IN_SPACE else None

    def ask_values(self, keys: Sequence[asyncpg.Record], rows: int) -> _Asked | None:
        """Return the statement for the page with these keys, of which `rows` were asked for; None if it is empty."""
        stop = _end_of_page(keys, rows)
        self._asked, self._stop = rows, stop or self._end
        statement, where = self._where()
        if statement is IN_SPACE:
            where = where if stop is None else (*self._at, *stop)  # No index key of a group is below the stop.
            return (VALUES_IN_SPACE, (self._space, rows, *where)) if keys else None
        return self._bounded(statement, where)

    def _bounded(self, statement: str, where: Sequence[Argument]) -> _Asked:
        page = KEYS_ONLY[statement] if self._keys_only else statement
        return page, (self._space, self._asked, PAGE_BYTES, *where)

    def ask_short(self, rows: int) -> ShortPage | None:
        """Return the request for the next page; None if it is not one of short keys in one partition."""
        partition_key, row_key = self._at
        if in_group(row_key) or not self._in_one_partition():
            return None
        self._asked, self._behind = rows, None
        row_end = self._end[1] if partition_key == self._end[0] else _ABOVE_ALL
        return ShortPage(self._space, index_key(partition_key), row_key, _index_key_end(row_end), rows)

    def _where(self) -> _Asked:
        partition_key, row_key = self._at
        end_partition, end_row = self._stop
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
        return self._stop[0] == partition_key or self._stop == (partition_key + b"\0", b"")

    def take(self, page: Sequence[asyncpg.Record]) -> Sequence[asyncpg.Record]:
        """Return the next rows of a page, and move behind them."""
        cut = len(page) == self._asked
        if page and page[-1][2] is None:
            cut, page = True, page[: next(index for index, record in enumerate(page) if record[2] is None)]
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
            self._at = self._behind or self._stop
        return page

    def _first_of_group(self, page: Sequence[asyncpg.Record]) -> int | None:
        one = self._in_one_partition()
        for index, record in enumerate(page):
            if len(record[1]) > PREFIX_BYTES or (len(record[0]) > PREFIX_BYTES and not one):
                return index
        return None


def _end_of_page(keys: Sequence[asyncpg.Record], rows: int) -> _Whole | None:
    """Return the key that the page of some index keys ends below; None if it is the end of the range.

    Args:
        keys: partition key, row key and bytes of each row.
        rows: how many were asked for.
    """
    size = 0
    for partition_key, row_key, bytes_ in keys:
        if len(partition_key) > PREFIX_BYTES:
            return partition_key[:PREFIX_BYTES] + b"\0", b""
        if len(row_key) > PREFIX_BYTES:
            return partition_key, row_key[:PREFIX_BYTES] + b"\0"
        size += bytes_
        if size >= PAGE_BYTES:
            return partition_key, row_key + b"\0"
    return (keys[-1][0], keys[-1][1] + b"\0") if len(keys) == rows else None


def _index_key_end(key: bytes) -> bytes:
    """Return a bound of index keys that admits all short keys below a bound, and no other short ones."""
    return after_group(key) if in_group(key) else key


async def scan(
    pool: Pool,
    pages: PageReads | None,
    shard_pages: ShardPageReads | None,
    space: int,
    ranges: Sequence[KeyRange],
    limit: int | None,
    *,
    keys_only: bool = False,
) -> AsyncGenerator[PageSlice, None]:
    """Yield the rows of some ranges, see `Engine.scan`.

    Args:
        pool: connections to the database.
        pages: reads short pages; None if the database cannot.
        shard_pages: reads a page over partitions, its keys before its values; None if one statement reads both.
        space: the space.
        ranges: its ranges.
        limit: the most rows; None: all.
        keys_only: whether to read no values.
    """
    walks = _walks(space, ranges, keys_only=keys_only)
    if keys_only:
        pages = shard_pages = None
    if not walks or limit == 0:
        return
    if len(walks) == 1:
        page = await _first_page(pool, pages, shard_pages, walks[0], _rows(limit))
        if walks[0].over or len(page) == limit:
            for part in _slices(page):
                yield part
                await asyncio.sleep(0)
            return
        del page  # Waiting for a connection may take long, and many scans may wait.
    async with pool.snapshot() as connection:

        def fetch(asked: _Asked) -> Awaitable[Sequence[asyncpg.Record]]:
            return connection.fetch(asked[0], *asked[1], timeout=pool.page_seconds)

        left = limit
        for walk in _walks(space, ranges, keys_only=keys_only):
            while not walk.over and left != 0:
                page = await _page(fetch, walk, _rows(left), keys_first=shard_pages is not None)
                left = None if left is None else left - len(page)
                for part in _slices(page):
                    yield part
                    await asyncio.sleep(0)


class DatabaseSnapshot:
    """A `Snapshot`.

    Args:
        connection: in a transaction with a snapshot.
        seconds: bounds a statement; None: as any other.
        of_partitions: whether the rows of each partition need a statement of their own.
    """

    def __init__(self, connection: Connection, seconds: float | None, *, of_partitions: bool) -> None:
        self._connection = connection
        self._seconds = seconds
        self._of_partitions = of_partitions

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """See `Snapshot`."""
        found: list[Key] = []
        for walk in _walks(space, [key_range], keys_only=True):
            while not walk.over and len(found) < limit:
                page = await _page(self._fetch, walk, _rows(limit - len(found)), keys_first=False)
                found += [(decode_text(partition), decode_text(row)) for partition, row, _ in page]
        return found

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        asked = [(text_index_key(partition), text_index_key(row)) for partition, row in keys]
        if not self._of_partitions:
            columns = [space] * len(asked), *zip(*asked, strict=True)
            return [record[0] for record in await self._fetch((GET, columns))]
        found: dict[tuple[bytes, bytes], bytes] = {}
        for partition, rows in groupby(asked, itemgetter(0)):
            of_partition = space, partition, [row for _, row in rows]
            found.update(
                ((partition, row), value) for row, value in await self._fetch((GET_OF_PARTITION, of_partition))
            )
        return [found.get(each) for each in asked]

    def _fetch(self, asked: _Asked) -> Awaitable[Sequence[asyncpg.Record]]:
        return self._connection.fetch(asked[0], *asked[1], timeout=self._seconds)


async def _first_page(
    pool: Pool, pages: PageReads | None, shard_pages: ShardPageReads | None, walk: _Walk, rows: int
) -> Sequence[asyncpg.Record]:
    short = walk.ask_short(rows) if pages is not None and rows <= ROWS_MAX else None
    found = None if pages is None or short is None else await pages.read(short)
    if found is not None:
        return walk.take(found)

    def fetch(asked: _Asked) -> Awaitable[Sequence[asyncpg.Record]]:
        if shard_pages is not None and asked[0] in (KEYS_IN_SPACE, VALUES_IN_SPACE):
            return shard_pages.fetch(*asked, rows)
        return pool.fetch_page(asked[0], *asked[1], partition=_partition_of(asked))

    return await _page(fetch, walk, rows, keys_first=shard_pages is not None)


async def _page(fetch: _Fetch, walk: _Walk, rows: int, *, keys_first: bool) -> Sequence[asyncpg.Record]:
    of_keys = walk.ask_keys(rows) if keys_first else None
    asked = walk.ask(rows) if of_keys is None else walk.ask_values(await fetch(of_keys), rows)
    return walk.take([] if asked is None else await fetch(asked))


def _partition_of(asked: _Asked) -> bytes | None:
    """Return the index key of the one partition that a statement reads; None if it reads several."""
    statement, arguments = asked
    of_one = (IN_PARTITION, ROW_GROUP, KEYS_ONLY[IN_PARTITION], KEYS_ONLY[ROW_GROUP])
    partition = arguments[3] if statement in of_one else None
    return partition if isinstance(partition, bytes) else None


def _walks(space: int, ranges: Sequence[KeyRange], *, keys_only: bool) -> list[_Walk]:
    return [walk for each in ranges if not (walk := _Walk(space, each, keys_only=keys_only)).over]


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
