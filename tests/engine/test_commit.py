"""Commits that are decided in any process: on a store of this one, and over a channel to the one that has it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lazulite.engine.commit import Commit, Decision, Needs, Values, change_row, compare_and_swap, put_rows
from lazulite.engine.contract import Engine
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.codec import Codec
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.engine.remote.over_channel import join


@pytest.fixture(name="engine", params=["here", "remote"])
async def _engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    engine = RocksEngine.open(None, system_clock)
    if request.param == "here":
        yield engine
    else:
        server = EngineServer(engine, Codec(), (), print)
        remote = RemoteEngine(Codec(), system_clock)
        await join(remote.channel, server.open_channel(lambda: None))
        yield remote
        await remote.close()
        await server.close()
    await engine.close()


async def test_no_change_is_lost_among_many_at_once(engine: Engine) -> None:
    def more(current: bytes | None) -> Decision[int]:
        number = int(current or b"0") + 1
        return Decision({"n": b"%d" % number}, number)

    numbers = await asyncio.gather(*(engine.commit(1, "p", change_row("n", more)) for _ in range(30)))
    assert sorted(numbers) == list(range(1, 31))
    assert await engine.get(1, "p", "n") == b"30"


async def test_other_rows_change_with_it_and_a_rejection_changes_nothing(engine: Engine) -> None:
    def add(current: bytes | None) -> Decision[bool]:
        return Decision({"a": b"1", "b": b"2"} if current is None else {}, current is None)

    assert await engine.commit(1, "p", change_row("a", add))
    assert not await engine.commit(1, "p", change_row("a", add))
    await engine.commit(1, "p", change_row("a", lambda current: Decision({"a": None, "c": current}, None)))
    assert [await engine.get(1, "p", row) for row in "abc"] == [None, b"2", b"1"]

    def reject(current: bytes | None) -> Decision[None]:
        raise LookupError

    with pytest.raises(LookupError):
        await engine.commit(1, "p", change_row("b", reject))
    assert await engine.get(1, "p", "b") == b"2"


async def test_rows_are_put_and_swapped(engine: Engine) -> None:
    first = await engine.commit(1, "p", put_rows({"a": b"1", "b": b"2"}))
    assert await engine.commit(1, "p", put_rows({"a": None})) > first
    assert not await engine.commit(1, "p", compare_and_swap({"a": None, "b": b"other"}, {"c": b"3"}))
    assert await engine.commit(1, "p", compare_and_swap({"a": None, "b": b"2"}, {"b": None, "c": b"3"}))
    assert [await engine.get(1, "p", row) for row in "abc"] == [None, None, b"3"]


async def test_a_commit_may_turn_out_to_need_a_row(engine: Engine) -> None:
    await engine.commit(1, "p", put_rows({"a": b"b", "b": b"1"}))

    def follow(current: Values, _: int) -> Decision[bytes | None] | Needs[bytes | None]:
        assert current[0] is not None
        return Needs(instead=Commit(["a", current[0].decode()], lambda values, _: Decision({}, values[1])))

    assert await engine.commit(1, "p", Commit(["a"], follow)) == b"1"
