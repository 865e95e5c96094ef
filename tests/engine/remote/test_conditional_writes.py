"""Conditional writes of workers: what each does to its row, when it is acknowledged, and how it fails."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import (
    Commit,
    CommitProcedure,
    ConditionalWrite,
    Decision,
    Expected,
    Values,
    changing,
)
from lazulite.engine.contract import EngineError, EngineUnavailableError, SpaceDroppedError
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Message
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.codec import Codec, Encoding
from lazulite.engine.remote.conditional_writes import BYTES_MAX, WRITES_MAX
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.group_commit import GROUP_BYTES_MAX
from lazulite.engine.rocksdb.options import RocksSettings
from tests.engine.rocksdb.failing import QUICK, Failpoints, writable_again

from .over_channel import join

WATCHED, FREE = 3, 2000
NOW = 1000
STAMP = 8


class WriteIf(NamedTuple):
    """A write of a row that is as expected; `text` is None for a deletion. A value is the timestamp and a text."""

    row: str
    expected: Expected
    text: bytes | None

    @property
    def commit(self) -> Commit[int]:
        return Commit([self.row], self._decide, procedure=WRITE_IF, argument=self)

    def _decide(self, values: Values, timestamp: int) -> Decision[int]:
        if not is_met(self.expected, values[0]):
            raise NotAsExpectedError(self.row)
        return Decision({self.row: None if self.text is None else complete(timestamp, [self.text])}, timestamp)

    def conditional(self, current: Values | None) -> list[ConditionalWrite] | None:
        """Return the write, without the row's value unless the text says that it is needed."""
        if current is None and self.text == b"read":
            return None
        return [ConditionalWrite(self.expected, None if self.text is None else [self.text])]


def several(writes: Sequence[WriteIf]) -> Commit[int]:
    """Return the commit of several writes, all of them or none."""

    def decide(values: Values, timestamp: int) -> Decision[int]:
        changes: dict[str, bytes | None] = {}
        for each, value in zip(writes, values, strict=True):
            changes |= each._decide([value], timestamp).changes
        return Decision(changes, timestamp)

    return Commit([each.row for each in writes], decide, procedure=WRITE_ALL_IF, argument=writes)


class NotAsExpectedError(Exception):
    """A row was not as expected."""


def is_met(expected: Expected, value: bytes | None) -> bool:
    if expected is True or expected is None:
        return expected is True or value is None
    return value is not None and value.startswith(expected)


def complete(timestamp: int, parts: Sequence[bytes]) -> bytes:
    return timestamp.to_bytes(STAMP, "big") + b"".join(parts)


WRITE_IF = CommitProcedure[int](
    "write_if", tuple, lambda sent: WriteIf(*sent).commit, conditional=WriteIf.conditional, complete=complete
)
WRITE_ALL_IF = CommitProcedure[int](
    "write_all_if",
    lambda writes: list(map(tuple, writes)),
    lambda sent: several([WriteIf(*each) for each in sent]),
    conditional=lambda writes, current: [each.conditional(current)[0] for each in writes],
    complete=complete,
)
NOT_AS_EXPECTED = Encoding(NotAsExpectedError, lambda error: error.args[0], NotAsExpectedError)
CODEC = Codec([WRITE_IF, WRITE_ALL_IF], [NOT_AS_EXPECTED])


class Parts:
    """A primary with two workers. `sent` has the messages of the first one, by kind."""

    def __init__(self, engine: RocksEngine) -> None:
        self.engine = engine
        self.server = EngineServer(engine, CODEC, [WATCHED], _complain)
        self.workers = [RemoteEngine(CODEC, lambda: NOW) for _ in range(2)]
        self.sent: list[Message] = []

    async def join(self) -> None:
        for worker in self.workers:
            await join(worker.channel, self.server.open_channel(lambda: None))
        post = self.workers[0].channel.post

        def note(message: Message) -> None:
            self.sent.append(message)
            post(message)

        self.workers[0].channel.post = note  # type: ignore[method-assign]  # observed

    def kinds(self) -> list[int]:
        return [message[0] for message in self.sent]

    async def close(self) -> None:
        for worker in self.workers:
            await worker.close()
        await self.server.close()
        await self.engine.close()


