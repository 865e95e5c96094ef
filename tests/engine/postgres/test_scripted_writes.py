"""Conditional writes as scripts: which share one, and what a row that is not as expected does to the others."""

import asyncio

import pytest

from lazulite.engine.postgres import batch_window
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.precondition import Expect
from tests.engine.postgres.conftest import Open
from tests.engine.postgres.write_if import RejectedError, WriteIf

ROWS = [f"{number:02}" for number in range(20)]
OLD = ROWS[:1]
NODES_MAX = 5
"""Of a cluster that the tests may run on."""


class Scripts:
    """The scripts that an engine sends."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        run = engine._pool.run

        async def noted(script: str, partition: bytes) -> int:
            self.sent.append(script)
            return await run(script, partition)

        monkeypatch.setattr(engine._pool, "run", noted)


@pytest.fixture(name="started")
async def _started(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[PostgresEngine, Scripts]:
    """An engine that has one script in flight at a time."""
    monkeypatch.setattr(batch_window, "_IN_FLIGHT_MAX", 1)
    engine = open_engine(scripts=True)
    await engine.start()
    return engine, Scripts(engine, monkeypatch)


async def test_writes_that_wait_share_a_script(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started

    async def write(row: str, value: bytes | None, expects: Expect) -> None:
        await engine.commit(1, f"p{int(row) % 3}", [row], WriteIf(row, value, expects))

    await asyncio.gather(*(write(row, b"one", Expect.ABSENT) for row in ROWS))
    assert len(scripts.sent) <= NODES_MAX
    scripts.sent.clear()
    kinds = [(b"two", Expect.PRESENT), (None, Expect.PRESENT), (b"three", Expect.ANYTHING)]
    await asyncio.gather(*(write(row, *kinds[int(row) // 3 % 3]) for row in ROWS))
    assert len(scripts.sent) <= NODES_MAX
    for row in ROWS:
        assert await engine.get(1, f"p{int(row) % 3}", row) == kinds[int(row) // 3 % 3][0]


async def test_one_statement_writes_a_row_that_is_present(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    stamp = await engine.commit(1, "p", ["r"], WriteIf("r", b"stamp", Expect.ABSENT))
    assert scripts.sent.pop().count(";") == 1, "the version and the row"
    stamp = await engine.commit(1, "p", ["r"], WriteIf("r", b"stamp", Expect.PRESENT, stamp))
    assert await engine.get(1, "p", "r") == b"%d" % stamp
    await engine.commit(1, "p", ["r"], WriteIf("r", None, Expect.PRESENT, stamp))
    assert await engine.get(1, "p", "r") is None
    assert [script.count(";") for script in scripts.sent] == [0, 0]
    with pytest.raises(RejectedError):
        await engine.commit(1, "p", ["r"], WriteIf("r", b"x", Expect.PRESENT))


async def test_a_row_that_is_not_as_expected_fails_alone(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    for row in OLD:
        await engine.commit(1, row, [row], WriteIf(row, b"old", Expect.ABSENT))
    scripts.sent.clear()
    writes = [WriteIf(row, b"new", Expect.ABSENT) for row in ROWS]
    outcomes = await asyncio.gather(
        *(engine.commit(1, row, [row], write) for row, write in zip(ROWS, writes, strict=True)), return_exceptions=True
    )
    assert [isinstance(outcome, RejectedError) for outcome in outcomes] == [row in OLD for row in ROWS]
    assert [await engine.get(1, row, row) for row in ROWS] == [b"old" if row in OLD else b"new" for row in ROWS]
    assert len(scripts.sent) < len(ROWS)


async def test_a_write_that_rejects_itself_fails_alone(
    started: tuple[PostgresEngine, Scripts], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = started
    bad = WriteIf("r", b"x", Expect.ABSENT)

    def value(write: WriteIf, timestamp: int) -> bytes | None:
        if write is bad:
            raise ValueError("odd")
        return b"y"

    monkeypatch.setattr(WriteIf, "value", value)
    good = [WriteIf("r", b"y", Expect.ABSENT) for _ in range(3)]
    outcomes = await asyncio.gather(
        *(engine.commit(1, str(at), ["r"], write) for at, write in enumerate([*good, bad])), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [int, int, int, ValueError]
