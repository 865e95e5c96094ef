"""The map of shards, from an answer of a coordinator."""

from collections.abc import Sequence
from typing import cast

import asyncpg

from lazulite.engine.postgres.citus.hash_bytes import bigint_bytes, hash_bytes
from lazulite.engine.postgres.citus.shard_map import ShardMap

SAMPLE = hash_bytes(b"lazulite") - (1 << 32 if hash_bytes(b"lazulite") >> 31 else 0)


def answer(sample: int = SAMPLE) -> Sequence[asyncpg.Record]:
    """Return the answer of a coordinator with four shards of rows on two nodes, and two shards of contents."""
    of_contents, of_rows = (
        [
            {
                "name": name,
                "shardid": 102000 + 10 * first + at,
                "lower": ((1 << 32) // shards) * at - (1 << 31),
                "node": 1 + (at + first) % 2,
                "address": f"w{1 + (at + first) % 2}:5432",
                "sample": sample,
            }
            for at in range(shards)
        ]
        for name, shards, first in (("contents", 2, 1), ("rows", 4, 0))
    )
    found = of_contents + of_rows
    return cast(Sequence[asyncpg.Record], found)


def test_a_partition_is_on_the_shard_of_its_hash() -> None:
    shards = ShardMap()
    keys = [b"%d" % number for number in range(200)]
    assert {(shards.shard(key), shards.node(key)) for key in keys} == {(0, 0)}, "before an answer"
    shards.update(answer())
    for key in keys:
        quarter = (hash_bytes(key) + (1 << 31)) % (1 << 32) >> 30
        assert (shards.shard(key), shards.node(key)) == (quarter, 1 + quarter % 2)
    assert {shards.shard(key) for key in keys} == {0, 1, 2, 3}


def test_each_node_has_an_address_and_a_partition() -> None:
    shards = ShardMap()
    shards.update(answer())
    samples = shards.samples()
    assert {node: shards.address(node) for node in samples} == {1: "w1:5432", 2: "w2:5432"}
    assert all(shards.node(key) == node for node, key in samples.items())
    assert shards.shards_of_nodes() == {1: (102000, 102002), 2: (102001, 102003)}
    shards.update(answer()[2:3])
    assert list(shards.samples()) == list(shards.shards_of_nodes()) == [1], "its shards were moved"


def test_it_knows_nothing_where_keys_are_hashed_otherwise() -> None:
    shards = ShardMap()
    shards.update(answer(SAMPLE + 1))
    shards.update([])
    assert shards.samples() == {0: b""}


def test_contents_have_a_map_of_their_own() -> None:
    shards = ShardMap("contents")
    shards.update(answer())
    keys = [bigint_bytes(number) for number in range(200)]
    for key in keys:
        half = (hash_bytes(key) + (1 << 31)) % (1 << 32) >> 31
        assert (shards.shard(key), shards.node(key)) == (half, 2 - half)
    assert {shards.shard(key) for key in keys} == {0, 1}
