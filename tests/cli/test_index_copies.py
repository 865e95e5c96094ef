"""A backup, what is restored from it, and a copy of a store have its indexes, with the entries of all rows."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lazulite.cli import main
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import store_path
from lazulite.table.catalog import Catalog
from lazulite.table.indexes.definition import Index, Scope
from lazulite.testing import server
from tests.table.batches import CONTENT_TYPE, Operation, change_set
from tests.table.client import ACCOUNT, Client
from tests.table.indexes.builders import builder_of, check_entries, rows_of

TABLE = "orders"


def test_a_restored_store_and_a_copy_have_the_indexes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, backup, again, copy = (tmp_path / name for name in ("source", "backup", "again", "copy"))
    with server(source):
        pass  # It makes the location.
    asyncio.run(fill(source))
    expected = asyncio.run(indexes_of(source))
    assert [len(entries) for entries in expected.values()] == [20, 20]
    run("backup", backup, "-l", source)
    run("restore", backup, "-l", again)
    run("copy", "--from", source, "--to", copy)
    for location in (again, copy):
        assert asyncio.run(indexes_of(location)) == expected
        run("check", "-l", location)
        assert "no damage found" in capsys.readouterr().out


def run(*arguments: str | Path) -> None:
    assert main([str(argument) for argument in arguments]) == 0


async def fill(location: Path) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    client = Client(engine)
    builder = builder_of(engine, client)
    await client("POST", "Tables", body={"TableName": TABLE})
    operations = [
        Operation("PUT", f"{TABLE}(PartitionKey='p',RowKey='{row:02}')", {"City": f"city{row % 3}", "Total": row})
        for row in range(20)
    ]
    assert (await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)).status == 202
    for name, on, scope in (("by_city", ["City"], Scope.TABLE), ("by_both", ["City", "Total"], Scope.PARTITION)):
        await builder.create(ACCOUNT, TABLE, name, on, scope)
        async for _ in builder.build(ACCOUNT, TABLE, name):
            pass
    await engine.close()


async def indexes_of(location: Path) -> Mapping[Index, Sequence[object]]:
    """Return the entries of each index, which are those of the rows."""
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        await check_entries(engine, TABLE)
        table = await Catalog(engine).read(ACCOUNT, TABLE)
        assert table is not None
        return {index: list(await rows_of(engine, index.space)) for index in table.indexes.declared}
    finally:
        await engine.close()
