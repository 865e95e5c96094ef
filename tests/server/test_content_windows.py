import asyncio
from collections.abc import AsyncIterator

import pytest

from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import WINDOW_BYTES, Window
from lazulite.server.content_windows import send_windows
from lazulite.service.time_slice import TimeSlice

WINDOWS = 12


class Iterations:
    """Counts the iterations of other tasks, and the windows sent in each."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.windows = [0]

    def clock(self) -> float:
        return self.now_s

    async def send(self, window: Window) -> None:
        assert len(window) == WINDOW_BYTES
        self.now_s += 1.0
        self.windows[-1] += 1

    async def count(self) -> None:
        while True:
            self.windows.append(0)
            await asyncio.sleep(0)


@pytest.fixture(name="iterations")
async def _iterations() -> AsyncIterator[Iterations]:
    iterations = Iterations()
    counting = asyncio.create_task(iterations.count())
    yield iterations
    counting.cancel()


@pytest.mark.parametrize(("slice_seconds", "windows_max"), [(1.0, 1), (3.0, 3), (100.0, WINDOWS)])
async def test_other_tasks_run_after_each_time_slice(
    iterations: Iterations, slice_seconds: float, windows_max: int
) -> None:
    content = JoinedContent([bytes(WINDOW_BYTES)] * WINDOWS)
    await send_windows(content, iterations.send, TimeSlice(slice_seconds, iterations.clock))
    assert sum(iterations.windows) == WINDOWS
    assert max(iterations.windows) == windows_max


class Liar(JoinedContent):
    """Content that is not as long as it says."""

    @property
    def length(self) -> int:
        return 2 * WINDOW_BYTES


@pytest.mark.parametrize(("count", "sent"), [(1, 1), (3, 2)])
async def test_content_of_another_length_is_an_error_and_no_more_than_its_length_is_sent(
    iterations: Iterations, count: int, sent: int
) -> None:
    with pytest.raises(ValueError, match="content of 524288 bytes had"):
        await send_windows(Liar([bytes(WINDOW_BYTES)] * count), iterations.send, TimeSlice(1.0, iterations.clock))
    assert sum(iterations.windows) == sent
