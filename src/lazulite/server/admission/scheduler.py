"""The fair scheduler: all requests share one event loop, and long work runs one piece at a time.

Invariants:
- Waiting work is admitted one at a time, in the order of arrival, for `_SLICES_IN_A_ROW` time slices. So all of it
  finishes, and work of some milliseconds ends before the next begins: a transaction is synced while the next is read.
- A long work that has begun holds what it has made. While `BEGUN_MAX` of them wait, they come first, but for one turn
  in `_TURNS_OF_BEGUN` of other work. What makes a large response waits before it holds anything (`large_responses`).
- While short requests are waiting, the scheduler backs off after each slice, `_BACK_OFF_RATIO` times as long as the
  slice took. So long work has a bounded share of the loop, and a short request waits for one slice.
- Without such competition the scheduler does not back off: nothing is slower for want of competition.
- Work in the background, which no request waits for, pauses `_PAUSE_RATIO` times as long as it has worked before each
  slice, with or without competition. It has at most a sixth of the loop. Competition would show too late: work that
  commits goes on with the commits of short requests, and all of these are answered before its next slice.

Work is long once it has had `SLICE_SECONDS` of the loop. It is scheduled where it yields nothing to wait for
(`asyncio.sleep(0)`): the layers below need to know nothing of the scheduler.

Competition is told by how much processor time a thread would have used, had it been given all that it asked for.
Processor time alone would not tell a thread that sleeps from one that is kept from working by other processes.
"""

import asyncio
import os
import time
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import NamedTuple, TypeVar

_SCHEDSTAT = "/proc/thread-self/schedstat"
"""Linux: nanoseconds on the processor (as of the last read of the clock), on its waiting list, and a count."""

SLICE_SECONDS = 0.001

_SLICES_IN_A_ROW = 8
BEGUN_MAX = 32
_TURNS_OF_BEGUN = 8
_SLICES_BEFORE_POSTPONED = 8
"""Slices of other work before one of postponed work, which is therefore admitted at last."""
_NOTE_SECONDS = SLICE_SECONDS / 10
"""How much may be taken for work that was none: a request of some steps, each of them interrupted, stays short."""
_BACK_OFF_RATIO = 12
_BACK_OFF_SECONDS_MAX = 1.0
_PAUSE_RATIO = 5
_TICK_SECONDS = 0.001
_IDLE_RATIO = 0.5
"""The share of a tick: a loop that has slept this much of it has nothing better to do."""

A = TypeVar("A")
T = TypeVar("T")


def demand_seconds() -> float:
    """Return the seconds that this thread has had the processor or has waited for it, the latter if that is known."""
    return time.thread_time() + _waited_seconds()


def _waited_seconds() -> float:
    try:
        file = os.open(_SCHEDSTAT, os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(file, 100).split()[1]) / 1e9
    finally:
        os.close(file)


class _QueuedTurn(NamedTuple):
    """Work that waits, and its place among all that ever did."""

    number: int
    go: Callable[[], bool]


