"""A database that tests empty one after the other, and engines on it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lazulite.engine.contract import Clock
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.postgres.server import CITUS, Coordinator, shared

Open = Callable[..., PostgresEngine]

SCRIPTS = [True] if CITUS else [False, True]
"""How commits may be sent: Citus takes scripts only."""

by_statements = pytest.mark.skipif(bool(CITUS), reason="Citus gets scripts instead of statements")

OURS = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'lazulite' AND datname = current_database() AND pid <> pg_backend_pid()
"""
"""How many connections engines have to the database."""


@cache
def _database() -> str:
    return shared().create_database()


def execute(statement: str, *arguments: object, after: str = "") -> list[tuple[object, ...]]:
    """Execute a statement in the database, past the engine, after another one on the same connection."""
    return [tuple(record) for record in shared().execute(statement, *arguments, database=_database(), after=after)]


def execute_on_nodes(statement: str) -> list[tuple[object, ...]]:
    """Execute a statement in the database on all nodes of a cluster, or on the server."""
    first = shared()
    nodes = [first, *(first.workers() if isinstance(first, Coordinator) else ())]
    return [tuple(record) for node in nodes for record in node.execute(statement, database=_database())]


@pytest.fixture(name="settings")
def _settings() -> PostgresSettings:
    """Of an empty database."""
    execute("DROP SCHEMA IF EXISTS lazulite CASCADE")
    return PostgresSettings(dsn=shared().dsn(_database()), drop_poll_seconds=3600)


@pytest.fixture(name="open_engine")
async def _open_engine(settings: PostgresSettings) -> AsyncIterator[Open]:
    """Opens engines on one database; they are closed in the end."""
    engines = []

    def opened(clock: Clock = system_clock, **changes: object) -> PostgresEngine:
        engine = PostgresEngine(replace(settings, **changes), clock)  # type: ignore[arg-type]  # a test's own
        engines.append(engine)
        return engine

    yield opened
    for engine in engines:
        await engine.close()


@pytest.fixture(name="engine", params=SCRIPTS, ids=lambda scripts: "scripts" if scripts else "statements")
def _engine(open_engine: Open, request: pytest.FixtureRequest) -> PostgresEngine:
    """An engine that writes by statements, and one that writes by scripts."""
    return open_engine(scripts=request.param)


def statements_of(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each statement is added that an engine sends from now on."""
    sent: list[str] = []

    def note(method: str) -> None:
        fetch = getattr(engine._pool, method)

        async def noted(statement: str, *arguments: object, reads: bool = False, **more: Any) -> object:
            sent.append(statement)
            return await fetch(statement, *arguments, reads=reads, **more)

        monkeypatch.setattr(engine._pool, method, noted)

    note("fetch")
    note("fetch_bulk")
    return sent
