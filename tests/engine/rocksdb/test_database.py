"""What is asked of RocksDB, which no kill -9 can show: the page cache outlives a process, but not a power cut."""

import asyncio
import threading
import time
from pathlib import Path
from typing import cast

import pytest
from rocksdict import Rdict, WriteBatch

from lazulite.engine.commit import changing
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import WorkerThread
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import system_clock


class Recorder:
    """Stands in for a database and notes what it is asked to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def write(self, batch: WriteBatch, options: object) -> None:
        self.calls.append("write")

    def latest_sequence_number(self) -> int:
        return len(self.calls)

    def mark(self, number: int) -> None:
        self.calls.append(f"mark {number}")

    def flush_wal(self, sync: bool) -> None:
        self.calls.append(f"flush_wal sync={sync}")


@pytest.mark.parametrize("to_disk", [True, False])
async def test_a_write_is_answered_after_the_log_was_synced(to_disk: bool) -> None:
    database = Recorder()
    with WorkerThread("test") as worker:
        store = OpenDatabase(
            cast("Rdict", database), to_disk, database.mark, worker, RocksSettings(), time.monotonic, {}
        )
        await store.group_commit.until_all_durable()
    assert database.calls == ["write", f"flush_wal sync={to_disk}", "mark 1"]


async def test_a_write_during_a_sync_waits_for_the_next_one() -> None:
    """That sync may have begun too early to cover it."""
    database = Recorder()
    entered, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert let_go.wait(30)

    with WorkerThread("test") as worker:
        failpoints = {"before_sync": hold}
        store = OpenDatabase(
            cast("Rdict", database), True, database.mark, worker, RocksSettings(), time.monotonic, failpoints
        )
        first = asyncio.ensure_future(store.group_commit.until_all_durable())
        assert await asyncio.to_thread(entered.wait, 30)
        store.group_commit.join([(b"key", None, b"value")])
        late = store.group_commit.until_all_durable()
        let_go.set()
        await first
        assert not late.done()
        await late
    assert database.calls == ["write", "flush_wal sync=True", "mark 1", "write", "flush_wal sync=True", "mark 4"]


async def test_each_part_of_a_large_group_is_synced_before_the_next() -> None:
    """So only the last record of the log can be torn, as `recovery` assumes."""
    database = Recorder()
    settings = RocksSettings(write_bytes_max=1000)
    with WorkerThread("test") as worker:
        store = OpenDatabase(cast("Rdict", database), True, database.mark, worker, settings, time.monotonic, {})
        store.group_commit.join([(b"a", None, bytes(900)), (b"b", None, bytes(900))])
        await store.group_commit.until_all_durable()
    journal, rows, end = 1, 2, 1
    synced = ["write", "flush_wal sync=True"]
    assert [call for call in database.calls if "mark" not in call] == synced * (journal + rows + end)


async def test_a_commit_of_many_rows_is_one_write(tmp_path: Path) -> None:
    writes: list[None] = []
    failpoints = {"before_write": lambda: writes.append(None)}
    engine = RocksEngine.open(tmp_path / "store", system_clock, failpoints=failpoints)
    rows = [str(number) for number in range(100)]
    await engine.commit(1, "p", changing(rows, lambda current, timestamp: dict.fromkeys(rows, b"")))
    assert len(writes) == 1
    await engine.close()
