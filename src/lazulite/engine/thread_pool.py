"""A thread pool whose threads are all started when it is made.

The standard library's pool starts a thread when a call needs one. `Thread.start` then waits until the thread runs. A
thread that finds no memory ends before it says so, and the event loop that started it would wait forever.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier


class ThreadPool(ThreadPoolExecutor):
    """Runs calls in so many threads.

    Args:
        threads: how many.
        name: the beginning of their names.

    Raises:
        RuntimeError: the system starts no more threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, name)
        running = Barrier(threads)
        try:
            for _ in range(threads):  # Each call occupies its thread until all of them run.
                self.submit(running.wait)
        except BaseException:
            running.abort()  # Or the threads that run would keep the process from ending.
            raise
