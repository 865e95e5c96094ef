"""What a start makes of the workers' answers; a cluster itself is in citus/test_cluster."""

import re
from collections.abc import Sequence
from typing import cast

import asyncpg
import pytest

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.server_settings import _durability_warnings, check_literals
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
    found = list(_durability_warnings({**SAFE, **changes}))
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


Row = tuple[str, int, bool, str]


class Coordinator:
    """Answers with rows, or raises."""

    def __init__(self, answer: Sequence[Row] | Exception) -> None:
        self._answer = answer

    async def fetch(self, statement: str, *, timeout: float) -> Sequence[Row]:  # noqa: ASYNC109 - asyncpg's
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def checked(answer: Sequence[Row] | Exception) -> list[str]:
    return await check_literals(cast("Connection", Coordinator(answer)), 5)


async def test_workers_with_standard_strings_are_not_spoken_of() -> None:
    assert await checked([("one", 5432, True, "on"), ("two", 5432, True, "on")]) == []


async def test_a_worker_with_other_strings_is_rejected() -> None:
    with pytest.raises(StoreUnusableError, match="two:5433 has standard_conforming_strings = off"):
        await checked([("one", 5432, False, "away"), ("two", 5433, True, "off")])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([("one", 5432, True, "on"), ("two", 5433, False, "failed\nto connect")], "two:5433 .* asked .*: failed"),
        (TimeoutError(), "a worker could not be asked .*: no answer within 5 s"),
        (asyncpg.ConnectionFailureError("connection to the remote node failed"), "remote node failed"),
    ],
)
async def test_a_worker_that_is_away_costs_a_line_and_no_start(answer: list[Row] | Exception, words: str) -> None:
    (line,) = await checked(answer)
    assert re.search(words, line)
    assert "\n" not in line
