"""A store with queues: `check`, `backup`, `restore` and `copy` cover it."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from lazulite.cli import main
from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.queue.catalog import Catalog, Queue
from lazulite.queue.messages import Messages
from lazulite.records.catalog import marker_of
from lazulite.records.spaces import QUEUES
from lazulite.settings.config import store_path


async def fill(engine: Engine) -> None:
    catalog = Catalog(engine)
    for name in ("empty", "jobs", "cleared", "gone"):
        assert await catalog.create("acct", name, (("k", "v"),))
    messages = Messages(engine, system_clock, Random(1))
    for name in ("jobs", "cleared", "gone"):
        queue = await catalog.require("acct", name)
        for text in (b"a", b"b", b"c"):
            await messages.put(queue, text, 0, 60)
    await messages.get(await catalog.require("acct", "jobs"), 1, 30)
    await catalog.clear("acct", "cleared")
    await catalog.delete("acct", "gone")


async def test_commands_cover_queues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    location, copied = tmp_path / "data", tmp_path / "copied"
    location.mkdir(mode=0o700)
    engine = RocksEngine.open(store_path(location), system_clock)
    await fill(engine)
    await engine.close()
    checksums = set()
    for each in (location, copied):
        if each is copied:
            assert await _run("copy", "--silent", "--from", location, "--to", copied) == 0, capsys.readouterr().err
            capsys.readouterr()
        assert await _run("check", "-l", each) == 0, capsys.readouterr().err
        lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
        assert (lines["queues"], lines["messages"], lines["tables"]) == ("3", "3", "0")
        checksums.add(lines["checksum"])
    assert len(checksums) == 1
    engine = RocksEngine.open(store_path(copied), system_clock)
    queue = await Catalog(engine).require("acct", "jobs")
    assert queue.metadata == (("k", "v"),)
    assert await Messages(engine, system_clock, Random(2)).count(queue) == 3
    await engine.close()


async def _run(*arguments: str | Path) -> int:
    return await asyncio.to_thread(main, list(map(str, arguments)))


async def test_an_unfinished_drop_is_finished_at_the_start() -> None:
    engine = RocksEngine.open(None, system_clock)
    try:
        catalog = Catalog(engine)
        await catalog.create("acct", "jobs", ())
        queue = await catalog.require("acct", "jobs")
        await Messages(engine, system_clock, Random(1)).put(queue, b"a", 0, None)
        marker = marker_of(queue.space)
        await engine.commit(QUEUES, "acct", changing(["jobs", marker], lambda _, __: {"jobs": None, marker: b""}))
        catalog = Catalog(engine)
        assert [each.name async for each in catalog.all()] == []
        await catalog.finish_drops()
        assert await engine.get(QUEUES, "acct", marker) is None
        assert await catalog.get("acct", marker) is None
        with pytest.raises(ServiceError, match="QueueNotFound"):
            await catalog.require("acct", "jobs")
        for change in (catalog.delete, catalog.clear):
            with pytest.raises(ServiceError, match="QueueNotFound"):
                await change("acct", "jobs")
    finally:
        await engine.close()


def test_a_queue_is_read_as_written() -> None:
    queue = Queue("jobs", 2000, 16, (("a", "1"),))
    assert Queue.from_bytes(queue.to_bytes()) == queue
