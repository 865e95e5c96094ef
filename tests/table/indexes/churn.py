"""Writers of a table whose indexes are declared, built and dropped without end, while flushes fail now and then.

Run as a program, with the directory of a store and a seed, until it is killed. It prints a line for each write.
"""

import asyncio
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.table.indexes.build import IndexBuilder
from lazulite.table.indexes.definition import DeclarationError, Scope, State
from tests.engine.rocksdb.failing import QUICK, Failpoints, writable_again
from tests.table.batches import CONTENT_TYPE, Operation, change_set
from tests.table.client import ACCOUNT, Client

from .builders import builder_of

TABLE = "orders"
CITIES, TOTALS = ("a", "b", ""), range(4)
ON = {"city": ["City"], "total": ["Total"], "both": ["City", "Total"]}
_WRITERS = 6


def _operation(of: random.Random, partition: str, row: int) -> Operation:
    url = f"{TABLE}(PartitionKey='{partition}',RowKey='{row:02}')"
    if of.random() < 0.1:
        return Operation("DELETE", url, headers={"If-Match": "*"})
    entity = {"City": of.choice(CITIES), "Total": of.choice(TOTALS)}
    for name in of.sample(list(entity), of.choice([0, 0, 1])):
        del entity[name]
    return Operation(of.choice(["PUT", "MERGE"]), url, entity)


async def _write(client: Client, of: random.Random) -> None:
    while True:
        rows = of.sample(range(30), of.choice([1, 1, 5]))
        partition = of.choice("pq")
        operations = [_operation(of, partition, row) for row in rows]
        with suppress(EngineError):
            await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
        os.write(1, b"\n")
        await asyncio.sleep(0)


async def _change_indexes(builder: IndexBuilder, of: random.Random) -> None:
    while True:
        name = of.choice(list(ON))
        with suppress(EngineError, ServiceError, DeclarationError):
            index = (await builder.indexes(ACCOUNT, TABLE)).find(name)
            if index is not None and index.state is State.READY and of.random() < 0.5:
                await builder.drop(ACCOUNT, TABLE, name)
            else:
                if index is not None and of.random() < 0.8:
                    await builder.replace(ACCOUNT, TABLE, name)
                elif index is None:
                    await builder.create(ACCOUNT, TABLE, name, ON[name], of.choice(list(Scope)))
                async for _ in builder.build(ACCOUNT, TABLE, name):
                    pass
        await asyncio.sleep(of.random() / 50)


async def _fail(engine: RocksEngine, failpoints: Failpoints, of: random.Random) -> None:
    while True:
        await asyncio.sleep(of.random() / 10)
        failpoints.fail(of.choice(list(failpoints)), "IO error: planted")
        await asyncio.sleep(0.01)
        failpoints.armed.clear()
        await writable_again(engine)


async def build_all(builder: IndexBuilder) -> None:
    """Go on with the builds that were interrupted."""
    for account, table, name in [each async for each in builder.unfinished()]:
        async for _ in builder.build(account, table, name):
            pass


async def churn(path: Path, seed: int) -> None:
    """Write and change indexes, without end."""
    failpoints, of = Failpoints(), random.Random(seed)
    engine = RocksEngine.open(path, system_clock, QUICK, failpoints=failpoints)
    client = Client(engine)
    await client("POST", "Tables", body={"TableName": TABLE})
    builder = builder_of(engine, client)
    await build_all(builder)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(_WRITERS):
            tasks.create_task(_write(client, random.Random(of.random())))
        tasks.create_task(_change_indexes(builder, of))
        tasks.create_task(_fail(engine, failpoints, of))


if __name__ == "__main__":
    asyncio.run(churn(Path(sys.argv[1]), int(sys.argv[2])))
