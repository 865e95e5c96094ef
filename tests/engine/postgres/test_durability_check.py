import pytest

from lazulite.engine.postgres.durability_check import _warnings
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.conftest import execute

SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "synchronous_standby_names": ""}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"synchronous_commit": "remote_apply", "synchronous_standby_names": "*"}, []),
        ({"synchronous_commit": "off"}, ["synchronous_commit = off"]),
        ({"synchronous_commit": "local"}, []),
        ({"synchronous_commit": "local", "synchronous_standby_names": "*"}, ["synchronous_commit = local"]),
        ({"fsync": "off", "full_page_writes": "off"}, ["fsync = off", "full_page_writes = off"]),
    ],
)
def test_settings_that_lose_writes_are_named(changes: dict[str, str], words: list[str]) -> None:
    found = list(_warnings({**SAFE, **changes}))
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))


@pytest.mark.parametrize(("value", "count"), [("on", 0), ("off", 1)])
async def test_a_start_looks_at_the_database(settings: PostgresSettings, value: str, count: int) -> None:
    execute(
        f"DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = {value}', current_database()); END$$"
    )
    reported: list[str] = []
    engine = PostgresEngine(settings, system_clock, report=reported.append)
    try:
        await engine.start()
        await engine.start()
        assert len(reported) == count
    finally:
        await engine.close()
        execute("DO $$BEGIN EXECUTE format('ALTER DATABASE %I RESET synchronous_commit', current_database()); END$$")