def _complain(text: str) -> None:
    raise AssertionError(text)


@pytest.fixture(name="parts")
async def _parts() -> AsyncIterator[Parts]:
    parts = Parts(RocksEngine.open(None, lambda: NOW))
    await parts.join()
    yield parts
    await parts.close()


def write(engine: RemoteEngine, *asked: WriteIf, space: int = FREE) -> Sequence["asyncio.Task[int]"]:
    return [asyncio.create_task(engine.commit(space, "p", each.commit)) for each in asked]


async def outcomes(tasks: Sequence["asyncio.Task[int]"]) -> list[int | BaseException]:
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_writes_of_one_moment_are_one_message_and_have_ascending_timestamps(parts: Parts) -> None:
    first = await outcomes(write(parts.workers[0], *(WriteIf(f"r{number}", None, b"x") for number in range(5))))
    assert first == [NOW, NOW + 1, NOW + 2, NOW + 3, NOW + 4]
    assert parts.kinds() == [messages.WRITE]
    assert await parts.engine.get(FREE, "p", "r3") == complete(NOW + 3, [b"x"])
    assert await outcomes(write(parts.workers[1], WriteIf("s", None, b"x"))) == [NOW + 5]


@given(
    before=st.none() | st.binary(max_size=3),
    expected=st.none() | st.just(True) | st.binary(max_size=2),
    text=st.none() | st.binary(max_size=3),
)
async def test_a_row_is_written_if_it_is_as_expected(
    before: bytes | None, expected: Expected, text: bytes | None
) -> None:
    parts = Parts(RocksEngine.open(None, lambda: NOW))
    await parts.join()
    await parts.engine.commit(FREE, "p", changing(["r"], lambda _, __: {"r": before}))
    [outcome] = await outcomes(write(parts.workers[0], WriteIf("r", expected, text)))
    after = await parts.engine.get(FREE, "p", "r")
    if is_met(expected, before):
        assert isinstance(outcome, int)
        assert after == (None if text is None else complete(outcome, [text]))
    else:
        assert isinstance(outcome, NotAsExpectedError)
        assert (after, parts.kinds()) == (before, [messages.WRITE, messages.COMMIT])
    await parts.close()


async def test_each_write_of_a_message_sees_those_before_it(parts: Parts) -> None:
    first, second, third, gone, again = await outcomes(
        write(
            parts.workers[0],
            WriteIf("r", None, b"a"),
            WriteIf("r", NOW.to_bytes(STAMP, "big"), b"b"),
            WriteIf("r", None, b"c"),
            WriteIf("r", (NOW + 1).to_bytes(STAMP, "big"), None),
            WriteIf("r", None, b"d"),
        )
    )
    assert (first, second, gone, again) == (NOW, NOW + 1, NOW + 3, NOW + 4)
    assert isinstance(third, NotAsExpectedError)
    assert await parts.engine.get(FREE, "p", "r") == complete(NOW + 4, [b"d"])


async def test_writes_see_what_has_joined_and_is_not_durable(parts: Parts) -> None:
    one, other = parts.workers
    results = await outcomes([*write(one, WriteIf("r", None, b"a")), *write(other, WriteIf("r", None, b"b"))])
    assert sorted(isinstance(each, NotAsExpectedError) for each in results) == [False, True]


@given(
    before=st.lists(st.sampled_from([None, b"a", b"b"]), min_size=2, max_size=4),
    expected=st.lists(st.sampled_from([None, b"", b"a", True]), min_size=4, max_size=4),
)
async def test_a_commit_of_several_rows_writes_all_or_none_with_one_timestamp(
    before: list[bytes | None], expected: list[Expected]
) -> None:
    parts = Parts(RocksEngine.open(None, lambda: NOW))
    await parts.join()
    rows = [f"r{number}" for number in range(len(before))]
    await parts.engine.commit(FREE, "p", changing(rows, lambda *_: dict(zip(rows, before, strict=True))))
    asked = [WriteIf(*each, b"x") for each in zip(rows, expected, strict=False)]
    [outcome] = await outcomes([asyncio.create_task(parts.workers[0].commit(FREE, "p", several(asked)))])
    after = [await parts.engine.get(FREE, "p", row) for row in rows]
    if all(is_met(each, value) for each, value in zip(expected, before, strict=False)):
        assert after == [complete(NOW + 1, [b"x"])] * len(rows)
        assert (outcome, parts.kinds()) == (NOW + 1, [messages.WRITE])
    else:
        assert (type(outcome), after) == (NotAsExpectedError, before)
    assert await outcomes(write(parts.workers[1], WriteIf("s", True, b"x"))) == [NOW + (2 if after != before else 1)]
    await parts.close()


