"""The fair scheduler, with clocks that the tests wind: no test here takes longer on a slow machine."""

import asyncio
import gc
import os
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count, groupby
from pathlib import Path

import pytest

from lazulite.server.admission import scheduler as scheduler_module
from lazulite.server.admission.scheduler import BEGUN_MAX, SLICE_SECONDS, CpuMeter, FairScheduler, schedule_fairly
from tests.server.wire import settle

STEP = 2**-9
SLOW = 12 * STEP


class Clock:
    """Seconds; each look takes a slice's time, so that each step of any work is a slow one."""

    def __init__(self) -> None:
        self._ticks = count()

    def __call__(self) -> float:
        return next(self._ticks) * STEP


class HandClock:
    """Seconds that pass when asked to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class WatchedScheduler(FairScheduler):
    """Notes its rests instead of resting, and makes as if requests were answered meanwhile."""

    def __init__(
        self,
        *,
        contended: bool = False,
        work_clock: Callable[[], float] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(work_clock or Clock(), clock or Clock(), sleep=self._note_pause)
        self.back_offs: list[float] = []
        self.pauses: list[float] = []
        self.entered = 0
        self._contended = contended

    async def _back_off(self, seconds: float) -> None:
        self.back_offs.append(seconds)

    async def _note_pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def enter(self, go: Callable[[], bool], *, slices: int | None = None) -> None:
        self.entered += 1

        def passing() -> bool:
            if self._contended:
                self.short_request_count += 1
            return go()

        super().enter(passing, slices=slices)


async def _work(name: str, steps: int, done: list[str]) -> str:
    for _ in range(steps):
        done.append(name)
        await asyncio.sleep(0)
    return name


async def test_the_lane_rests_for_a_multiple_of_what_it_did_while_others_want_the_loop() -> None:
    scheduler = WatchedScheduler(contended=True)
    assert await schedule_fairly(_work("a", 5, []), scheduler, CpuMeter()) == "a"
    await settle()
    assert sum(scheduler.back_offs) == pytest.approx(5 * SLOW)
    assert max(scheduler.back_offs) <= 2 * SLOW, "a rest after each slice, and not all at the end"


async def test_many_slow_ones_get_together_what_one_gets() -> None:
    scheduler = WatchedScheduler(contended=True)
    done: list[str] = []
    await asyncio.gather(*(scheduled_task(scheduler, _work(name, 4, done)) for name in "abcd"))
    await settle()
    assert sum(scheduler.back_offs) == pytest.approx(16 * SLOW)
    assert done == list("abcd" + "aaabbbcccddd"), "one after the other, in the order of arrival"


async def test_slices_come_in_rows() -> None:
    """Were each to have one slice, all that take some milliseconds would be done at the same time, and late."""
    scheduler, done = WatchedScheduler(), list[str]()
    await asyncio.gather(*(scheduled_task(scheduler, _work(name, 12, done)) for name in "ab"))
    assert [(name, len(list(slices))) for name, slices in groupby(done[2:])] == [("a", 8), ("b", 8), ("a", 3), ("b", 3)]


async def test_the_lane_does_not_rest_while_nobody_else_wants_the_loop() -> None:
    scheduler = WatchedScheduler()
    await schedule_fairly(_work("a", 5, []), scheduler, CpuMeter())
    assert scheduler.back_offs == []


async def test_background_work_pauses_five_times_as_long_as_it_works_even_if_it_seems_alone() -> None:
    scheduler = WatchedScheduler()
    assert await scheduler.schedule_in_background(_work("a", 5, [])) == "a"
    assert scheduler.pauses == [5 * STEP] * 5
    await scheduler.schedule_fairly(_work("a", 5, []))
    assert len(scheduler.pauses) == 5, "requests do not pause"


async def test_short_background_work_does_not_pause() -> None:
    scheduler = WatchedScheduler(clock=HandClock())
    assert await scheduler.schedule_in_background(_work("a", 50, [])) == "a"
    assert scheduler.pauses == []


async def test_short_work_does_not_enter_the_lane() -> None:
    scheduler, meter = WatchedScheduler(clock=HandClock()), CpuMeter()
    assert await schedule_fairly(_work("a", 50, []), scheduler, meter) == "a"
    assert (scheduler.entered, meter.total_s) == (0, 0.0)


async def test_a_request_of_some_steps_each_of_them_interrupted_is_not_slow() -> None:
    clock, work_clock = HandClock(), HandClock()
    scheduler, meter = WatchedScheduler(clock=clock, work_clock=work_clock), CpuMeter()

    async def work() -> None:
        for _ in range(5):
            clock.now_s += 0.9 * SLICE_SECONDS
            work_clock.now_s += 0.03 * SLICE_SECONDS
            await asyncio.sleep(0)

    await schedule_fairly(work(), scheduler, meter)
    assert meter.total_s == pytest.approx(0.15 * SLICE_SECONDS)
    assert scheduler.entered == 0


async def test_work_is_not_slow_for_others_having_had_the_processor() -> None:
    scheduler, meter = WatchedScheduler(work_clock=HandClock(), clock=Clock()), CpuMeter()
    assert await schedule_fairly(_work("a", 50, []), scheduler, meter) == "a"
    assert (scheduler.entered, meter.total_s) == (0, 0.0)


async def test_what_the_loop_did_before_is_not_counted_as_work() -> None:
    clock, work_clock = HandClock(), HandClock()
    scheduler, meter = WatchedScheduler(clock=clock, work_clock=work_clock), CpuMeter()

    async def works_and_is_kept_waiting() -> None:
        clock.now_s += 1
        await asyncio.sleep(0)

    for _ in range(2):
        await schedule_fairly(works_and_is_kept_waiting(), scheduler, meter)
        clock.now_s += 10
        work_clock.now_s += 10  # Others work.
    assert (scheduler.entered, meter.total_s) == (0, 0.0)
    scheduler.note(clock.now_s)
    work_clock.now_s += 10
    assert scheduler.worked(1) == 1, "not more than it took"


async def test_who_waits_for_something_else_does_not_wait_for_a_slice() -> None:
    scheduler, answer = WatchedScheduler(), asyncio.get_running_loop().create_future()

    async def waits() -> int:
        return int(await answer)

    task = scheduled_task(scheduler, waits())
    await settle()
    assert not task.done()
    answer.set_result(7)
    assert await task == 7
    assert scheduler.entered == 0


async def _back_off(busy: float, *, ticks: int = 50, tick_s: float = SLICE_SECONDS) -> int:
    """Rest for so many ticks of a loop that is so busy; return the ticks that it took."""
    looks, now_s = 0, 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += tick_s
        return now_s

    def demanded() -> float:
        nonlocal looks
        looks += 1
        return now_s * busy

    await FairScheduler(clock=clock, demand_clock=demanded)._back_off(ticks * tick_s)
    return looks // 2


async def test_a_rest_ends_when_the_loop_is_idle() -> None:
    assert await _back_off(busy=0.0) == await _back_off(busy=0.4) == 1
    assert await _back_off(busy=0.6) >= 25


async def test_no_rest_takes_longer_than_a_second() -> None:
    assert await _back_off(busy=1.0, tick_s=0.25) == 4


async def test_who_has_left_is_passed_over() -> None:
    scheduler = WatchedScheduler(contended=True)
    scheduler.enter(lambda: False)
    await scheduler.time_slice()
    assert scheduler.back_offs == []


async def test_what_the_work_waits_for_reaches_it_and_so_do_errors() -> None:
    scheduler = WatchedScheduler()
    answer = asyncio.get_running_loop().create_future()

    async def waits() -> int:
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="once"):
            await answer
        await asyncio.sleep(0)
        return 7

    task = scheduled_task(scheduler, waits())
    await settle()
    answer.set_exception(ValueError("once"))
    assert await task == 7

    async def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await schedule_fairly(fails(), scheduler, CpuMeter())


async def test_work_is_cancelled_while_it_waits_for_its_slice() -> None:
    scheduler, meter = FairScheduler(Clock(), Clock()), CpuMeter()
    waits: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            waits.append(meter.waits)

    task = asyncio.ensure_future(_as_coroutine(scheduler, work(), meter))
    await asyncio.sleep(0)
    assert meter.waits
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waits == [False], "it ended, and waited no more"
    assert await _comes(scheduler), "the scheduler passes over it"


async def test_work_that_has_its_slice_does_not_wait() -> None:
    scheduler, meter = WatchedScheduler(), CpuMeter()
    waits: list[bool] = []

    async def work() -> None:
        await asyncio.sleep(0)
        waits.append(meter.waits)

    await schedule_fairly(work(), scheduler, meter)
    assert (scheduler.entered, waits) == (1, [False])


async def _comes(scheduler: FairScheduler) -> bool:
    """Tell whether one more waiting task gets its slice."""
    one = asyncio.ensure_future(scheduler.time_slice())
    await settle()
    come = one.done()
    one.cancel()
    return come


class TiredLane(WatchedScheduler):
    """Rests forever after its first slice."""

    async def _back_off(self, seconds: float) -> None:
        await asyncio.Event().wait()


async def test_a_closed_lane_lets_everybody_on() -> None:
    scheduler = TiredLane(contended=True)
    waiting = [asyncio.ensure_future(scheduler.time_slice()) for _ in range(3)]
    await settle()
    assert [each.done() for each in waiting] == [True, False, False]
    scheduler.close()
    await settle()
    assert all(each.done() for each in waiting)
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing of it is left"
    assert await _comes(scheduler), "and it can be used again"
    scheduler.close()


async def test_the_lane_goes_on_when_there_was_no_memory_for_a_slice() -> None:
    scheduler = WatchedScheduler(contended=True)
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))

    def fail() -> bool:
        raise MemoryError

    let_on: list[bool] = []

    def come() -> bool:
        let_on.append(True)
        return True

    scheduler.enter(fail)
    scheduler.enter(come)
    await settle()
    assert let_on
    gc.collect()
    assert len(reported) == 1, "and it is reported"


class _Held:
    """Something large that a request holds."""


async def _rejected(held: list[weakref.ref[_Held]], waits: "list[asyncio.Future[None]]") -> None:
    mine = _Held()
    held.append(weakref.ref(mine))
    await waits.pop()


@pytest.mark.parametrize("end", ["failure", "cancellation"])
async def test_what_ends_by_an_error_leaves_nothing_for_the_cycle_collector(end: str) -> None:
    scheduler, held = WatchedScheduler(contended=False), list[weakref.ref[_Held]]()
    wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(scheduler.schedule_fairly(_rejected(held, [wait])))
    await settle()
    gc.collect()
    gc.disable()
    try:
        if end == "failure":
            wait.set_exception(ValueError("no"))
        else:
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or task.exception() is not None
        del task, wait
        await settle()
        assert held[0]() is None
    finally:
        gc.enable()


async def test_a_meter_begins_anew_with_other_work() -> None:
    meter = CpuMeter()
    meter.total_s = meter.unsettled_s = 1.0
    meter.slices = 5
    await schedule_fairly(_work("a", 0, []), WatchedScheduler(contended=False), meter)
    assert meter.total_s < 1
    assert meter.unsettled_s < 1
    assert meter.slices == 0


async def test_scheduled_work_needs_no_meter_of_the_caller() -> None:
    scheduler = WatchedScheduler(contended=True)
    assert await scheduler.schedule_fairly(_work("a", 2, [])) == "a"
    await settle()
    assert sum(scheduler.back_offs) == pytest.approx(2 * SLOW)


def _take(name: str, done: list[str]) -> bool:
    done.append(name)
    return True


async def test_postponed_work_takes_every_ninth_slice_at_least() -> None:
    scheduler = WatchedScheduler()
    done: list[str] = []

    for name in ("p", "p"):
        scheduler.postpone(partial(_take, name, done))
    for _ in range(20):
        scheduler.enter(partial(_take, "e", done))
    while scheduler._dispatcher is not None:
        await settle()
    assert "".join(done) == "eeeeeeeepeeeeeeeepeeee"


async def test_a_lane_that_closes_lets_postponed_work_on() -> None:
    scheduler = WatchedScheduler()
    done: list[str] = []
    scheduler.postpone(partial(_take, "p", done))
    scheduler.close()
    assert done == ["p"]


def test_demand_is_work_and_waiting_for_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedstat = tmp_path / "schedstat"
    monkeypatch.setattr(scheduler_module, "_SCHEDSTAT", str(schedstat))
    monkeypatch.setattr("time.thread_time", lambda: 3.0)
    assert scheduler_module.demand_seconds() == 3.0, "not Linux"
    schedstat.write_text("5000000000 250000000 7\n")
    assert scheduler_module.demand_seconds() == 3.25
    descriptors = len(os.listdir("/proc/self/fd"))
    scheduler_module.demand_seconds()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def scheduled_task(scheduler: FairScheduler, work: Coroutine[object, None, object]) -> "asyncio.Task[object]":
    return asyncio.ensure_future(_as_coroutine(scheduler, work, CpuMeter()))


async def _as_coroutine(scheduler: FairScheduler, work: Coroutine[object, None, object], meter: CpuMeter) -> object:
    return await schedule_fairly(work, scheduler, meter)


def test_a_dispatcher_whose_loop_was_closed_is_collected_in_silence() -> None:
    loop, scheduler = asyncio.new_event_loop(), FairScheduler()

    async def begin() -> None:
        scheduler.enter(lambda: True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop.set_exception_handler(lambda *_: None)  # Of asyncio itself: a pending task was destroyed.
    loop.run_until_complete(begin())
    loop.close()
    dispatch = scheduler._dispatcher
    assert dispatch is not None
    coroutine = dispatch.get_coro()
    assert coroutine is not None
    coroutine.close()  # As its collection does; it raises what its end raises.


async def test_other_work_has_its_turn_beside_a_crowd_that_does_not_end() -> None:
    scheduler = WatchedScheduler()
    works = (schedule_fairly(_work("crowd", 10**9, []), scheduler, CpuMeter()) for _ in range(2 * BEGUN_MAX))
    crowd = [asyncio.ensure_future(work) for work in works]
    await settle()
    assert scheduler.is_crowded
    await scheduler.time_slice()
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
