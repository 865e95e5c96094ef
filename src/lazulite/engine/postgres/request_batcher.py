"""Calls gathered: those that come while others are on their way go together, as one.

Invariants: groups leave as `batch_window` allows; every call has an answer, and what fails for a group fails for each
of it. A call that nobody waits for any more before it is sent is not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from lazulite.engine.postgres.batch_window import Traffic
from lazulite.engine.postgres.errors import again

_GROUP_MAX = 64
_WEIGHT_MAX = 200

Call = TypeVar("Call")
Result = TypeVar("Result")


class Gather(Generic[Call, Result]):
    """See above.

    Args:
        send: sends calls and returns what came of each, in their order.
        weight: of a call; a group has `_WEIGHT_MAX` at most, unless one call alone has more.
        patience_seconds: see `Traffic`.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Call]], Awaitable[Sequence[Result]]],
        weight: Callable[[Call], int] = lambda _: 1,
        patience_seconds: float = 0.0,
    ) -> None:
        self._send_group = send
        self._weight = weight
        self._traffic = Traffic(_GROUP_MAX, patience_seconds, self._send)
        self._waiting: list[tuple[Call, asyncio.Future[Result]]] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def __call__(self, call: Call) -> Awaitable[Result]:
        """Return what gives what came of a call, or raises it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((call, answer))
        if len(self._waiting) in (1, _GROUP_MAX) and self._traffic.allows(len(self._waiting)):
            loop.call_soon(self._send)  # Others of this turn come along.
        return answer

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        while self._under_way:
            await asyncio.wait(list(self._under_way))

    def _send(self) -> None:
        self._waiting = [each for each in self._waiting if not each[1].done()]  # Some do not wait any more.
        while self._waiting and self._traffic.allows(len(self._waiting)):
            count = self._count()
            group, self._waiting = self._waiting[:count], self._waiting[count:]
            task = asyncio.create_task(self._answer(group))
            self._under_way.add(task)
            self._traffic.leave(task, len(group))
            task.add_done_callback(self._done)

    def _count(self) -> int:
        weight = 0
        for count, (call, _) in enumerate(self._waiting[:_GROUP_MAX]):
            weight += self._weight(call)
            if count and weight > _WEIGHT_MAX:
                return count
        return min(len(self._waiting), _GROUP_MAX)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._traffic.arrive(task)
        self._send()

    async def _answer(self, group: "list[tuple[Call, asyncio.Future[Result]]]") -> None:
        try:
            results = await self._send_group([call for call, _ in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever.
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(again(error))
        else:
            for (_, answer), result in zip(group, results, strict=True):
                if not answer.done():  # A caller who does not wait any more.
                    answer.set_result(result)
