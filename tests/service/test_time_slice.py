"""A time slice yields to other tasks when it is used up, and not before."""

import asyncio

import pytest

from lazulite.protocol.steps import Steps
from lazulite.service.time_slice import TimeSlice


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def _yields(time_slice: TimeSlice) -> bool:
    """Return whether other tasks run at a checkpoint."""
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    await time_slice.checkpoint()
    return bool(ran)


async def test_checkpoint_yields_once_the_slice_is_used_up() -> None:
    clock = Clock()
    time_slice = TimeSlice(1, clock)
    clock.seconds = 0.9
    assert not await _yields(time_slice)
    clock.seconds = 1.0
    assert await _yields(time_slice)
    clock.seconds = 1.9
    assert not await _yields(time_slice)
    clock.seconds = 2.0
    assert await _yields(time_slice)
    assert await time_slice.checkpoint() == 2.0


async def test_run_passes_a_checkpoint_after_each_step() -> None:
    clock = Clock()
    iterations: list[int] = []

    async def count() -> None:
        while True:
            iterations.append(len(iterations))
            await asyncio.sleep(0)

    def work() -> Steps[str]:
        for _ in range(10):
            clock.seconds += 0.5
            yield
        return "done"

    other = asyncio.create_task(count())
    assert await TimeSlice(1, clock).run(work()) == "done"
    assert len(iterations) == 5
    other.cancel()


async def test_run_raises_what_the_work_raises() -> None:
    def work() -> Steps[None]:
        yield
        raise KeyError("from the work")

    with pytest.raises(KeyError, match="from the work"):
        await TimeSlice(1, Clock()).run(work())
