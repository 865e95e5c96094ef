"""The slow lane, with clocks that the tests wind: no test here takes longer on a slow machine."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from itertools import count, groupby

import pytest

from lazulite.server.demand import demand_seconds
from lazulite.server.lane import TURN_SECONDS, Lane, Meter, paced

from .wire import settle

STEP = 2**-9
SLOW = 8 * STEP


class Clock:
    """Seconds; each look takes a turn's time, so that each step of any work is a slow one."""

    def __init__(self) -> None:
        self._ticks = count()

    def __call__(self) -> float:
        return next(self._ticks) * STEP


class WatchedLane(Lane):
    """Notes its rests instead of resting, and makes as if requests were answered meanwhile."""

    def __init__(self, contended: bool) -> None:
        super().__init__(Clock(), Clock())
        self.rests: list[float] = []
        self._contended = contended

    async def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)

    def enter(self, go: Callable[[], bool], *, goes_on: bool = False) -> None:
        def passing() -> bool:
            if self._contended:
                self.passed_count += 1
            return go()

        super().enter(passing, goes_on=goes_on)


async def _work(name: str, steps: int, done: list[str]) -> str:
    for _ in range(steps):
        done.append(name)
        await asyncio.sleep(0)
    return name


async def test_the_lane_rests_for_a_multiple_of_what_it_did_while_others_want_the_loop() -> None:
    lane = WatchedLane(contended=True)
    assert await paced(_work("a", 5, []), lane, Meter()) == "a"
    await settle()
    assert sum(lane.rests) == pytest.approx(5 * SLOW)
    assert max(lane.rests) <= 2 * SLOW, "a rest after each turn, and not all at the end"


async def test_many_slow_ones_get_together_what_one_gets() -> None:
    lane = WatchedLane(contended=True)
    done: list[str] = []
    await asyncio.gather(*(paced_task(lane, _work(name, 4, done)) for name in "abcd"))
    await settle()
    assert sum(lane.rests) == pytest.approx(16 * SLOW)
    assert done == list("abcd" + "aaabbbcccddd"), "one after the other, in the order of arrival"


async def test_turns_come_in_rows() -> None:
    """Were each to have one turn, all that take some milliseconds would be done at the same time, and late."""
    lane, done = WatchedLane(contended=False), list[str]()
    await asyncio.gather(*(paced_task(lane, _work(name, 12, done)) for name in "ab"))
    assert [(name, len(list(turns))) for name, turns in groupby(done[2:])] == [("a", 8), ("b", 8), ("a", 3), ("b", 3)]


async def test_the_lane_does_not_rest_while_nobody_else_wants_the_loop() -> None:
    lane = WatchedLane(contended=False)
    await paced(_work("a", 5, []), lane, Meter())
    assert lane.rests == []


async def test_short_work_does_not_enter_the_lane() -> None:
    lane, meter = Lane(clock=lambda: 0.0), Meter()
    assert await paced(_work("a", 50, []), lane, meter) == "a"
    assert (lane.waiting_count, meter.total_s) == (0, 0.0)


async def test_work_is_not_slow_for_others_having_had_the_processor() -> None:
    lane, meter = Lane(work_clock=lambda: 0.0, clock=Clock()), Meter()
    assert await paced(_work("a", 50, []), lane, meter) == "a"
    assert (lane.waiting_count, meter.total_s) == (0, 0.0)


async def _rest(busy: float) -> int:
    """Rest for 50 ticks of a loop that is so busy; return the ticks that it took."""
    looks, now_s = 0, 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += TURN_SECONDS
        return now_s

    def demand() -> float:
        nonlocal looks
        looks += 1
        return now_s * busy

    await Lane(clock=clock, demand_clock=demand)._rest(50 * TURN_SECONDS)
    return looks // 2


async def test_a_rest_ends_when_the_loop_is_idle() -> None:
    assert await _rest(busy=0.0) == 1
    assert await _rest(busy=0.9) >= 25


async def test_who_has_left_is_passed_over() -> None:
    lane = WatchedLane(contended=True)
    lane.enter(lambda: False)
    await lane.turn()
    assert lane.rests == []


async def test_what_the_work_waits_for_reaches_it_and_so_do_errors() -> None:
    lane = WatchedLane(contended=False)
    answer = asyncio.get_running_loop().create_future()

    async def waits() -> int:
        await asyncio.sleep(0)
        try:
            await answer
        except ValueError:
            return 7
        return 0

    task = paced_task(lane, waits())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0, answer.set_exception, ValueError())
    assert await task == 7

    async def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await paced(fails(), lane, Meter())


async def test_work_is_cancelled_while_it_waits_for_its_turn() -> None:
    lane = Lane(Clock(), Clock())
    ended: list[int] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            ended.append(1)

    meter = Meter()
    task = asyncio.ensure_future(_as_coroutine(lane, work(), meter))
    await asyncio.sleep(0)
    assert meter.waits
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [1]
    await lane.turn()


async def test_a_closed_lane_lets_everybody_on() -> None:
    lane = Lane(Clock(), Clock())
    waiting = [asyncio.ensure_future(lane.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    lane.close()
    await asyncio.gather(*waiting)
    assert lane.waiting_count == 0


async def test_paced_work_needs_no_meter_of_the_caller() -> None:
    lane = WatchedLane(contended=True)
    assert await lane.paced(_work("a", 2, [])) == "a"
    await settle()
    assert sum(lane.rests) == pytest.approx(2 * SLOW)


def test_demand_grows_with_work() -> None:
    demanded = demand_seconds()
    began = time.thread_time()
    sum(range(200_000))
    used = time.thread_time() - began
    assert used > 0
    assert demand_seconds() - demanded >= used - 1e-6


def paced_task(lane: Lane, work: Coroutine[object, None, object]) -> "asyncio.Task[object]":
    return asyncio.ensure_future(_as_coroutine(lane, work, Meter()))


async def _as_coroutine(lane: Lane, work: Coroutine[object, None, object], meter: Meter) -> object:
    return await paced(work, lane, meter)
