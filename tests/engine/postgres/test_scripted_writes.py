"""Conditional writes as scripts: which share one, and what a row that is not as expected does to the others."""

import asyncio

import pytest

from lazulite.engine.contract import KeyRange
from lazulite.engine.postgres import request_batcher
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

        async def noted(script: str, partition: bytes) -> None:
            self.sent.append(script)
            await run(script, partition)

        monkeypatch.setattr(engine._pool, "run", noted)


@pytest.fixture(name="started")
async def _started(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[PostgresEngine, Scripts]:
    """An engine that has one script in flight at a time."""
    monkeypatch.setattr(request_batcher, "_IN_FLIGHT_MAX", 1)
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


async def test_a_row_that_must_be_present_is_written_in_one_script(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    stamp = await engine.commit(1, "p", ["r"], WriteIf("r", b"stamp", Expect.ABSENT))
    stamp = await engine.commit(1, "p", ["r"], WriteIf("r", b"stamp", Expect.PRESENT, stamp))
    assert await engine.get(1, "p", "r") == b"%d" % stamp
    await engine.commit(1, "p", ["r"], WriteIf("r", None, Expect.PRESENT, stamp))
    assert await engine.get(1, "p", "r") is None
    assert [script.count(";") for script in scripts.sent] == [1, 2, 2], "the version, the check and the row"
    with pytest.raises(RejectedError):
        await engine.commit(1, "p", ["r"], WriteIf("r", b"x", Expect.PRESENT))


async def test_many_rows_of_a_partition_are_written_by_one_statement(started: tuple[PostgresEngine, Scripts]) -> None:
    engine, scripts = started
    rows = [*(f"{number:03}" for number in range(40)), "\u00e9" * 1000, "\u00e9" * 1001]
    values = {row: row[:number].encode() for number, row in enumerate(rows)}
    for expects, more in ((Expect.ABSENT, b""), (Expect.ANYTHING, b"+")):
        writes = {row: WriteIf(row, value + more, expects) for row, value in values.items()}
        await asyncio.gather(*(engine.commit(1, "p", [row], write) for row, write in writes.items()))
        assert [await engine.get(1, "p", row) for row in rows] == [value + more for value in values.values()]
    for key_range in (KeyRange(("p", ""), ("p\0", "")), KeyRange(("p", rows[-1]), None)):
        found = [part.key(at)[1] async for part in engine.scan(1, [key_range]) for at in range(len(part.values))]
        assert found == [row for row in rows if row >= key_range[0][1]]
    assert [script.count(";") for script in scripts.sent] == [1, 1], "the version and the rows"


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
