"""Changes of partitions as scripts: which share one, in which order, and what one that fails does to the others."""

import asyncio
import re
from collections.abc import Callable

from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.partition_io import PartitionChange, ScriptIo
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.postgres.sql_scripts import PartitionAddress, RowChange
from tests.engine.postgres.conftest import Open, execute

PARTITIONS = [b"%d" % number for number in range(9)]
VERSIONS = "SELECT partition_key, stamp FROM lazulite.partitions ORDER BY partition_key"


def change(partition: bytes, before: int, after: int) -> PartitionChange:
    rows = [RowChange(b"r", None, after, b"%d" % after)]
    return PartitionChange(PartitionAddress(1, partition, None), before, after, rows)


def sent_by(pool: Pool, found: Callable[[str, bytes], None]) -> None:
    run = pool.run

    async def noted(script: str, partition: bytes) -> None:
        found(script, partition)
        await run(script, partition)

    vars(pool)["run"] = noted


async def test_changes_that_wait_share_a_script(open_engine: Open) -> None:
    engine = open_engine(scripts=True)
    await engine.start()
    io, sent = engine._components.partitions._io, []  # type: ignore[union-attr]  # it has started
    sent_by(engine._pool, lambda script, _: sent.append(script))
    assert await asyncio.gather(*(io.apply(change(each, 0, 5)) for each in PARTITIONS)) == [True] * 9
    assert len(sent) <= 4, "one for each node, and a first one perhaps"
    done = await asyncio.gather(*(io.apply(change(each, 4 if each == b"3" else 5, 6)) for each in PARTITIONS))
    assert done == [each != b"3" for each in PARTITIONS]
    assert execute(VERSIONS) == [(each, 5 if each == b"3" else 6) for each in PARTITIONS]
    assert execute("SELECT convert_from(value, 'utf8') FROM lazulite.rows ORDER BY partition_key") == [
        ("5" if each == b"3" else "6",) for each in PARTITIONS
    ]


async def test_scripts_name_partitions_in_one_order() -> None:
    """So that those of two processes do not wait for each other."""
    orders = []
    for partitions in (PARTITIONS, PARTITIONS[::-1]):
        pool = Pool(PostgresSettings(dsn="postgresql://127.0.0.1:1/none"), lambda _: asyncio.sleep(0))

        async def noted(script: str, _: bytes) -> None:
            orders.append(re.findall(r"advance_from\(1, (\S*),", script))

        vars(pool)["run"] = noted
        io = ScriptIo(pool, ShardMap())
        await asyncio.gather(*(io.apply(change(each, 1, 2)) for each in partitions))
    assert [len(order) for order in orders] == [9, 9]
    assert orders[0] == orders[1]
