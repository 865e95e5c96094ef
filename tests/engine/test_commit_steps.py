"""Commits whose functions do long work in steps, between two tries."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Generator, Mapping, Sequence

import pytest

from lazulite.engine.commit_steps import StepsNeededError, commit_in_steps
from lazulite.engine.contract import EngineUnavailableError
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
    """A commit function that doubles a row, which it does in steps; it counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._prepared: tuple[bytes, bytes] | None = None

    def __call__(self, current: Sequence[bytes | None], _: int) -> Mapping[str, bytes | None]:
        self.calls += 1
        value = current[0] or b""
        if self._prepared is None or self._prepared[0] != value:
            raise StepsNeededError(self._prepare(value))
        return {"r": self._prepared[1]}

    def _prepare(self, value: bytes) -> Generator[None, None, None]:
        for _ in range(STEPS):
            yield
        self._prepared = value, 2 * value


async def _put(engine: RocksEngine, value: bytes) -> None:
    await engine.commit(SPACE, "p", ["r"], lambda *_: {"r": value})


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
    await commit_in_steps(engine, SPACE, "p", ["r"], doubled)
    other.cancel()
    assert (await engine.get(SPACE, "p", "r"), doubled.calls) == (b"aa", 3)
    assert iterations >= STEPS


async def test_a_row_that_changed_meanwhile_is_worked_on_again(engine: RocksEngine) -> None:
    await _put(engine, b"a")

    async def put_meanwhile() -> None:
        await asyncio.sleep(0)
        await _put(engine, b"b")

    doubled = Doubled()
    await asyncio.gather(commit_in_steps(engine, SPACE, "p", ["r"], doubled), put_meanwhile())
    assert (await engine.get(SPACE, "p", "r"), doubled.calls) == (b"bb", 4)


async def test_many_at_once_do_not_undo_each_others_steps(engine: RocksEngine) -> None:
    await _put(engine, b"a")
    many = [Doubled() for _ in range(18)]
    await asyncio.gather(*(commit_in_steps(engine, SPACE, "p", ["r"], each) for each in many))
    assert await engine.get(SPACE, "p", "r") == b"a" * 2**18
    assert max(each.calls for each in many) == 3


async def test_the_rows_of_a_try_are_released(engine: RocksEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cycle collector: a batch may hold hundreds of megabytes."""
    await _put(engine, b"a")
    errors: list[weakref.ref[StepsNeededError]] = []

    def note(error: StepsNeededError, steps: Generator[None, None, None]) -> None:
        error.steps = steps
        errors.append(weakref.ref(error))

    monkeypatch.setattr(StepsNeededError, "__init__", note)
    gc.disable()
    try:
        await commit_in_steps(engine, SPACE, "p", ["r"], Doubled())
        assert [error() for error in errors] == [None, None]
    finally:
        gc.enable()


async def test_tries_are_bounded(engine: RocksEngine) -> None:
    def never(_: Sequence[bytes | None], __: int) -> Mapping[str, bytes | None]:
        raise StepsNeededError(iter_steps())

    def iter_steps() -> Generator[None, None, None]:
        yield from ()

    with pytest.raises(EngineUnavailableError):
        await commit_in_steps(engine, SPACE, "p", ["r"], never)
    assert await engine.get(SPACE, "p", "r") is None
