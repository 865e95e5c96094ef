"""Partitions that several processes write to: what is overtaken is counted."""

import pytest

from lazulite.engine.commit import Expect, changing
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.partition_io import PartitionRead, PartitionState
from tests.engine.postgres.conftest import SCRIPTS, Open
from tests.engine.postgres.write_if import RejectedError, WriteIf


def insert(row: str) -> WriteIf:
    return WriteIf(row, b"x", Expect.ABSENT)


def overtaken(engine: PostgresEngine) -> float:
    return engine.counters()["overtaken_rows_total"]


async def two_clocks(open_engine: Open, *, scripts: bool) -> tuple[PostgresEngine, PostgresEngine]:
    """Return an engine, and one whose clock is behind, so that all its first statements are overtaken."""
    ahead, behind = open_engine(lambda: 10**15 + 10**6), open_engine(lambda: 10**15, scripts=scripts)
    await ahead.commit(1, "p", insert("first").commit())
    assert behind.counters() == {}, "counted before it was started"
    await behind.start()
    return ahead, behind


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_were_overtaken_are_counted(open_engine: Open, scripts: bool) -> None:
    ahead, behind = await two_clocks(open_engine, scripts=scripts)
    await behind.commit(1, "q", insert("r").commit())
    assert overtaken(behind) == 0
    await behind.commit(1, "p", insert("r").commit())
    assert overtaken(behind) >= 1
    assert overtaken(ahead) == 0
    assert await ahead.get(1, "p", "r") == b"x"


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_were_read_and_then_overtaken_are_counted(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_engine(scripts=scripts), open_engine()
    io = (await one._ensure_started()).partitions._io
    read = io.read

    async def beaten(request: PartitionRead) -> PartitionState:
        found = await read(request)
        await other.commit(1, "p", insert(f"r{found.version}").commit())
        return found

    monkeypatch.setattr(io, "read", beaten)
    await one.commit(1, "p", changing(["s", "t"], lambda *_: {"s": b"x", "t": b"x"}))
    assert (overtaken(one), overtaken(other)) == (2, 0)


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_rows_that_are_not_as_expected_are_not_counted(open_engine: Open, scripts: bool) -> None:
    engine = open_engine(scripts=scripts)
    await engine.commit(1, "p", insert("r").commit())
    for missing in (insert("r"), WriteIf("s", b"x", Expect.PRESENT)):
        with pytest.raises(RejectedError):
            await engine.commit(1, "p", missing.commit())
    assert overtaken(engine) == 0
