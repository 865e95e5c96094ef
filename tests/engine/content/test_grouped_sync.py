"""One sync for all that wait for it."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lazulite.engine.content.grouped_sync import GroupedSync


@pytest.fixture(name="worker")
def _worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as worker:
        yield worker


async def test_calls_during_a_sync_share_the_next_one(worker: ThreadPoolExecutor) -> None:
    began: asyncio.Queue[None] = asyncio.Queue()
    loop, go_on, count = asyncio.get_running_loop(), threading.Semaphore(0), 0

    def sync() -> None:
        nonlocal count
        count += 1
        loop.call_soon_threadsafe(began.put_nowait, None)
        go_on.acquire()

    grouped = GroupedSync(sync, worker)
    first = asyncio.create_task(grouped())
    await began.get()
    others = [asyncio.create_task(grouped()) for _ in range(10)]
    go_on.release()
    await first
    await began.get()
    assert not any(other.done() for other in others)
    go_on.release()
    await asyncio.gather(*others)
    assert count == 2


async def test_a_failure_reaches_its_callers_and_ends_there(worker: ThreadPoolExecutor) -> None:
    fails = True

    def sync() -> None:
        if fails:
            raise OSError("no")

    grouped = GroupedSync(sync, worker)
    found = await asyncio.gather(grouped(), grouped(), return_exceptions=True)
    assert [str(error) for error in found] == ["no", "no"]
    fails = False
    await grouped()
