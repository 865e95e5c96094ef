"""The thread that runs what blocks, one call after the other.

An executor of the standard library needs twice the processor time for a call, because its futures can be waited for
in any thread. These can be awaited only. A write that is alone waits for such a call.

The thread is started when it is made: see `thread_pool`. Where it has no memory to report an outcome, the process ends
by SIGABRT, since the caller would wait for ever.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class _Call(Generic[T]):
    """A function to call, and the future of its outcome. A call whose caller was cancelled runs all the same."""

    __slots__ = ("_function", "_loop", "outcome")

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self._loop.create_future()

    def run(self) -> None:
        """Call the function, in this thread."""
        try:
            settle = partial(self._succeed, self._function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is.
            settle = partial(self._fail, error)
        with suppress(RuntimeError):  # The loop was closed, and the caller with it.
            self._loop.call_soon_threadsafe(settle)

    def _succeed(self, result: T) -> None:
        if not self.outcome.done():
            self.outcome.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)


class WorkerThread:
    """A thread, running from now on.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call[object] | None] = SimpleQueue()
        # A process may end without a shutdown, as after a crash: it must not wait for the thread.
        self._thread: Thread | None = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function after all earlier ones; return the future of its result, or of its exception."""
        call = _Call(function)
        self._calls.put(call)  # type: ignore[arg-type]  # The result's type is that of the caller's future.
        return call.outcome

    def __enter__(self) -> "WorkerThread":
        """Return this thread, to be shut down at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Shut down."""
        self.shutdown()

    def shutdown(self) -> None:
        """End the thread after all calls so far."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        try:
            while (call := self._calls.get()) is not None:
                call.run()
                del call  # While it waits for the next one, the thread keeps nothing.
        except BaseException:  # noqa: BLE001 - a call raises nothing, so there is no memory.
            os.abort()
