"""Processes are killed while rows and indexes change and flushes fail: entries and rows agree, and so do queries."""

import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from lazulite.app.registry import SPACES
from lazulite.engine.content.contract import Claim, ContentId
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.protocol.clock import system_clock
from lazulite.records.verification import verify
from lazulite.table.indexes.definition import State
from tests.table.client import ACCOUNT, Client, values

from .builders import builder_of
from .churn import CITIES, TABLE, TOTALS, build_all

CYCLES = 3
WRITES = (150, 600)


def no_content(content: ContentId, _: Claim) -> int:
    raise AssertionError(content)


def run_and_kill(path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "tests.table.indexes.churn", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        for _ in range(random.Random(seed).randint(*WRITES)):
            assert process.stdout.readline() == b"\n"
        process.kill()


def problems(path: Path) -> list[str]:
    with inspect(path) as inspection:
        *_, report = verify(inspection.rows(), inspection.newest_timestamp(), SPACES, no_content)
        return report.problems


async def test_entries_are_those_of_the_rows_after_each_kill(tmp_path: Path) -> None:
    path = tmp_path / "store"
    for seed in range(CYCLES):
        run_and_kill(path, seed)
        assert problems(path) == []
    engine = RocksEngine.open(path, system_clock)
    client = Client(engine)
    builder = builder_of(engine, client)
    await build_all(builder)
    assert {index.state for index in (await builder.indexes(ACCOUNT, TABLE)).declared} <= {State.READY}
    rows = values(await client("GET", f"{TABLE}()"))
    assert rows
    asked: list[tuple[str, object, str]] = [("City", city, f"City eq '{city}'") for city in CITIES]
    asked += [("Total", total, f"Total eq {total}") for total in TOTALS]
    for name, value, text in asked:
        for partition in ("", "p"):
            within = f"PartitionKey eq '{partition}' and {text}" if partition else text
            found = values(await client("GET", f"{TABLE}()", f"$filter={quote(within)}"))
            assert found == [
                row for row in rows if row.get(name) == value and row["PartitionKey"].startswith(partition)
            ]
    await engine.close()
    assert problems(path) == []
