"""The worker thread calls one function after the other, and its callers get what they return or raise."""

import asyncio
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from lazulite.engine.rocksdb.group_commit import WorkerThread


async def test_calls_run_in_order_in_one_thread_that_has_the_name() -> None:
    names: list[str] = []

    def call(number: int) -> int:
        names.append(threading.current_thread().name)
        return number

    with WorkerThread("of a test") as worker:
        found = await asyncio.gather(*(worker.run(partial(call, number)) for number in range(9)))
    assert found == list(range(9))
    assert names == ["of a test"] * 9


@pytest.mark.parametrize("error", [ValueError("known"), SystemExit(3)])
async def test_an_exception_reaches_its_caller_and_later_calls_run(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with WorkerThread("test") as worker:
        failed = worker.run(fail)
        assert await worker.run(lambda: "later") == "later"
        assert failed.exception() is error


async def test_a_call_runs_although_its_caller_was_cancelled() -> None:
    entered, let_go, ran = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert let_go.wait(30)

    with WorkerThread("test") as worker:
        first, second = worker.run(hold), worker.run(ran.set)
        assert await asyncio.to_thread(entered.wait, 30)
        first.cancel()
        second.cancel()
        let_go.set()
        await worker.run(lambda: None)
    assert ran.is_set()


def test_a_call_outlives_its_loop() -> None:
    entered, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert let_go.wait(30)

    async def begin() -> None:
        worker.run(hold)
        assert await asyncio.to_thread(entered.wait, 30)

    with WorkerThread("test") as worker:
        asyncio.run(begin())
        let_go.set()


async def test_shutdown_ends_the_thread_after_all_calls_and_is_idempotent() -> None:
    worker = WorkerThread("test")
    ran: list[int] = []
    for number in range(3):
        worker.run(partial(ran.append, number))
    worker.shutdown()
    worker.shutdown()
    assert ran == [0, 1, 2]
    assert "test" not in [thread.name for thread in threading.enumerate()]


def test_a_process_ends_although_its_thread_was_not_shut_down() -> None:
    code = """
import asyncio
from lazulite.engine.rocksdb.group_commit import WorkerThread

async def main():
    await WorkerThread("test").run(lambda: None)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_process_ends_if_its_thread_cannot_report_an_outcome() -> None:
    code = """
import asyncio
from lazulite.engine.rocksdb import group_commit

def partial(*_):
    raise MemoryError

async def main():
    group_commit.partial = partial
    await group_commit.WorkerThread("test").run(lambda: None)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == -signal.SIGABRT
