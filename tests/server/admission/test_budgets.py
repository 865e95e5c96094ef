"""The budget for bodies is bounded, first come, first served, and gets back what waiting requests give up.

Of the other budgets the oldest holder goes, whatever the order of growing and shrinking.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.server.admission.budgets import HELD_BYTES_MIN, BodyBudget, EvictingBudget
from tests.server.wire import settle


async def reserve(budget: BodyBudget, count: int, seconds: float = 60) -> bool:
    return await budget.reserve(count, seconds, asyncio.get_running_loop().create_future)


async def test_a_request_that_needs_its_room_no_more_lets_the_next_have_it() -> None:
    budget = BodyBudget(100)
    await reserve(budget, 90)
    left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    leaver = asyncio.create_task(budget.reserve(80, 60, lambda: left))
    behind = asyncio.create_task(reserve(budget, 10))
    await settle()
    assert budget.is_crowded
    left.set_result(False)
    assert await leaver is False
    assert await behind is True
    assert budget.held_bytes == 100
    assert not budget.is_crowded


async def test_room_is_given_in_the_order_in_which_it_was_asked_for() -> None:
    budget = BodyBudget(100)
    await reserve(budget, 60)
    waiting = [asyncio.create_task(reserve(budget, count)) for count in (50, 10, 90)]
    await settle()
    assert [task.done() for task in waiting] == [False, False, False]
    budget.release(60)
    await settle()
    assert [task.done() for task in waiting] == [True, True, False]
    assert budget.held_bytes == 60
    budget.release(50)
    budget.release(10)
    await waiting[2]
    assert budget.held_bytes == 90


async def test_a_wait_ends_in_time_and_leaves_nothing_behind() -> None:
    budget = BodyBudget(100)
    await reserve(budget, 100)
    late = asyncio.create_task(reserve(budget, 50, 0))
    behind = asyncio.create_task(reserve(budget, 1))
    with pytest.raises(TimeoutError):
        await late
    budget.release(100)
    await behind
    assert budget.held_bytes == 1


@pytest.mark.parametrize("granted", [False, True])
async def test_room_for_a_request_that_is_cancelled_is_for_the_next(granted: bool) -> None:
    budget = BodyBudget(100)
    await reserve(budget, 100)
    cancelled = asyncio.create_task(reserve(budget, 80))
    behind = asyncio.create_task(reserve(budget, 90))
    await settle()
    if granted:
        budget.release(100)  # The cancelled one learns of its room and of its end at once.
    cancelled.cancel()
    await settle()
    assert cancelled.cancelled()
    if not granted:
        budget.release(100)
        await settle()
    await behind
    assert budget.held_bytes == 90


async def test_a_body_larger_than_the_bound_is_taken_alone() -> None:
    budget = BodyBudget(10)
    await reserve(budget, 20)
    behind = asyncio.create_task(reserve(budget, 1))
    await settle()
    assert not behind.done()
    budget.release(20)
    await behind
    assert budget.held_bytes == 1


async def test_what_is_there_already_counts() -> None:
    budget = BodyBudget(10)
    budget.take(50)
    behind = asyncio.create_task(reserve(budget, 1))
    await settle()
    assert not behind.done()
    budget.release(50)
    await behind


class BudgetHolder:
    def __init__(self, evicted: list["BudgetHolder"]) -> None:
        self._evicted = evicted

    def evict(self) -> None:
        self._evicted.append(self)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60))))
def test_the_oldest_are_evicted(changes: list[tuple[int, int]]) -> None:
    evicted: list[BudgetHolder] = []
    holders = [BudgetHolder(evicted) for _ in range(6)]
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    model: list[tuple[BudgetHolder, int]] = []
    for number, count in changes:
        holder = holders[number]
        places = [place for place, (held, _) in enumerate(model) if held is holder]
        if places and count:
            model[places[0]] = (holder, count)
        elif places:
            del model[places[0]]
        elif count:
            model.append((holder, count))
        expected = []
        while sum(held for _, held in model) > 100:
            expected.append(model.pop(0)[0])
        evicted.clear()
        budget.update(holder, count * HELD_BYTES_MIN)
        assert evicted == expected
        assert budget.held_bytes == sum(held for _, held in model) * HELD_BYTES_MIN


def test_one_large_connection_evicts_few() -> None:
    evicted: list[BudgetHolder] = []
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    for _ in range(100):
        budget.update(BudgetHolder(evicted), 1)
    budget.update(BudgetHolder(evicted), 10 * HELD_BYTES_MIN)
    assert len(evicted) == 10


def test_what_goes_while_others_are_evicted_is_looked_at_once() -> None:
    class Chain(BudgetHolder):
        def evict(self) -> None:
            super().evict()
            budget.update(self, 50 * HELD_BYTES_MIN)
            budget.update(self, 0)

    evicted: list[BudgetHolder] = []
    budget = EvictingBudget(100 * HELD_BYTES_MIN)
    for _ in range(5):
        budget.update(Chain(evicted), 40 * HELD_BYTES_MIN)
    assert len(evicted) == 3
    assert budget.held_bytes == 80 * HELD_BYTES_MIN
