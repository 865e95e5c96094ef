"""The slow lane: what needs the event loop for long goes through it, one turn at a time, and short requests go past.

Invariants:
- Of those who wait, one at a time is let on, in the order of arrival and for `_TURNS_IN_A_ROW` turns. So everybody
  arrives, and what takes some milliseconds is done before the next begins: a transaction is synced while the next one
  is read.
- While others want the loop too, the lane rests after each turn `_REST_RATIO` times as long as the turn took. So all
  that is slow, however many ask for it, gets a bounded share of the loop; a short request waits for one turn at most.
- While nobody else wants the loop, the lane does not rest: nothing is slower for want of competition.

Work is slow once it has had `TURN_SECONDS` of the loop. It enters the lane where it offers a turn to others, which is
where it yields nothing to wait for (`asyncio.sleep(0)`): the layers below need to know nothing of lanes.
"""

import asyncio
import time
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TypeVar

from lazulite.server.admission.cpu_demand import demand_seconds

TURN_SECONDS = 0.001

_TURNS_IN_A_ROW = 8
_NOTE_SECONDS = TURN_SECONDS / 10
"""How much may be taken for work that was none: a request of some steps, each of them interrupted, stays short."""
_REST_RATIO = 12
_REST_SECONDS_MAX = 1.0
_TICK_SECONDS = 0.001
_IDLE_RATIO = 0.5
"""Of a tick: a loop that has slept this much of it has nothing better to do."""

T = TypeVar("T")


class Lane:
    """One lane for all that one event loop does.

    Args:
        work_clock: seconds that the loop's thread has had the processor. Not those on a clock: on a busy machine a
            short request may take long, and is none the slower for that.
        clock: monotonic seconds.
        demand_clock: seconds that the loop's thread has had the processor or has waited for it.
    """

    def __init__(
        self,
        work_clock: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        demand_clock: Callable[[], float] = demand_seconds,
    ) -> None:
        self.clock = clock
        self._work_clock = work_clock
        self.noted_s = -1.0
        """When `note` was called last."""
        self._noted_work_s = 0.0
        self.passed_count = 0
        """Short requests answered so far."""
        self._demand_clock = demand_clock
        self._waiting: deque[Callable[[], bool]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._owed_s = 0.0

    def note(self, now_s: float) -> None:
        """Look at the clock of work, for `worked`: a look costs ten times as much as one at the other clock."""
        self.noted_s, self._noted_work_s = now_s, self._work_clock()

    def worked(self, seconds: float) -> float:
        """Return what some work of so many seconds took without what others had the processor meanwhile."""
        return min(seconds, self._work_clock() - self._noted_work_s)

    def passed(self) -> None:
        """Note that a short request was answered."""
        self.passed_count += 1

    def owe(self, seconds: float) -> None:
        """Account for slow work that was done."""
        self._owed_s += seconds

    def enter(self, go: Callable[[], bool], *, goes_on: bool = False) -> None:
        """Call `go` when its turn has come; it returns False if nobody takes it any more.

        `goes_on`: its last turn was not the last of those in a row.
        """
        (self._waiting.appendleft if goes_on else self._waiting.append)(go)
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._let_on())

    async def turn(self, *, goes_on: bool = False) -> None:
        """Return when the caller's turn has come; `goes_on` as in `enter`."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go() -> bool:
            if come.done():
                return False
            come.set_result(None)
            return True

        self.enter(go, goes_on=goes_on)
        await come

    def close(self) -> None:
        """Let everybody on at once, and nobody wait any more in vain."""
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None
        while self._waiting:
            self._waiting.popleft()()

    async def _let_on(self) -> None:
        try:
            while self._waiting:
                passed_before = self.passed_count
                if not self._waiting.popleft()():
                    continue
                for _ in range(3):  # It works; what came meanwhile is read; and is answered.
                    await asyncio.sleep(0)
                cost_s, self._owed_s = self._owed_s, 0.0
                if self.passed_count != passed_before:
                    await self._rest(cost_s * _REST_RATIO)
        finally:  # Also when there was no memory for somebody's turn: the others still wait for theirs.
            if self._pump is asyncio.current_task():
                self._pump = asyncio.get_running_loop().create_task(self._let_on()) if self._waiting else None

    async def _rest(self, seconds: float) -> None:
        clock, demand_clock = self.clock, self._demand_clock
        now_s = clock()
        end_s = now_s + min(seconds, _REST_SECONDS_MAX)
        while now_s < end_s:
            before_s, demand_s = now_s, demand_clock()
            await asyncio.sleep(min(_TICK_SECONDS, end_s - now_s))
            now_s = clock()
            if demand_clock() - demand_s < (now_s - before_s) * _IDLE_RATIO:
                return

    def paced(self, work: Coroutine[object, None, T]) -> Coroutine[object, None, T]:
        """Return the same work, by the lane when it proves to be slow."""
        return _awaiting(paced(work, self, Meter()))


async def _awaiting(work: Awaitable[T]) -> T:
    return await work


class Meter:
    """Tells how long some work has had the loop.

    Attributes:
        total_s: since the beginning.
        turns: by the lane, since the beginning.
        unpaid_s: of that, what the lane does not know of.
        waits: the work waits for its turn.
    """

    __slots__ = ("total_s", "turns", "unpaid_s", "waits")

    def __init__(self) -> None:
        self.total_s = self.unpaid_s = 0.0
        self.turns = 0
        self.waits = False


@types.coroutine
def paced(work: Coroutine[object, None, T], lane: Lane, meter: Meter) -> Generator[object, None, T]:
    """Do some work, by the lane when it proves to be slow; the meter forgets what it told of other work."""
    error = None
    clock = lane.clock
    meter.total_s = meter.unpaid_s = 0.0
    meter.turns = 0
    while True:
        began_s = clock()
        if began_s - lane.noted_s > _NOTE_SECONDS:
            lane.note(began_s)
        try:
            awaited = work.send(None) if error is None else work.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            error = None  # Its traceback has this frame: nothing may be left to the cycle collector. So below.
            took_s = clock() - began_s
            if took_s >= _NOTE_SECONDS:
                took_s = lane.worked(took_s)
            meter.total_s += took_s
            meter.unpaid_s += took_s
        try:
            if awaited is None and meter.unpaid_s >= TURN_SECONDS:
                lane.owe(meter.unpaid_s)
                meter.unpaid_s = 0.0
                meter.waits = True
                goes_on = meter.turns % _TURNS_IN_A_ROW != 0
                meter.turns += 1
                yield from lane.turn(goes_on=goes_on).__await__()
                meter.waits = False
            else:
                yield awaited
        except BaseException as thrown:  # noqa: BLE001 - whatever it is, it was meant for the work.
            error = thrown
            awaited = None
            meter.waits = False
