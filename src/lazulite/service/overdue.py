"""Operations that outlive the time of their requests: they go on to their end, so that none is ever half done."""

import asyncio
from collections.abc import Callable

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.routing import Operation


class OverdueOperations:
    """The overdue operations of one service.

    Args:
        schedule_fairly: schedules an operation that may outlive its request.
    """

    def __init__(self, schedule_fairly: Callable[[Operation], Operation]) -> None:
        self._schedule_fairly = schedule_fairly
        self._running: set[asyncio.Task[Response]] = set()

    async def within(self, seconds: float, operation: Operation) -> Response:
        """Return the response of an operation that takes no longer.

        Raises:
            ServiceError: `OperationTimedOut`, or an error of the operation.
        """
        task = asyncio.create_task(self._schedule_fairly(operation))
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        self._running.add(task)
        task.add_done_callback(self._discard)
        raise ServiceError("OperationTimedOut")

    def _discard(self, task: asyncio.Task[Response]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, so that asyncio does not report it as lost.
