"""The health of a Citus cluster: durable writes on each node, of which one suffices.

The reference tables are on every node, so a write to one of them fails while any node is away. These writes go to a
version row of each node instead, in a space of their own.
"""

import asyncio

from lazulite.engine.contract import EngineError
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.pool import Pool

SPACE = -1
"""No space of the store has this number."""

_WRITE = """
INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ($1, $2, 0)
ON CONFLICT (space, partition_key) DO UPDATE SET stamp = excluded.stamp
"""


class ClusterHealth:
    """Writes to each node.

    Args:
        pool: connections to the coordinator.
        shards: where partitions are.

    Attributes:
        away: the addresses of the nodes that took no write at the last check.
    """

    def __init__(self, pool: Pool, shards: ShardMap) -> None:
        self._pool = pool
        self._shards = shards
        self.away: tuple[str, ...] = ()

    async def check_writable(self) -> None:
        """Return if one node takes writes.

        Raises:
            EngineError: none does.
        """
        samples = self._shards.samples()
        outcomes = await asyncio.gather(*map(self._write, samples.values()))
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == len(outcomes):
            raise failures[0]
        self.away = tuple(
            sorted(self._shards.address(node) for node, failed in zip(samples, outcomes, strict=True) if failed)
        )

    async def _write(self, partition_key: bytes) -> EngineError | None:
        try:
            await self._pool.fetch(_WRITE, SPACE, partition_key, partition=partition_key)
        except EngineError as error:
            return error
        return None
