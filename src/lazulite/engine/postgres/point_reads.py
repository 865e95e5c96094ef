"""Reads of single rows, gathered where the database can be asked for rows of several partitions at once."""

from collections.abc import Awaitable, Sequence

from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import Gather
from lazulite.engine.postgres.sql_statements import GET, GET_ONE

_PATIENCE_SECONDS = 0.002
"""What a read may wait for others at most: fewer and larger statements are cheaper for all sides, most of all where
several processes and their database want more processors than there are."""

_Key = tuple[int, bytes, bytes]
"""A space, and the forms of both keys."""


class Reads:
    """See above.

    Args:
        pool: of connections.
        gather: whether rows of several partitions may be asked for at once.
    """

    def __init__(self, pool: Pool, *, gather: bool) -> None:
        self._pool = pool
        self._gather = Gather(self._get_all, patience_seconds=_PATIENCE_SECONDS) if gather else None

    def get(self, space: int, partition_key: bytes, row_key: bytes) -> Awaitable[bytes | None]:
        """Return what gives a row's value by the forms of its key."""
        key = (space, partition_key, row_key)
        return self._get_one(*key) if self._gather is None else self._gather(key)

    async def _get_one(self, space: int, partition_key: bytes, row_key: bytes) -> bytes | None:
        found = await self._pool.fetch(GET_ONE, space, partition_key, row_key, reads=True)
        return found[0][0] if found else None

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        if self._gather is not None:
            await self._gather.finished()

    async def _get_all(self, keys: Sequence[_Key]) -> Sequence[bytes | None]:
        found = await self._pool.fetch(GET, *zip(*keys, strict=True), reads=True)
        return [record[0] for record in found]
