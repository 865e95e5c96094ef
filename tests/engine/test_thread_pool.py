"""The pool starts all its threads when it is made, and none later."""

import threading

import pytest

from lazulite.engine.thread_pool import ThreadPool


def test_all_threads_run_from_the_start() -> None:
    with ThreadPool(3, "of a test") as pool:
        started = {thread.name for thread in threading.enumerate() if thread.name.startswith("of a test")}
        assert started == {"of a test_0", "of a test_1", "of a test_2"}
        together = threading.Barrier(3)
        assert sorted(future.result(30) for future in [pool.submit(together.wait, 30) for _ in range(3)]) == [0, 1, 2]
        assert {thread.name for thread in threading.enumerate() if thread.name.startswith("of a test")} == started


def test_a_pool_that_lacks_a_thread_keeps_none_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="new thread"):
        ThreadPool(3, "of a test")
    started[0].join(30)
    assert not started[0].is_alive()
