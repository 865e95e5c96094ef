"""Commits with preconditions by scripts: one round trip if rows are as expected, decided on what is there if not."""

import asyncio
from collections.abc import Sequence

import pytest

from lazulite.engine.commit import ABSENT, ANYTHING, Commit, Decision, Expect, Precondition, Values
from lazulite.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Open, statements_of

ROWS = ["a", "b", "é" * 1300]
PRESENT = Precondition(Expect.PRESENT, example=b"")


class RejectedError(Exception):
    """A row is not as expected."""


class Put:
    """Gives rows a value, if they are as expected."""

    def __init__(self, value: bytes, expected: Sequence[Precondition], rows: Sequence[str] = ROWS) -> None:
        self._new = dict.fromkeys(rows, value)
        self._expected = expected

    def _decide(self, current: Values, stamp: int) -> Decision[int]:
        for value, expected in zip(current, self._expected, strict=True):
            if expected.expects is (Expect.PRESENT if value is None else Expect.ABSENT):
                raise RejectedError
        return Decision(self._new, stamp)

    async def on(self, engine: PostgresEngine) -> int:
        return await engine.commit(1, "p", Commit(list(self._new), self._decide, lambda _: self._expected))


async def values(engine: PostgresEngine) -> list[bytes | None]:
    return [await engine.get(1, "p", row) for row in ROWS]


@pytest.fixture(name="engine")
async def _engine(open_engine: Open) -> PostgresEngine:
    engine = open_engine(scripts=True)
    await engine.start()
    return engine


async def test_rows_that_may_be_absent_are_written_unread(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = statements_of(engine, monkeypatch)
    before = await Put(b"one", [ABSENT] * 3).on(engine)
    assert await Put(b"two", [ANYTHING] * 3).on(engine) > before
    assert sent == []
    assert await values(engine) == [b"two"] * 3


async def test_rows_that_are_not_as_expected_are_read(engine: PostgresEngine) -> None:
    await Put(b"old", [ABSENT], ["b"]).on(engine)
    with pytest.raises(RejectedError):
        await Put(b"one", [ABSENT] * 3).on(engine)
    assert await values(engine) == [None, b"old", None]
    await Put(b"two", [ABSENT, PRESENT, ANYTHING]).on(engine)
    assert await values(engine) == [b"two"] * 3


async def test_commits_that_wait_together_are_all_made_or_rejected(engine: PostgresEngine) -> None:
    await Put(b"old", [ABSENT], ["a"]).on(engine)
    wanted = [Put(b"%d" % at, [ABSENT], [row]) for at, row in enumerate("abcdbd")]
    outcomes = await asyncio.gather(*(put.on(engine) for put in wanted), return_exceptions=True)
    assert [isinstance(outcome, RejectedError) for outcome in outcomes] == [True, False, False, False, True, True]
    assert [await engine.get(1, "p", row) for row in "abcd"] == [b"old", b"1", b"2", b"3"]


async def test_a_version_ahead_of_the_clock_is_exceeded(open_engine: Open, engine: PostgresEngine) -> None:
    ahead = open_engine(lambda: 1 << 60, scripts=True)
    before = await Put(b"one", [ABSENT] * 3).on(ahead)
    assert await Put(b"two", [ANYTHING] * 3).on(engine) > before
    assert await values(engine) == [b"two"] * 3
