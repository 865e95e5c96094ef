"""What an observer receives, and that nothing of it is there without one."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from lazulite.engine.commit import changing
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.database import STATISTICS
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.flush_stats import Flush
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.protocol.clock import system_clock

PATIENT = RocksSettings(recovery_retry_seconds=1000)


def put(value: bytes) -> Callable[[Sequence[bytes | None], int], Mapping[str, bytes | None]]:
    return lambda current, timestamp: {"row": value}


class Timer:
    """A second passes at each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


async def test_a_meter_is_reported_of_each_flush(tmp_path: Path) -> None:
    reported: list[Flush] = []
    engine = RocksEngine.open(tmp_path / "store", system_clock, timer=Timer(), flush_observer=reported.append)
    await asyncio.gather(*(engine.commit(1024, f"p{number}", changing(["row"], put(b"12345"))) for number in range(7)))
    await engine.check_writable()
    await engine.close()
    assert [flush.commits for flush in reported] == [7, 1]
    assert reported[0].size_bytes > 7 * 5
    assert reported[1].size_bytes == 0
    assert {(flush.write_seconds, flush.sync_seconds) for flush in reported} == {(1.0, 1.0)}


@pytest.mark.parametrize("step", ["before_write", "before_sync", "after_sync"])
async def test_a_meter_is_not_reported_of_a_flush_that_failed(tmp_path: Path, step: str) -> None:
    reported: list[Flush] = []

    def fail() -> None:
        raise Exception("IO error")

    engine = RocksEngine.open(
        tmp_path / "store", system_clock, PATIENT, failpoints={step: fail}, flush_observer=reported.append
    )
    assert engine.statistics()["writable"] == 1
    with pytest.raises(EngineError):
        await engine.commit(1024, "p", changing(["row"], put(b"")))
    assert reported == []
    assert engine.statistics()["writable"] == 0
    await engine.close()


async def test_without_an_observer_nothing_stands_between_the_group_and_the_store() -> None:
    engine = RocksEngine.open(None, system_clock)
    database = engine._lifecycle.opened()
    assert (database.group_commit._write, database.group_commit._sync) == (database._write, database._sync)
    await engine.close()


async def test_the_statistics_are_the_stores(tmp_path: Path) -> None:
    engine = RocksEngine.open(tmp_path / "store", system_clock)
    empty = engine.statistics()
    assert set(empty) == {*STATISTICS, "writable"}
    await engine.commit(1024, "p", changing(["row"], put(bytes(100_000))))
    assert engine.statistics()["memtable_bytes"] >= empty["memtable_bytes"] + 100_000
    assert engine.statistics()["keys_estimate"] > empty["keys_estimate"]
    await engine.close()
    assert engine.statistics() == {}
    engine = RocksEngine.open(tmp_path / "store", system_clock)
    assert engine.statistics()["file_bytes"] > 0
    await engine.close()
