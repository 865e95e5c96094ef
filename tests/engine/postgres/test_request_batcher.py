"""Calls that go together."""

import asyncio
from collections.abc import Sequence

from lazulite.engine.postgres.request_batcher import Gather


async def test_what_nobody_waits_for_is_not_sent() -> None:
    """Nor may two calls, of which one took the place of the other, meet in one group."""
    sent: list[int] = []
    gate = asyncio.Event()

    async def send(calls: Sequence[int]) -> Sequence[int]:
        sent.extend(calls)
        await gate.wait()
        return calls

    gather = Gather(send)
    calls = []
    for number in range(5):
        calls.append(asyncio.ensure_future(gather(number)))
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
    """Groups as they were sent, none of which is answered before `gate` is set."""

    def __init__(self, patience_seconds: float) -> None:
        self.groups: list[list[int]] = []
        self.gate, self.again = asyncio.Event(), asyncio.Event()
        self.gather: Gather[int, int] = Gather(self._send, patience_seconds=patience_seconds)

    async def _send(self, calls: Sequence[int]) -> Sequence[int]:
        self.groups.append(list(calls))
        if len(self.groups) > 1:
            self.again.set()
        await self.gate.wait()
        return calls

    async def call(self, *numbers: int) -> list[asyncio.Future[int]]:
        calls: list[asyncio.Future[int]] = [asyncio.ensure_future(self.gather(number)) for number in numbers]
        for _ in range(3):
            await asyncio.sleep(0)
        return calls


async def test_who_is_patient_waits_for_the_group_on_its_way_and_goes_with_others() -> None:
    sent = Sent(3600)
    calls = await sent.call(*range(4))
    for number in range(4, 10):
        calls += await sent.call(number)
    assert sent.groups == [[0, 1, 2, 3]]
    sent.gate.set()
    assert await asyncio.gather(*calls) == list(range(10))
    assert sent.groups[1:] == [list(range(4, 10))]


async def test_enough_for_a_full_group_wait_for_nobody() -> None:
    sent = Sent(3600)
    calls = await sent.call(*range(-4, 0))
    calls += await sent.call(*range(63))
    assert len(sent.groups) == 1
    calls += await sent.call(63)
    assert sent.groups[1:] == [list(range(64))]
    calls += await sent.call(64)
    sent.gate.set()
    await asyncio.gather(*calls)
    assert sent.groups[2:] == [[64]]


async def test_patience_ends() -> None:
    sent = Sent(1e-9)
    calls = await sent.call(*range(4))
    calls += await sent.call(4)
    await sent.again.wait()
    assert sent.groups == [[0, 1, 2, 3], [4]]
    sent.gate.set()
    assert await asyncio.gather(*calls) == list(range(5))
