"""Point reads, coalesced if the database can read rows of several partitions in one statement."""

from collections.abc import Awaitable, Sequence

from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import RequestBatcher
from lazulite.engine.postgres.sql_statements import GET, GET_ONE

_LINGER_SECONDS = 0.002
"""How long a read lingers for others at most. Fewer, larger statements cost less CPU, most of all if several processes
and their database share too few processors."""

_Key = tuple[int, bytes, bytes]
"""A space, and the index keys of partition and row."""


class PointReads:
    """Reads single rows.

    Args:
        pool: connections to the database.
        coalesce: whether one statement may read rows of several partitions.
    """

    def __init__(self, pool: Pool, *, coalesce: bool) -> None:
        self._pool = pool
        self._batcher = RequestBatcher(self._get_all, linger_seconds=_LINGER_SECONDS) if coalesce else None

    def get(self, space: int, partition_key: bytes, row_key: bytes) -> Awaitable[bytes | None]:
        """Return an awaitable of a row's value, by index keys."""
        key = (space, partition_key, row_key)
        return self._get_one(*key) if self._batcher is None else self._batcher(key)

    async def _get_one(self, space: int, partition_key: bytes, row_key: bytes) -> bytes | None:
        found = await self._pool.fetch(GET_ONE, space, partition_key, row_key, reads=True, partition=partition_key)
        return found[0][0] if found else None

    async def finished(self) -> None:
        """Return when no read is in flight."""
        if self._batcher is not None:
            await self._batcher.finished()

    async def _get_all(self, keys: Sequence[_Key]) -> Sequence[bytes | None]:
        found = await self._pool.fetch(GET, *zip(*keys, strict=True), reads=True)
        return [record[0] for record in found]
