"""The pool starts all its threads when it is made, and none later."""

import threading

from lazulite.engine.thread_pool import ThreadPool


def test_all_threads_run_from_the_start() -> None:
    with ThreadPool(3, "of a test") as pool:
        started = {thread.name for thread in threading.enumerate() if thread.name.startswith("of a test")}
        assert started == {"of a test_0", "of a test_1", "of a test_2"}
        together = threading.Barrier(3)
        assert sorted(future.result(30) for future in [pool.submit(together.wait, 30) for _ in range(3)]) == [0, 1, 2]
        assert {thread.name for thread in threading.enumerate() if thread.name.startswith("of a test")} == started
