"""Commits that do long work in steps between two tries, or turn out to need more rows."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Generator

import pytest

from lazulite.engine.commit import Commit, Decision, Needs, Values, put_rows
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

SPACE = 5000
STEPS = 10


@pytest.fixture(name="engine")
async def _engine() -> AsyncIterator[RocksEngine]:
    engine = RocksEngine.open(None, system_clock)
    yield engine
    await engine.close()


class Doubled:
    """Doubles a row, which it does in steps; it counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._prepared: tuple[bytes, bytes] | None = None

    def commit(self) -> Commit[None]:
        return Commit(["r"], self._decide)

    def _decide(self, current: Values, _: int) -> Decision[None] | Needs[None]:
        self.calls += 1
        value = current[0] or b""
        if self._prepared is None or self._prepared[0] != value:
            return Needs(self._prepare(value))
        return Decision({"r": self._prepared[1]}, None)

    def _prepare(self, value: bytes) -> Generator[None, None, None]:
        for _ in range(STEPS):
            yield
        self._prepared = value, 2 * value


async def _put(engine: RocksEngine, value: bytes) -> None:
    await engine.commit(SPACE, "p", put_rows({"r": value}))


async def test_other_tasks_run_between_the_steps(engine: RocksEngine) -> None:
    await _put(engine, b"a")
    iterations = 0

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    doubled = Doubled()
    await engine.commit(SPACE, "p", doubled.commit())
    other.cancel()
    assert (await engine.get(SPACE, "p", "r"), doubled.calls) == (b"aa", 3)
    assert iterations >= STEPS


async def test_a_row_that_changed_meanwhile_is_worked_on_again(engine: RocksEngine) -> None:
    await _put(engine, b"a")

    async def put_meanwhile() -> None:
        await asyncio.sleep(0)
        await _put(engine, b"b")

    doubled = Doubled()
    await asyncio.gather(engine.commit(SPACE, "p", doubled.commit()), put_meanwhile())
    assert (await engine.get(SPACE, "p", "r"), doubled.calls) == (b"bb", 4)


async def test_many_at_once_do_not_undo_each_others_steps(engine: RocksEngine) -> None:
    await _put(engine, b"a")
    many = [Doubled() for _ in range(18)]
    await asyncio.gather(*(engine.commit(SPACE, "p", each.commit()) for each in many))
    assert await engine.get(SPACE, "p", "r") == b"a" * 2**18
    assert max(each.calls for each in many) == 3


async def test_the_rows_of_a_try_are_released(engine: RocksEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cycle collector: a batch may hold hundreds of megabytes."""
    await _put(engine, b"a")
    made: list[weakref.ref[Needs[None]]] = []

    def note(needs: Needs[None], steps: Generator[None, None, None]) -> None:
        needs.steps, needs.instead = steps, None
        made.append(weakref.ref(needs))

    monkeypatch.setattr(Needs, "__init__", note)
    gc.disable()
    try:
        await engine.commit(SPACE, "p", Doubled().commit())
        assert [needs() for needs in made] == [None, None]
    finally:
        gc.enable()


async def test_tries_are_bounded(engine: RocksEngine) -> None:
    def never(_: Values, __: int) -> Needs[None]:
        return Needs(iter_steps())

    def iter_steps() -> Generator[None, None, None]:
        yield from ()

    with pytest.raises(EngineUnavailableError):
        await engine.commit(SPACE, "p", Commit(["r"], never))
    assert await engine.get(SPACE, "p", "r") is None


async def test_a_commit_may_name_more_rows_again_and_again(engine: RocksEngine) -> None:
    def naming(rows: list[str]) -> Commit[list[str]]:
        def decide(current: Values, _: int) -> Decision[list[str]] | Needs[list[str]]:
            if len(current) < 4:
                return Needs(instead=naming([*rows, f"{len(rows)}"]))
            return Decision(dict.fromkeys(rows, b"x"), rows)

        return Commit(rows, decide)

    assert await engine.commit(SPACE, "p", naming(["0"])) == ["0", "1", "2", "3"]
    assert await engine.get(SPACE, "p", "3") == b"x"


async def test_a_decision_that_writes_another_row_each_time_is_rejected(engine: RocksEngine) -> None:
    timestamps: list[int] = []

    def decide(_: Values, timestamp: int) -> Decision[None]:
        timestamps.append(timestamp)
        assert len(timestamps) < 1000, "the tries are bounded"
        return Decision({f"at {timestamp}": b"x"}, None)

    with pytest.raises(EngineError, match="named other rows in each of 64 tries") as caught:
        await engine.commit(SPACE, "p", Commit(["r"], decide))
    assert not isinstance(caught.value, EngineUnavailableError), "a later attempt would fail, too"
    for timestamp in timestamps:
        assert await engine.get(SPACE, "p", f"at {timestamp}") is None
