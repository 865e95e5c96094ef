"""One sync for all that wait for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor


class GroupedSync:
    """Runs a sync in a thread. Calls that come while it runs share the next one.

    Args:
        sync: makes all that was done before it began durable; may raise `OSError`.
        worker: runs it.
    """

    def __init__(self, sync: Callable[[], None], worker: Executor) -> None:
        self._sync = sync
        self._worker = worker
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Return when a sync that began after this call has ended. Raises as the sync does."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            # Its waiters may all have been cancelled: then there is no caller for its exception.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        async with self._turn:
            # A call from here on comes too late for this sync.
            self._next = None
            await asyncio.get_running_loop().run_in_executor(self._worker, self._sync)
