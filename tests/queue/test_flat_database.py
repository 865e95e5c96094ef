"""The cost of a get on PostgreSQL, as buffers that its scan touches: the same after mass deletes without a vacuum.

An old snapshot keeps the deleted rows of all rounds but the last."""

import asyncio
import json
from random import Random
from typing import Any

import asyncpg
import pytest

from lazulite.engine.postgres.scan import IN_PARTITION
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from tests.engine.postgres.conftest import Open, _open_engine, _settings, execute  # noqa: F401 - fixtures
from tests.postgres.server import CITUS

from .world import START, receipt

BUFFERS_MAX = 8


def buffers(arguments: list[object]) -> int:
    """Return how many buffers the scan of a page touches."""
    [[plan]] = execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {IN_PARTITION}", *arguments)
    found = json.loads(str(plan))[0]["Plan"]
    return int(found["Shared Hit Blocks"]) + int(found["Shared Read Blocks"])


@pytest.mark.skipif(bool(CITUS), reason="the plan is a worker's")
async def test_a_scan_touches_few_buffers_after_mass_deletes(
    open_engine: Open, settings: PostgresSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    await engine.start()
    execute("ALTER TABLE lazulite.rows SET (autovacuum_enabled = off)")
    reader = await asyncpg.connect(settings.dsn)
    await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM lazulite.rows")  # Rows stay for it.
    now = START
    messages, queue = Messages(engine, lambda: now, Random(1)), Queue("jobs", 5000, 1)
    for step in range(10):
        if step == 9:
            await reader.close()
        await asyncio.gather(*(messages.put(queue, b"a" * 100, 0, None) for _ in range(100)))
        while got := await messages.get(queue, 32, 10**6):
            deletes = (messages.delete(queue, message.id, receipt(message)) for message in got)
            assert all(await asyncio.gather(*deletes))
        now += 3 * TICKS_PER_SECOND
    asked: list[list[object]] = []
    fetch_page = engine._pool.fetch_page

    async def noted(statement: str, *arguments: object, **more: Any) -> object:
        asked.append(list(arguments))
        return await fetch_page(statement, *arguments, **more)

    monkeypatch.setattr(engine._pool, "fetch_page", noted)
    await messages.put(queue, b"a", 0, None)
    assert len(await messages.get(queue, 1, 30)) == 1
    touched = [buffers(arguments) for arguments in asked]
    assert touched
    assert max(touched) <= BUFFERS_MAX, touched
    everything = [*asked[-1][:4], b"v", asked[-1][5]]
    assert buffers(everything) > max(touched)