class FairScheduler:
    """Schedules the long work of one event loop.

    Args:
        work_clock: seconds that the loop's thread has had the processor. Not those on a clock: on a busy machine a
            short request may take long, and is none the slower for that.
        clock: monotonic seconds.
        demand_clock: seconds that the loop's thread has had the processor or has waited for it.
        sleep: returns after so many seconds.
    """

    def __init__(
        self,
        work_clock: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        demand_clock: Callable[[], float] = demand_seconds,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.clock = clock
        self._work_clock = work_clock
        self.noted_s = -1.0
        """When `note` was called last."""
        self._noted_work_s = 0.0
        self.short_request_count = 0
        """Short requests answered so far."""
        self._demand_clock = demand_clock
        self._sleep = sleep
        self._continuing: deque[Callable[[], bool]] = deque()
        self._begun: deque[_QueuedTurn] = deque()
        self._waiting: deque[_QueuedTurn] = deque()
        self._turn_count = 0
        self._turns_of_begun = 0
        self._postponed: deque[Callable[[], bool]] = deque()
        self._slices_since_postponed = 0
        self._dispatcher: asyncio.Task[None] | None = None
        self._charged_s = 0.0

    def note(self, now_s: float) -> None:
        """Read the clock of work, for `worked`: that costs ten times as much as a read of the other clock."""
        self.noted_s, self._noted_work_s = now_s, self._work_clock()

    def worked(self, seconds: float) -> float:
        """Return the processor time of some work that took so many seconds."""
        return min(seconds, self._work_clock() - self._noted_work_s)

    def note_short_request(self) -> None:
        """Note that a short request was answered."""
        self.short_request_count += 1

    def charge(self, seconds: float) -> None:
        """Account for slow work that was done."""
        self._charged_s += seconds

    def enter(self, go: Callable[[], bool], *, slices: int | None = None) -> None:
        """Call `go` when its time slice has come; it returns False if the slice is not needed any more.

        `slices`: how many the work has had that goes on then; None: it has not begun.
        """
        if slices is not None and slices % _SLICES_IN_A_ROW:
            self._continuing.append(go)
        else:
            self._turn_count += 1
            (self._waiting if slices is None else self._begun).append(_QueuedTurn(self._turn_count, go))
        if self._dispatcher is None:
            self._start()

    def postpone(self, go: Callable[[], bool]) -> None:
        """Call `go` as `enter` does, behind most of the others that wait or are still to come."""
        self._postponed.append(go)
        if self._dispatcher is None:
            self._start()

    @property
    def is_crowded(self) -> bool:
        """Whether a crowd of long works is half done."""
        return len(self._begun) >= BEGUN_MAX

    async def time_slice(self, slices: int | None = None) -> None:
        """Return when the caller's time slice has come; `slices` as in `enter`."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go() -> bool:
            if come.done():
                return False
            come.set_result(None)
            return True

        self.enter(go, slices=slices)
        await come

    def close(self) -> None:
        """Admit all waiting work at once."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            self._dispatcher = None
        while self._has_work:
            self._next()()

    @property
    def _has_work(self) -> bool:
        return bool(self._continuing or self._begun or self._waiting or self._postponed)

    def _next(self) -> Callable[[], bool]:
        others = self._continuing or self._begun or self._waiting
        if others and (not self._postponed or self._slices_since_postponed < _SLICES_BEFORE_POSTPONED):
            return self._continuing.popleft() if self._continuing else self._next_turn()
        self._slices_since_postponed = -1  # Its own is counted when it is taken.
        return self._postponed.popleft()

    def _next_turn(self) -> Callable[[], bool]:
        """Return the work that has waited for longest; in a crowd of begun ones, mostly one of these."""
        begun, waiting = self._begun, self._waiting
        takes_begun = not waiting
        if begun and waiting:
            is_crowded = len(begun) >= BEGUN_MAX and self._turns_of_begun < _TURNS_OF_BEGUN
            takes_begun = is_crowded or begun[0].number < waiting[0].number
        self._turns_of_begun = self._turns_of_begun + 1 if takes_begun else 0
        return (begun if takes_begun else waiting).popleft().go

    def _start(self) -> None:
        self._dispatcher = asyncio.get_running_loop().create_task(self._dispatch())
        self._dispatcher.add_done_callback(self._ended)

    def _ended(self, dispatcher: asyncio.Task[None]) -> None:
        if dispatcher is not self._dispatcher:
            return
        self._dispatcher = None
        if self._has_work and not dispatcher.cancelled():
            self._start()  # There was no memory for one slice, say: other work still waits.

    async def _dispatch(self) -> None:
        while self._has_work:
            passed_before = self.short_request_count
            if not self._next()():
                continue
            self._slices_since_postponed += 1
            for _ in range(3):  # It works; what came meanwhile is read; and is answered.
                await asyncio.sleep(0)
            cost_s, self._charged_s = self._charged_s, 0.0
            if self.short_request_count != passed_before:
                await self._back_off(cost_s * _BACK_OFF_RATIO)

    async def _back_off(self, seconds: float) -> None:
        clock, demand_clock = self.clock, self._demand_clock
        now_s = clock()
        end_s = now_s + min(seconds, _BACK_OFF_SECONDS_MAX)
        while now_s < end_s:
            before_s, demand_s = now_s, demand_clock()
            await asyncio.sleep(min(_TICK_SECONDS, end_s - now_s))
            now_s = clock()
            if demand_clock() - demand_s < (now_s - before_s) * _IDLE_RATIO:
                return

    def schedule_fairly(self, work: Coroutine[object, None, T]) -> Coroutine[object, None, T]:
        """Return the same work, scheduled once it proves to be long."""
        return _awaiting(schedule_fairly(work, self, CpuMeter()))

    def schedule_in_background(self, work: Coroutine[object, None, T]) -> Coroutine[object, None, T]:
        """Return the same work, which no request waits for, scheduled once it proves to be long."""
        return _awaiting(schedule_fairly(work, self, CpuMeter(), background=True))

    async def pause(self, worked_s: float) -> None:
        """Return when work in the background, which has had the loop for so many seconds, may go on."""
        await self._sleep(worked_s * _PAUSE_RATIO)


async def _awaiting(work: Awaitable[T]) -> T:
    return await work


class CpuMeter:
    """Tells how long some work has had the loop.

    Attributes:
        total_s: since the beginning.
        slices: time slices since the beginning.
        unsettled_s: the part of it that is not charged yet.
        waits: the work waits for its time slice.
    """

    __slots__ = ("slices", "total_s", "unsettled_s", "waits")

    def __init__(self) -> None:
        self.total_s = self.unsettled_s = 0.0
        self.slices = 0
        self.waits = False


def run_metered(work: Callable[[A], T], argument: A, scheduler: FairScheduler, meter: CpuMeter) -> T:
    """Run some work that never yields; the meter begins again."""
    began_s = scheduler.clock()
    if began_s - scheduler.noted_s > _NOTE_SECONDS:
        scheduler.note(began_s)
    try:
        return work(argument)
    finally:
        took_s = scheduler.clock() - began_s
        meter.total_s = meter.unsettled_s = took_s if took_s < _NOTE_SECONDS else scheduler.worked(took_s)
        meter.slices = 0


@types.coroutine
def schedule_fairly(
    work: Coroutine[object, None, T],
    scheduler: FairScheduler,
    meter: CpuMeter,
    *,
    background: bool = False,
) -> Generator[object, None, T]:
    """Run some work, scheduled once it proves to be long; the meter begins again. `background`: it pauses, too."""
    error = None
    clock = scheduler.clock
    meter.total_s = meter.unsettled_s = 0.0
    meter.slices = 0
    while True:
        began_s = clock()
        if began_s - scheduler.noted_s > _NOTE_SECONDS:
            scheduler.note(began_s)
        try:
            awaited = work.send(None) if error is None else work.throw(error)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            error = None  # Its traceback has this frame: nothing may be left to the cycle collector. So below.
            took_s = clock() - began_s
            if took_s >= _NOTE_SECONDS:
                took_s = scheduler.worked(took_s)
            meter.total_s += took_s
            meter.unsettled_s += took_s
        try:
            if awaited is None and meter.unsettled_s >= SLICE_SECONDS:
                worked_s, meter.unsettled_s = meter.unsettled_s, 0.0
                scheduler.charge(worked_s)
                meter.waits = True
                if background:
                    yield from scheduler.pause(worked_s).__await__()
                slices = meter.slices
                meter.slices += 1
                yield from scheduler.time_slice(slices).__await__()
                meter.waits = False
            else:
                yield awaited
        except BaseException as thrown:  # noqa: BLE001 - whatever it is, it was meant for the work.
            error = thrown
            awaited = None
            meter.waits = False
