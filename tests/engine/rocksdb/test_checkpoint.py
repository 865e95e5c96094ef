"""A checkpoint has what was acknowledged, and waits for what is on its way to the disk."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.protocol.clock import system_clock


async def put(engine: RocksEngine, row: str) -> None:
    await engine.commit(5, "p", [row], lambda current, timestamp: {row: row.encode()})


def rows_of(store: Path) -> dict[bytes, bytes]:
    with inspect(store) as inspection:
        assert inspection.newest_timestamp() > 0
        return dict(inspection.rows())


async def test_a_checkpoint_is_made_between_two_commit_groups(tmp_path: Path) -> None:
    entered, let_go = threading.Event(), threading.Event()
    failpoints: dict[str, Callable[[], None]] = {"after_sync": lambda: None}
    engine = RocksEngine.open(tmp_path / "store", system_clock, failpoints=failpoints)
    await put(engine, "acknowledged")

    def hold() -> None:
        entered.set()
        assert let_go.wait(30)

    failpoints["before_sync"] = hold
    flushing = asyncio.create_task(put(engine, "flushing"))
    assert await asyncio.to_thread(entered.wait, 30)
    checkpoint = asyncio.create_task(engine.checkpoint(tmp_path / "checkpoint"))
    for _ in range(20):
        await asyncio.sleep(0)
    open_group = asyncio.create_task(put(engine, "open"))
    await asyncio.sleep(0)
    assert not (await asyncio.to_thread((tmp_path / "checkpoint").exists)), "it would have what is not durable"
    let_go.set()
    await asyncio.gather(flushing, checkpoint, open_group)
    await engine.close()
    names = ("acknowledged", "flushing")
    assert rows_of(tmp_path / "checkpoint") == {encode_key(5, "p", name): name.encode() for name in names}
    assert len(rows_of(tmp_path / "store")) == 3


async def test_a_store_that_failed_or_closed_gives_none(tmp_path: Path) -> None:
    def fail() -> None:
        raise Exception("IO error: made up")

    failpoints: dict[str, Callable[[], None]] = {"after_sync": lambda: None}
    engine = RocksEngine.open(tmp_path / "store", system_clock, failpoints=failpoints)
    failpoints["before_sync"] = fail
    with pytest.raises(EngineError):
        await put(engine, "row")
    with pytest.raises(EngineUnavailableError):
        await engine.checkpoint(tmp_path / "checkpoint")
    failpoints.clear()
    await engine.close()
    with pytest.raises(EngineUnavailableError):
        await engine.checkpoint(tmp_path / "checkpoint")
