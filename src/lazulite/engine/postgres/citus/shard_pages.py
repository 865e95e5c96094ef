"""Pages over partitions, which each worker of a Citus cluster reads from its own shards.

A coordinator plans a statement for all shards again each time, asks a worker for one shard after the other, and sorts
what it gets. A worker that is asked directly has a prepared statement, which merges its shards by their indexes. This
process merges the answers of the workers.

Invariant: a page has each shard once, from the node that has it. The shards that this process knows are one answer of
the coordinator. The statement of each worker fails unless they are the shards that the worker has, in the snapshot in
which it reads their rows. A page whose statement fails so is read through the coordinator, since a shard was moved or
split. It is also read there while a worker is not joined (see `workers`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from operator import itemgetter

import asyncpg

from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.errors import SHARDS_CHANGED
from lazulite.engine.postgres.pool import Argument, Pool

_SHARD = "SELECT space, partition_key, row_key, value, long_partition_key, long_row_key FROM lazulite.rows_{}"
_AS_KNOWN = """
SELECT COALESCE(array_agg(shardid ORDER BY shardid) = $7, false)::int
FROM pg_catalog.pg_dist_placement JOIN pg_catalog.pg_dist_shard USING (shardid)
JOIN pg_catalog.pg_dist_local_group USING (groupid)
WHERE logicalrelid = 'lazulite.rows'::regclass AND shardstate = 1
"""
"""Whether the shards of a worker are those of the last argument: 0 or 1."""


@lru_cache(1024)
def from_shards(statement: str, shards: tuple[int, ...]) -> str:
    """Return the statement of a page over partitions for the worker that has some shards.

    Args:
        statement: `KEYS_IN_SPACE` or `VALUES_IN_SPACE` of `scan`; the result has one more argument, the shards.
        shards: by their Citus numbers, in order.
    """
    rows = " UNION ALL ".join(map(_SHARD.format, shards))
    return statement.replace("lazulite.rows", f"({rows}) AS of_shards").replace("LIMIT $2", f"LIMIT $2 / ({_AS_KNOWN})")


def merge_pages(pages: Sequence[Sequence[asyncpg.Record]], rows: int) -> Sequence[asyncpg.Record]:
    """Return the first rows of all pages, by their first two columns."""
    return sorted(chain.from_iterable(pages), key=itemgetter(0, 1))[:rows]


class ShardPageReads:
    """Reads the pages over partitions of one engine.

    Args:
        pool: connections to the database.
        shards: where partitions are.
    """

    def __init__(self, pool: Pool, shards: ShardMap) -> None:
        self._pool = pool
        self._shards = shards

    async def fetch(self, statement: str, arguments: Sequence[Argument], rows: int) -> Sequence[asyncpg.Record]:
        """Run a statement of a page over partitions; see `Pool.fetch_page`.

        Args:
            statement: `KEYS_IN_SPACE` or `VALUES_IN_SPACE` of `scan`.
            arguments: its parameters.
            rows: the most rows.
        """
        if self._pool.all_joined:
            with suppress(*SHARDS_CHANGED):
                return merge_pages(await self._pool.fetch_from_nodes(self._asked(statement, arguments)), rows)
        return await self._pool.fetch_page(statement, *arguments)

    def _asked(self, statement: str, arguments: Sequence[Argument]) -> Mapping[int, tuple[str, Sequence[Argument]]]:
        """Return the statement and the arguments for each node."""
        of_nodes = self._shards.shards_of_nodes().items()
        return {node: (from_shards(statement, shards), (*arguments, shards)) for node, shards in of_nodes}
