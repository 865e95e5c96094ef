"""Admits the requests whose responses may have megabytes, so that a crowd of them fits into memory.

Invariants:
- A response counts in its budget only once it is made. So few are begun between two counts: one in a pass of the loop,
  and the next at a time slice each.
- While more than half of the budget is held, the next one waits, in the order of arrival.
- A wait for memory ends in bounded time. Clients that take nothing delay others for `STALL_SECONDS` each: then the
  next response is made, and where the budget is full, the oldest holder is evicted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from lazulite.server.admission.budgets import Budgets, EvictingBudget
from lazulite.server.admission.scheduler import FairScheduler

STALL_SECONDS = 1.0
"""So long nothing may be taken of what is held, until the next response is made nevertheless."""
WAIT_SECONDS_MAX = 10.0
"""So long the first in the queue waits for memory at most."""
_POLL_SECONDS = 0.01


class LargeResponses:
    """The queue of the large responses that one budget counts.

    Args:
        scheduler: gives the time slices.
        memory: the budget in which the responses count.
        clock: monotonic seconds.
        sleep: returns after so many seconds.
    """

    def __init__(
        self,
        scheduler: FairScheduler,
        memory: EvictingBudget,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scheduler = scheduler
        self._memory = memory
        self._clock = clock
        self._sleep = sleep
        self._queue = asyncio.Lock()
        self._began_in_this_pass = False

    async def begin(self) -> None:
        """Return when the next response may be made: at once, unless many are made or held."""
        begins = not (self._began_in_this_pass or self._queue.locked() or self._scheduler.is_crowded)
        if begins and not self._memory.is_crowded:
            self._began_in_this_pass = True
            asyncio.get_running_loop().call_soon(self._end_pass)
            return
        async with self._queue:
            await self._scheduler.time_slice()
            await self._wait_for_memory()

    def _end_pass(self) -> None:
        self._began_in_this_pass = False

    async def _wait_for_memory(self) -> None:
        """Wait until half of the budget is free, its holders take nothing, or the wait has its greatest length."""
        clock, memory = self._clock, self._memory
        lowest_bytes, fell_s = memory.held_bytes, clock()
        end_s = fell_s + WAIT_SECONDS_MAX
        while memory.is_crowded:
            await self._sleep(_POLL_SECONDS)
            now_s = clock()
            if memory.held_bytes < lowest_bytes:
                lowest_bytes, fell_s = memory.held_bytes, now_s
            elif now_s - fell_s >= STALL_SECONDS:
                return
            if now_s >= end_s:
                return


def large_responses(scheduler: FairScheduler, budgets: Budgets) -> Callable[[bool], Awaitable[None]]:
    """Return the function by which the services of a process begin large responses; see `BeginLarge`."""
    queues = tuple(LargeResponses(scheduler, each) for each in (budgets.unauthenticated, budgets.authenticated))

    def begin_large(authenticated: bool) -> Awaitable[None]:
        return queues[authenticated].begin()

    return begin_large