async def test_rows_that_are_large_are_read_by_the_commit(tmp_path: Path) -> None:
    parts = Parts(RocksEngine.open(tmp_path / "store", lambda: NOW, RocksSettings(read_bytes_max=100)))
    await parts.join()
    rows = ["a", "b", "c"]
    await parts.engine.commit(FREE, "p", changing(rows, lambda *_: dict.fromkeys(rows, bytes(60))))
    results = await outcomes(write(parts.workers[0], *(WriteIf(row, b"", b"x") for row in rows)))
    assert all(isinstance(each, int) for each in results)
    assert len(set(results)) == len(rows)
    assert parts.kinds() == [messages.WRITE, messages.COMMIT]
    await parts.close()


async def test_a_write_that_depends_on_the_row_is_asked_for_without_a_replica(parts: Parts) -> None:
    assert await outcomes(write(parts.workers[0], WriteIf("r", None, b"read"))) == [NOW]
    assert parts.kinds() == [messages.COMMIT]


async def test_rows_that_workers_cache_and_dropped_spaces_are_declined(parts: Parts) -> None:
    worker = parts.workers[0]
    await outcomes(write(worker, WriteIf("r", None, b"x"), space=WATCHED))
    assert parts.kinds() == [messages.WRITE, messages.COMMIT, messages.ACKNOWLEDGE]
    await worker.drop(FREE)
    [dropped] = await outcomes(write(worker, WriteIf("r", None, b"x")))
    assert isinstance(dropped, SpaceDroppedError)


async def test_messages_are_bounded(parts: Parts) -> None:
    worker = parts.workers[0]
    many = [WriteIf(f"r{number}", None, b"x") for number in range(2 * WRITES_MAX + 1)]
    large = [WriteIf(f"s{number}", None, bytes(size)) for number, size in enumerate((BYTES_MAX, 1, BYTES_MAX - 1, 9))]
    assert all(isinstance(each, int) for each in await outcomes(write(worker, *many, *large)))
    sizes = [len(message[4]) for message in parts.sent if message[0] == messages.WRITE]
    assert sizes == [WRITES_MAX, WRITES_MAX, 1, 1, 1, 1, 1]
    with pytest.raises(EngineError, match="ValueError"):
        await _send(parts, [b"p\0r"] * (WRITES_MAX + 1))


async def _send(parts: Parts, keys: Sequence[bytes]) -> None:
    reported: list[str] = []
    parts.server.report = reported.append
    every = len(keys)
    try:
        await parts.workers[1]._send_writes(FREE, WRITE_IF.name, keys, [True] * every, [[b"x"]] * every, False)
    finally:
        assert reported == ["a call of a worker failed: ValueError"]


async def test_a_malformed_message_writes_nothing(parts: Parts) -> None:
    reported: list[str] = []
    parts.server.report = reported.append
    sent = parts.workers[0]._send_writes(FREE, WRITE_IF.name, [b"p\0a", b"p\0b"], [True, True], [[b"x"], [3]], False)  # type: ignore[list-item]
    with pytest.raises(EngineError, match="TypeError"):
        await sent
    assert reported == ["a call of a worker failed: TypeError"]
    assert await parts.engine.get(FREE, "p", "a") is None


async def test_writes_wait_while_the_group_is_full(parts: Parts) -> None:
    database = parts.engine._lifecycle.writable()
    async with database.group_commit.paused():
        large = asyncio.create_task(
            parts.engine.commit(FREE, "p", changing(["s"], lambda *_: {"s": bytes(GROUP_BYTES_MAX)}))
        )
        tasks = write(parts.workers[0], WriteIf("r", None, b"x"))
        for _ in range(10):
            await parts.workers[1].get(FREE, "p", "r")
        assert database.newest_timestamp == NOW
    await large
    assert await outcomes(tasks) == [NOW + 1]
    assert parts.kinds() == [messages.WRITE]


