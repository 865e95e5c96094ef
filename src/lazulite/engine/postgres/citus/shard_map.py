"""The shards and nodes of partitions and contents, as far as this process knows.

Citus puts a partition on the shard whose range has the hash of its key, and each shard on a node. Shards are split and
moved, so what is known here is a hint: it chooses which requests go together and which wait for each other, never
which rows are read or written.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count

import asyncpg

from lazulite.engine.postgres.citus.hash_bytes import hash_bytes

LOOK = """
SELECT name, shardid, shardminvalue::int AS lower, groupid AS node,
    CASE WHEN nodename LIKE '%:%' THEN '[' || nodename || ']' ELSE nodename END || ':' || nodeport AS address,
    worker_hash('\\x6c617a756c697465'::bytea) AS sample
FROM (VALUES ('contents', 'lazulite.contents'::regclass), ('rows', 'lazulite.rows'::regclass)) AS kind (name, relation)
JOIN pg_catalog.pg_dist_shard ON logicalrelid = relation JOIN pg_catalog.pg_dist_placement USING (shardid)
JOIN pg_catalog.pg_dist_node USING (groupid)
WHERE noderole = 'primary' ORDER BY name, lower
"""
"""The shards of two tables by the lower bounds of their hashes, with their nodes; and the hash of a sample."""
_SAMPLE = b"lazulite"


class ShardMap:
    """The map of a table, in which all partitions are on one shard of one node until `update`.

    Args:
        table: `rows`; or `contents`, whose "partitions" are contents and have the index keys of `bigint_bytes`.
    """

    def __init__(self, table: str = "rows") -> None:
        self._table = table
        self._lower: list[int] = []
        """The lowest hash of each shard but the first."""
        self._nodes: list[int] = [0]
        """By shard."""
        self._addresses: dict[int, str] = {}
        self._shards_of_nodes: dict[int, tuple[int, ...]] = {}
        self._samples: dict[int, bytes] = {0: b""}
        self._said: Sequence[tuple[object, ...]] = ()

    def update(self, found: Sequence[asyncpg.Record]) -> None:
        """Take over a coordinator's answer to `LOOK`, unless Citus hashes otherwise than this process."""
        self._said = [tuple(record) for record in found]
        found = [record for record in found if record["name"] == self._table]
        if not found or any(record["sample"] != _hash(_SAMPLE) for record in found):
            return
        nodes = [record["node"] for record in found]
        lower = [record["lower"] for record in found[1:]]
        if (nodes, lower) != (self._nodes, self._lower):
            self._nodes, self._lower = nodes, lower
            self._samples = self._sampled()
        self._addresses = {record["node"]: record["address"] for record in found}
        self._shards_of_nodes = {
            node: tuple(sorted(record["shardid"] for record in found if record["node"] == node))
            for node in self._addresses
        }

    def is_as(self, found: Sequence[asyncpg.Record]) -> bool:
        """Return whether another node's answer to `LOOK` is the one that was taken over last."""
        return self._said == [tuple(record) for record in found]

    def shard(self, partition_key: bytes) -> int:
        """Return the shard of a partition, by its index key, as a number from 0 on."""
        return bisect_right(self._lower, _hash(partition_key)) if self._lower else 0

    def node(self, partition_key: bytes) -> int:
        """Return the node of a partition, by its index key."""
        return self._nodes[self.shard(partition_key)]

    def address(self, node: int) -> str:
        """Return the address of a node."""
        return self._addresses.get(node, "")

    def nodes(self) -> Mapping[int, str]:
        """Return the addresses of all nodes with shards."""
        return self._addresses

    def shards_of_nodes(self) -> Mapping[int, tuple[int, ...]]:
        """Return for each node the numbers that Citus has for its shards, in order."""
        return self._shards_of_nodes

    def samples(self) -> Mapping[int, bytes]:
        """Return a partition of each node, by its index key."""
        return self._samples

    def _sampled(self) -> dict[int, bytes]:
        nodes = set(self._nodes)
        samples: dict[int, bytes] = {}
        for number in count():
            key = b"%d" % number
            samples.setdefault(self.node(key), key)
            if samples.keys() == nodes:
                return samples
        raise AssertionError


@lru_cache(65536)
def _hash(key: bytes) -> int:
    found = hash_bytes(key)
    return found - (1 << 32) if found >> 31 else found
