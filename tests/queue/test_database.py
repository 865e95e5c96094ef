"""Two processes on one database: how often their commits meet."""

import asyncio
from collections.abc import Awaitable
from random import Random

import pytest

from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.protocol.clock import system_clock
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.processes import Processes
from tests.engine.postgres.conftest import Open, _open_engine, _settings  # noqa: F401 - fixtures

from .world import receipt

CONSUMERS, CYCLES = 32, 10


def conflicts_of(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each commit that another process came before."""
    met: list[int] = []
    assert engine._components is not None
    io = engine._components.partitions._io
    apply_locked = io.apply_locked

    async def noted(*arguments: object) -> object:
        met.append(1)
        done: object = await apply_locked(*arguments)  # type: ignore[arg-type]  # they are passed on
        return done

    monkeypatch.setattr(io, "apply_locked", noted)
    return met


async def test_consumers_of_two_processes_do_not_fight(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without home shards, hundreds of these commits come too late."""
    queue = Queue("jobs", 5000, 16)
    conflicts: list[list[int]] = []
    both: list[Messages] = []
    known: list[Processes] = []
    for seed in range(2):
        engine = open_engine()
        await engine.start()
        processes = Processes(engine, system_clock, Random(seed))
        await processes.announce()
        known.append(processes)
        both.append(Messages(engine, system_clock, Random(seed), homes=processes.homes))
        conflicts.append(conflicts_of(engine, monkeypatch))
    for processes in known:
        await processes.announce()
    ids: set[object] = set()

    async def cycle(messages: Messages) -> None:
        for _ in range(CYCLES):
            await messages.put(queue, b"a", 0, 600)
            for message in await messages.get(queue, 1, 30):
                ids.add(message.id)
                assert await messages.delete(queue, message.id, receipt(message))

    consumers: list[Awaitable[None]] = [cycle(messages) for messages in both for _ in range(CONSUMERS)]
    await asyncio.gather(*consumers)
    assert sum(map(len, conflicts)) <= CONSUMERS
    assert len(ids) + await both[0].count(queue) == 2 * CONSUMERS * CYCLES
