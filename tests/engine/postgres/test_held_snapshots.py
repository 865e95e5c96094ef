"""A snapshot that is held for any time: of the moment in which it was made, and gone with its connection."""

import pytest

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.frozen import HeldSnapshot
from tests.engine.postgres.conftest import OURS, Open, execute

IDLE = "SHOW idle_in_transaction_session_timeout"


@pytest.mark.parametrize(("holds", "idle"), [(True, "0"), (False, "18s")])
async def test_a_snapshot_may_be_idle_for_any_time(open_engine: Open, holds: bool, idle: str) -> None:
    engine = open_engine(holds_snapshots=holds)
    await engine.start()
    async with engine.snapshot() as snapshot:
        assert await snapshot._connection.fetchval(IDLE) == idle


async def test_it_has_the_rows_of_the_moment_in_which_it_was_made(open_engine: Open) -> None:
    live, holder = open_engine(), open_engine(holds_snapshots=True, connections_max=2)
    await live.commit(1, "p", put_rows({"a": b"1"}))
    held = await HeldSnapshot.of(holder)
    await live.commit(1, "p", put_rows({"a": b"2"}))
    assert await held.values(1, [("p", "a")]) == [b"1"]
    assert await live.get(1, "p", "a") == b"2"
    execute(OURS.replace("count(*)", "pg_terminate_backend(pid)"))
    for _ in range(2):
        with pytest.raises(EngineUnavailableError):
            await held.values(1, [("p", "a")])
    await held.close()
