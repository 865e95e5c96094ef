"""What a start makes of the workers' answers; a cluster itself is in citus/test_cluster."""

import re
from collections.abc import Sequence
from typing import cast

import asyncpg
import pytest

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.literals import check_workers

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
    return await check_workers(cast("Connection", Coordinator(answer)), 5)


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