class Held:
    """A primary whose syncs wait until they are let go."""

    def __init__(self, path: Path) -> None:
        self.failpoints = Failpoints()
        self.parts = Parts(RocksEngine.open(path / "store", lambda: NOW, QUICK, failpoints=self.failpoints))


async def test_a_write_is_acknowledged_once_it_is_durable(tmp_path: Path) -> None:
    held = Held(tmp_path)
    await held.parts.join()
    seen: list[object] = []
    loop = asyncio.get_running_loop()

    def look() -> None:
        # The loop runs while this thread has the sync wait: whatever is acknowledged too soon is seen.
        looked = asyncio.run_coroutine_threadsafe(_settled(tasks, held.parts.workers[1]), loop)
        seen.append(looked.result())

    held.failpoints.armed["before_sync"] = look
    tasks = write(held.parts.workers[0], WriteIf("r", None, b"x"), WriteIf("r", b"none", b"y"))
    results = await outcomes(tasks)
    held.failpoints.armed.clear()
    assert seen[0] == ([], None)
    assert results[0] == NOW
    await held.parts.close()


async def _settled(tasks: Sequence["asyncio.Task[int]"], other: RemoteEngine) -> tuple[list[object], bytes | None]:
    value = None
    for _ in range(10):  # Round trips: an acknowledgement would have come meanwhile.
        value = await other.get(FREE, "p", "r")
    return [task for task in tasks if task.done()], value


async def test_a_flush_that_fails_fails_each_write_by_itself(tmp_path: Path) -> None:
    held = Held(tmp_path)
    await held.parts.join()
    worker = held.parts.workers[0]
    held.failpoints.fail("before_sync", "IO error: No space left on device")
    failures = await outcomes(write(worker, WriteIf("a", None, b"x"), WriteIf("b", None, b"x")))
    assert [type(each) for each in failures] == [EngineUnavailableError] * 2
    assert failures[0] is not failures[1]
    held.failpoints.armed.clear()
    await writable_again(worker)
    assert all(isinstance(each, int) for each in await outcomes(write(worker, WriteIf("c", None, b"x"))))
    await held.parts.close()


async def test_a_clock_that_is_wrong_and_a_store_that_closes_reject(parts: Parts) -> None:
    worker = parts.workers[0]

    def wrong() -> int:
        raise EngineUnavailableError("the clock is wrong")

    parts.engine._clock = wrong
    [failure] = await outcomes(write(worker, WriteIf("r", None, b"x")))
    assert isinstance(failure, EngineUnavailableError)
    await parts.engine.close()
    [failure] = await outcomes(write(worker, WriteIf("r", None, b"x")))
    assert isinstance(failure, EngineUnavailableError)


async def test_a_worker_that_closes_waits_for_its_writes_and_then_rejects(parts: Parts) -> None:
    worker = parts.workers[0]
    pending = write(worker, WriteIf("r", None, b"x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await worker.close()
    assert await outcomes(pending) == [NOW]
    [failure] = await outcomes(write(worker, WriteIf("r", None, b"x")))
    assert isinstance(failure, EngineUnavailableError)


async def test_a_caller_that_is_cancelled_leaves_the_others_their_outcomes(parts: Parts) -> None:
    one, other = write(parts.workers[0], WriteIf("a", None, b"x"), WriteIf("b", None, b"x"))
    await asyncio.sleep(0)
    one.cancel()
    assert await other == NOW + 1
    assert await parts.engine.get(FREE, "p", "a") == complete(NOW, [b"x"])


async def test_the_worker_is_gone_and_its_writes_are_done(parts: Parts) -> None:
    worker = parts.workers[0]
    pending = write(worker, WriteIf("a", None, b"x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    worker.channel.close()
    [failure] = await outcomes(pending)
    assert isinstance(failure, EngineUnavailableError)
    while await parts.engine.get(FREE, "p", "a") is None:
        await parts.workers[1].check_writable()
