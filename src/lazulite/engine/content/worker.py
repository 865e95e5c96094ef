"""The threads that do what blocks, for the files of contents."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

from lazulite.engine.content.backup import deleting
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.thread_pool import ThreadPool

T = TypeVar("T")
THREADS = 4
"""The threads of one store: they wait for the disk, and compute checksums and digests, most of the time."""


def unavailable(error: OSError) -> EngineUnavailableError:
    """Return the engine error that a failure of the file system means."""
    return EngineUnavailableError(f"the contents cannot be used: {error.strerror or error}")


class Worker:
    """Runs blocking calls in threads."""

    def __init__(self) -> None:
        self.executor = ThreadPool(THREADS, "lazulite-content")
        self._begun: set[Future[None]] = set()

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call. A caller that is cancelled does not end it."""
        return await asyncio.shield(self.submit(call))

    def submit(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Begin a call, whose result the caller awaits later, by `asyncio.shield`."""
        return asyncio.get_running_loop().run_in_executor(self.executor, call)

    def begin(self, call: Callable[[], None]) -> None:
        """Begin a call whose failure does no harm."""
        future = self.executor.submit(call)
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)

    def close(self) -> None:
        """Wait for all calls, and end the threads. It blocks."""
        self.executor.shutdown()


class Remover(Worker):
    """Runs calls that delete files or rename directories. They wait while a backup holds off deletions.

    Args:
        directory: of all contents.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def submit(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """See `Worker`."""
        return super().submit(partial(self._remove, call))

    def begin(self, call: Callable[[], None]) -> None:
        """See `Worker`."""
        super().begin(partial(self._remove, call))

    def _remove(self, call: Callable[[], T]) -> T:
        with deleting(self._directory):
            return call()
