"""Requests that share a batch, and which batches the in-flight window allows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.postgres.partition_locks import PartitionLocks
from lazulite.engine.postgres.request_batcher import RETRY, BatchWindow, Rejected, RequestBatcher, Retry, Row
from tests.postgres.server import SECONDS_MAX

FULL = 8


async def test_request_of_a_cancelled_caller_is_not_sent() -> None:
    """And the requests around it keep their order."""
    sent: list[int] = []
    gate = asyncio.Event()

    async def send(calls: Sequence[int]) -> Sequence[int]:
        sent.extend(calls)
        await gate.wait()
        return calls

    batcher = RequestBatcher(send)
    calls = []
    for number in range(5):
        calls.append(asyncio.ensure_future(batcher(number)))
        for _ in range(3):
            await asyncio.sleep(0)
    assert sent == [0, 1, 2]
    calls[3].cancel()
    await asyncio.wait(calls[3:4])
    gate.set()
    await asyncio.wait(calls)
    assert sent == [0, 1, 2, 4]
    assert [call.result() for call in calls if not call.cancelled()] == [0, 1, 2, 4]


class Sent:
    """Batches as they were sent; none is answered before `gate` is set."""

    def __init__(self, linger_seconds: float) -> None:
        self.batches: list[list[int]] = []
        self.gate, self.again = asyncio.Event(), asyncio.Event()
        self.batcher: RequestBatcher[int, int] = RequestBatcher(self._send, linger_seconds=linger_seconds)

    async def _send(self, calls: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(calls))
        if len(self.batches) > 1:
            self.again.set()
        await self.gate.wait()
        return calls

    async def call(self, *numbers: int) -> list[asyncio.Future[int]]:
        calls: list[asyncio.Future[int]] = [asyncio.ensure_future(self.batcher(number)) for number in numbers]
        for _ in range(3):
            await asyncio.sleep(0)
        return calls


async def test_requests_linger_for_the_batch_in_flight_and_share_the_next() -> None:
    sent = Sent(3600)
    calls = await sent.call(*range(4))
    for number in range(4, 10):
        calls += await sent.call(number)
    assert sent.batches == [[0, 1, 2, 3]]
    sent.gate.set()
    assert await asyncio.gather(*calls) == list(range(10))
    assert sent.batches[1:] == [list(range(4, 10))]


async def test_requests_that_fill_a_batch_do_not_linger() -> None:
    sent = Sent(3600)
    calls = await sent.call(*range(-4, 0))
    calls += await sent.call(*range(63))
    assert len(sent.batches) == 1
    calls += await sent.call(63)
    assert sent.batches[1:] == [list(range(64))]
    calls += await sent.call(64)
    sent.gate.set()
    await asyncio.gather(*calls)
    assert sent.batches[2:] == [[64]]


async def test_linger_time_ends() -> None:
    sent = Sent(1e-9)
    calls = await sent.call(*range(4))
    calls += await sent.call(4)
    await sent.again.wait()
    assert sent.batches == [[0, 1, 2, 3], [4]]
    sent.gate.set()
    assert await asyncio.gather(*calls) == list(range(5))


class Locked:
    """Two batchers with the same locks; a request is (partition, row). `gate` holds back the answers of the first."""

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []
        self.gate = asyncio.Event()
        self.outcomes: dict[Row, list[Retry | Rejected]] = {}
        locks = PartitionLocks()
        self.first: RequestBatcher[Row, bytes] = RequestBatcher(self._send_first, locks=locks, row=lambda row: row)
        self.second: RequestBatcher[Row, bytes] = RequestBatcher(self._send, locks=locks, row=lambda row: row)

    async def _send_first(self, rows: Sequence[Row]) -> Sequence[bytes | Retry | Rejected]:
        outcomes = await self._send(rows)
        await self.gate.wait()
        return outcomes

    async def _send(self, rows: Sequence[Row]) -> Sequence[bytes | Retry | Rejected]:
        self.batches.append(list(rows))
        return [self.outcomes[row].pop(0) if self.outcomes.get(row) else row[1] for row in rows]


async def answers(*requests: Awaitable[bytes]) -> list[bytes | BaseException]:
    async with asyncio.timeout(SECONDS_MAX):
        return await asyncio.gather(*requests, return_exceptions=True)


async def iterations() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def row(partition: bytes, key: bytes) -> Row:
    return (1, partition), key


async def test_partition_is_in_one_batch_at_a_time_and_delays_no_other() -> None:
    locked = Locked()
    held = locked.first(row(b"p", b"a"))
    await iterations()
    late = [locked.first(row(b"p", b"b")), locked.second(row(b"p", b"c")), locked.second(row(b"q", b"d"))]
    await iterations()
    assert locked.batches == [[row(b"p", b"a")], [row(b"q", b"d")]]
    locked.gate.set()
    assert await answers(held, *late) == [b"a", b"b", b"c", b"d"]
    assert locked.batches[2:] == [[row(b"p", b"b")], [row(b"p", b"c")]]


async def test_row_is_once_in_a_batch() -> None:
    locked = Locked()
    locked.gate.set()
    rows = [row(b"p", b"a"), row(b"p", b"b"), row(b"p", b"a")]
    assert await answers(*map(locked.first, rows)) == [b"a", b"b", b"a"]
    assert locked.batches == [rows[:2], rows[2:]]


async def test_retried_request_is_sent_before_the_ones_that_wait() -> None:
    locked = Locked()
    locked.outcomes[row(b"p", b"a")] = [RETRY]
    first = [locked.first(row(b"p", b"a")), locked.first(row(b"p", b"b"))]
    await iterations()
    later = locked.first(row(b"p", b"c"))
    locked.gate.set()
    assert await answers(*first, later) == [b"a", b"b", b"c"]
    assert locked.batches == [[row(b"p", b"a"), row(b"p", b"b")], [row(b"p", b"a"), row(b"p", b"c")]]


async def test_rejected_request_fails_alone() -> None:
    locked = Locked()
    locked.gate.set()
    locked.outcomes[row(b"p", b"a")] = [Rejected(EngineUnavailableError("full"))]
    outcomes = await answers(locked.first(row(b"p", b"a")), locked.first(row(b"q", b"b")))
    assert isinstance(outcomes[0], EngineUnavailableError)
    assert outcomes[1] == b"b"


async def test_withdrawn_request_is_answered_unsent() -> None:
    locked = Locked()
    held = locked.first(row(b"p", b"a"))
    await iterations()
    waiting = locked.first(row(b"p", b"b"))
    locked.first.withdraw(lambda each: each[1] == b"b", b"withdrawn")
    assert await waiting == b"withdrawn"
    locked.gate.set()
    assert await held == b"a"
    assert locked.batches == [[row(b"p", b"a")]]


def _window(linger_seconds: float = 3600, on_linger_end: Callable[[], None] = lambda: None) -> BatchWindow:
    return BatchWindow(FULL, linger_seconds, on_linger_end)


async def test_requests_do_not_linger_while_few_are_in_flight() -> None:
    window = _window()
    assert window.allows(1)
    window.sent("one", 1)
    assert window.allows(1)
    window.sent("two", 2)
    assert window.allows(1)
    window.sent("one more", 1)
    window.answered("one")
    assert window.allows(1)


async def test_requests_linger_for_many_unless_they_fill_a_batch() -> None:
    window = _window()
    window.sent("many", 4)
    assert not window.allows(1)
    assert not window.allows(FULL - 1)
    assert window.allows(FULL)
    window.answered("many")
    assert window.allows(1)


async def test_never_more_than_three_batches_are_in_flight() -> None:
    window = _window()
    for batch in range(3):
        window.sent(batch, FULL)
    assert not window.allows(10 * FULL)
    window.answered(1)
    assert window.allows(FULL)


async def test_linger_time_ends_with_a_call() -> None:
    ended = asyncio.Event()
    window = _window(1e-9, ended.set)
    window.sent("many", 4)
    assert not window.allows(1)
    await ended.wait()
    assert window.allows(1)
    window.answered("many")
    assert window.allows(1)


async def test_requests_without_linger_time_are_sent_at_once() -> None:
    window = _window(0)
    window.sent("many", 4)
    assert window.allows(1)


async def test_answered_batch_leaves_no_timer() -> None:
    window = _window()
    window.sent("many", 4)
    [(_, timer)] = window._lingering.values()
    window.answered("many")
    assert timer.cancelled()
    assert not window._lingering
