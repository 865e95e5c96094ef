"""An engine with the rows of an earlier moment, beside a model: what comes later is not seen."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import UNKNOWN, Engine, EngineError, EngineUnavailableError, Key, KeyRange
from lazulite.engine.frozen import FrozenEngine, HeldSnapshot
from lazulite.engine.ordinal import ordinal
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

ALL = KeyRange(("", ""), None)
TEXTS = st.text("ab\0é", max_size=3)
WRITES = st.lists(st.tuples(TEXTS, TEXTS, st.none() | st.binary(max_size=3)), max_size=12)
Writes = Sequence[tuple[str, str, bytes | None]]


async def write(engine: Engine, writes: Writes, model: dict[Key, bytes]) -> None:
    for partition, row, value in writes:
        await engine.commit(1, partition, put_rows({row: value}))
        if value is None:
            model.pop((partition, row), None)
        else:
            model[partition, row] = value


def sorted_rows(model: dict[Key, bytes]) -> list[tuple[Key, bytes]]:
    return sorted(model.items(), key=lambda item: (ordinal(item[0][0]), ordinal(item[0][1])))


async def rows_of(
    engine: Engine, ranges: Sequence[KeyRange] = (ALL,), limit: int | None = None
) -> list[tuple[Key, bytes]]:
    found = []
    async for part in engine.scan(1, ranges, limit):
        found += [(part.key(index), value) for index, value in enumerate(part.values)]
    return found


@settings(max_examples=50, deadline=None)
@given(WRITES, WRITES, st.tuples(TEXTS, TEXTS), st.integers(1, 4))
async def test_later_writes_are_not_seen(before: Writes, after: Writes, start: Key, limit: int) -> None:
    live = RocksEngine.open(None, system_clock)
    try:
        model: dict[Key, bytes] = {}
        await write(live, before, model)
        held, then = await HeldSnapshot.of(live), dict(model)
        frozen = FrozenEngine(live, held)
        await write(frozen, after, model)
        assert await rows_of(frozen) == sorted_rows(then)
        assert await rows_of(live) == sorted_rows(model)
        for key in {**then, **model}:
            assert await frozen.get(1, *key) == then.get(key)
        beyond = [item for item in sorted_rows(then) if tuple(map(ordinal, item[0])) >= tuple(map(ordinal, start))]
        assert await rows_of(frozen, [KeyRange(start, None)], limit) == beyond[:limit]
        await held.close()
    finally:
        await live.close()


async def test_many_rows_come_in_slices_over_several_ranges() -> None:
    live = RocksEngine.open(None, system_clock)
    try:
        keys = [("p", f"{number:04}") for number in range(200)]
        for key in keys:
            await live.commit(1, key[0], put_rows({key[1]: b"v"}))
        held = await HeldSnapshot.of(live)
        frozen = FrozenEngine(live, held)
        ranges = [KeyRange(("p", ""), ("p", "0090")), KeyRange(("p", "0100"), None)]
        assert [key for key, _ in await rows_of(frozen, ranges)] == keys[:90] + keys[100:]
        assert [key for key, _ in await rows_of(frozen, ranges, 130)] == (keys[:90] + keys[100:])[:130]
        assert frozen.get_now(1, *keys[0]) is UNKNOWN
        await held.close()
        with pytest.raises(EngineUnavailableError):
            await frozen.get(1, *keys[0])
        assert await live.get(1, *keys[0]) == b"v"
    finally:
        await live.close()


class Failing:
    """A store whose snapshot makes one call at a time, and fails with an error that its context knows."""

    def __init__(self) -> None:
        self.is_open = self.is_busy = False
        self.go_on = asyncio.Event()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["Failing"]:
        self.is_open = True
        try:
            yield self
        except OSError as error:
            raise EngineUnavailableError("the connection is lost") from error
        finally:
            self.is_open = False

    async def keys(self, _: int, __: KeyRange, ___: int) -> list[Key]:
        return []

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        assert not self.is_busy, "one call at a time"
        self.is_busy = True
        await self.go_on.wait()
        self.is_busy = False
        if space == 2:
            raise OSError
        return [b"v" for _ in keys]


async def test_a_caller_that_is_cancelled_leaves_the_rows_to_the_others() -> None:
    store = Failing()
    held = await HeldSnapshot.of(store)  # type: ignore[arg-type]  # a snapshot is all that it needs
    reads = [asyncio.create_task(held.values(1, [("p", "r")])) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reads[0].cancel()
    store.go_on.set()
    assert await asyncio.gather(*reads[1:]) == [[b"v"], [b"v"]]
    assert store.is_open
    await held.close()
    assert not store.is_open


async def test_rows_are_gone_with_the_connection() -> None:
    store = Failing()
    held = await HeldSnapshot.of(store)  # type: ignore[arg-type]  # likewise
    store.go_on.set()
    with pytest.raises(EngineError, match="the connection is lost"):
        await held.values(2, [("p", "r")])
    assert not store.is_open
    with pytest.raises(EngineUnavailableError, match="the earlier rows are gone"):
        await held.values(1, [("p", "r")])
    await held.close()
