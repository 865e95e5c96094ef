"""Short pages of partitions, coalesced if the database can read ranges of several partitions in one statement.

Each page has a share of the bytes of a statement. A page that is larger is read again, by a statement of its own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg

from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import RequestBatcher

ROWS_MAX = 64
"""The most rows of a short page."""
BYTES_MAX = 4 << 20
"""The bytes of the values of a statement."""
_ROWS_OF_WEIGHT = 8

PAGES = """
SELECT partition_key, row_key, value, before, place
FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[])
    WITH ORDINALITY AS asked (space, partition, start, stop, rows_max, place)
CROSS JOIN LATERAL (
    SELECT COALESCE(long_partition_key, partition_key) AS partition_key, COALESCE(long_row_key, row_key) AS row_key,
        value, sum(octet_length(value)) OVER (ORDER BY by_row ROWS UNBOUNDED PRECEDING) - octet_length(value) AS before,
        by_row
    FROM (
        SELECT partition_key, long_partition_key, row_key, long_row_key, value, row_key AS by_row
        FROM lazulite.rows
        WHERE space = asked.space AND partition_key = asked.partition AND row_key >= asked.start
            AND row_key < asked.stop
        ORDER BY by_row LIMIT asked.rows_max
    ) AS page
) AS sized WHERE before < $6 ORDER BY place, by_row
"""
"""A page of each of some ranges of rows, with the number of the range from 1 on. A page ends with the row that makes it
$6 bytes large; `before` counts the bytes before a row."""


class ShortPage(NamedTuple):
    """A request for the first rows of a partition between two bounds, by index keys."""

    space: int
    partition_key: bytes
    start: bytes
    stop: bytes
    rows_max: int


class PageReads:
    """Reads short pages.

    Args:
        pool: connections to the database.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.read = RequestBatcher(self._read, lambda page: 1 + page.rows_max // _ROWS_OF_WEIGHT)
        """Returns the records of a page; None if it must be read alone."""

    async def finished(self) -> None:
        """Return when no read is in flight."""
        await self.read.finished()

    async def _read(self, batch: Sequence[ShortPage]) -> Sequence[list[asyncpg.Record] | None]:
        if len(batch) == 1:
            return [None]
        share = BYTES_MAX // len(batch)
        pages: list[list[asyncpg.Record] | None] = [[] for _ in batch]
        for record in await self._pool.fetch_page(PAGES, *zip(*batch, strict=True), share):
            page = pages[record[4] - 1]
            if page is None:
                continue
            page.append(record)
            if record[3] + len(record[2]) >= share and len(page) < batch[record[4] - 1].rows_max:
                pages[record[4] - 1] = None
        return pages
