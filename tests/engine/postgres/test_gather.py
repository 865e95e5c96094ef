"""Calls that go together."""

import asyncio
from collections.abc import Sequence

from lazulite.engine.postgres.gather import Gather


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
        calls.append(asyncio.create_task(gather(number)))
        for _ in range(3):
            await asyncio.sleep(0)
    assert sent == [0, 1, 2]
    calls[3].cancel()
    await asyncio.wait(calls[3:4])
    gate.set()
    await asyncio.wait(calls)
    assert sent == [0, 1, 2, 4]
    assert [call.result() for call in calls if not call.cancelled()] == [0, 1, 2, 4]
