"""A database that cannot be used says so as engines do, from the first moment on."""

import socket
from urllib.parse import urlsplit

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres import schema
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.postgres.server import shared


@pytest.mark.parametrize("change", [{"path": "/nowhere"}, {"netloc": "nobody@127.0.0.1:1"}])
async def test_a_database_that_lets_nobody_in_is_unavailable(change: dict[str, str]) -> None:
    settings = PostgresSettings(dsn=urlsplit(shared().dsn())._replace(**change).geturl())
    engine = PostgresEngine(settings, system_clock)
    for call in (engine.start(), engine.get(1, "p", "r"), schema.has_tables(settings)):
        with pytest.raises(EngineUnavailableError, match="cannot"):
            await call
    await engine.close()


async def test_a_silent_host_is_said_to_be_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = PostgresSettings(dsn=f"postgresql://nobody@127.0.0.1:{port}/nothing", connect_seconds=0.05)
        engine = PostgresEngine(settings, system_clock)
        reported: set[str] = set()
        while len(reported) < 2:  # The caller that tries, and one shortly after.
            with pytest.raises(EngineUnavailableError, match="Timeout") as caught:
                await engine.get(1, "p", "r")
            reported.add(str(caught.value))
        await engine.close()


async def test_whether_there_are_tables_is_asked_without_making_them() -> None:
    with shared().database() as dsn:
        settings = PostgresSettings(dsn=dsn)
        assert not await schema.has_tables(settings)
        assert not await schema.has_tables(settings)
        engine = PostgresEngine(settings, system_clock)
        await engine.start()
        await engine.close()
        assert await schema.has_tables(settings)
