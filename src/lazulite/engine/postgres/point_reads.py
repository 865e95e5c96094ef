"""Point reads, coalesced.

Reads that wait share a statement, if the database can read rows of several partitions in one. A Citus coordinator would
plan such a statement again for all of its shards. So it gets a statement for each row that is routed to one shard. The
first read of a node goes alone, which costs this process less. Those that wait for the node meanwhile share a round
trip.
"""

from collections.abc import Awaitable, Sequence

from lazulite.engine.postgres.citus.node_batchers import NodeBatchers
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import RequestBatcher
from lazulite.engine.postgres.sql_statements import GET, GET_EACH

_LINGER_SECONDS = 0.002
"""How long a read lingers for others at most. Fewer, larger statements cost less CPU, most of all if several processes
and their database share too few processors."""

_Key = tuple[int, bytes, bytes]
"""A space, and the index keys of partition and row."""


class PointReads:
    """Reads single rows.

    Args:
        pool: connections to the database.
        shards: where partitions are.
        each: whether each row needs a statement of its own.
    """

    def __init__(self, pool: Pool, shards: ShardMap, *, each: bool) -> None:
        self._pool = pool
        self._each = each
        self._alone: set[RequestBatcher[_Key, bytes | None]] = set()
        """The batchers of the nodes for which a read is in flight alone."""
        send = self._get_each if each else self._get_all
        self._batchers = NodeBatchers(shards, lambda: RequestBatcher(send, linger_seconds=_LINGER_SECONDS))

    def get(self, space: int, partition_key: bytes, row_key: bytes) -> Awaitable[bytes | None]:
        """Return an awaitable of a row's value, by index keys."""
        batcher, key = self._batchers.of(partition_key), (space, partition_key, row_key)
        if not self._each or batcher in self._alone:
            return batcher(key)
        self._alone.add(batcher)
        return self._get_alone(batcher, key)

    async def _get_alone(self, batcher: RequestBatcher[_Key, bytes | None], key: _Key) -> bytes | None:
        try:
            return (await self._get_each([key]))[0]
        finally:
            self._alone.discard(batcher)

    async def finished(self) -> None:
        """Return when no read is in flight."""
        await self._batchers.finished()

    async def _get_all(self, keys: Sequence[_Key]) -> Sequence[bytes | None]:
        found = await self._pool.fetch(GET, *zip(*keys, strict=True), reads=True)
        return [record[0] for record in found]

    async def _get_each(self, keys: Sequence[_Key]) -> Sequence[bytes | None]:
        asked = [(*key, place) for place, key in enumerate(keys)]
        values: list[bytes | None] = [None] * len(keys)
        for place, value in await self._pool.fetch_each(GET_EACH, asked, partition=keys[0][1]):
            values[place] = value
        return values
