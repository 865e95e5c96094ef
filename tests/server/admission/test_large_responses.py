"""Large responses wait before they are made, so that a crowd of them fits into memory."""

import asyncio
from collections.abc import Callable
from itertools import count

from lazulite.server.admission.budgets import EvictingBudget, budgets_of
from lazulite.server.admission.large_responses import (
    STALL_SECONDS,
    WAIT_SECONDS_MAX,
    LargeResponses,
    large_responses,
)
from lazulite.server.admission.scheduler import BEGUN_MAX, CpuMeter, schedule_fairly
from lazulite.server.limits import Limits
from tests.server.admission.test_scheduler import HandClock, WatchedScheduler
from tests.server.wire import settle

BUDGET = 1_000_000
LARGE = 100_000


class Client:
    """Holds a response until it takes it."""

    def __init__(self) -> None:
        self.evicted = False

    def evict(self) -> None:
        """See `BudgetHolder`."""
        self.evicted = True


class World:
    """A queue whose seconds pass when it looks for memory; `on_look` happens at each look."""

    def __init__(self, on_look: Callable[[], None] = lambda: None) -> None:
        self.scheduler = WatchedScheduler()
        self.memory = EvictingBudget(BUDGET)
        self.clock = HandClock()
        self._on_look = on_look
        self.queue = LargeResponses(self.scheduler, self.memory, self.clock, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.clock.now_s += seconds
        self._on_look()
        await asyncio.sleep(0)

    def fill(self) -> list[Client]:
        """Make clients hold all of the budget; return them."""
        clients = [Client() for _ in range(BUDGET // LARGE)]
        for client in clients:
            self.memory.update(client, LARGE)
        return clients


async def test_one_alone_begins_at_once() -> None:
    world = World()
    for _ in range(3):
        await world.queue.begin()
        await settle()
    assert world.scheduler.entered == 0


async def test_of_many_at_one_instant_one_begins_at_a_time() -> None:
    world = World()
    order = list[int]()

    async def ask(number: int) -> None:
        await world.queue.begin()
        order.append(number)

    asked = [asyncio.ensure_future(ask(number)) for number in range(100)]
    while len(order) < 100:
        before = len(order)
        await asyncio.sleep(0)
        assert len(order) <= before + 1
    await asyncio.gather(*asked)
    assert order == list(range(100))


async def test_a_crowd_whose_responses_exceed_the_budget_is_answered_without_an_eviction() -> None:
    clients = [Client() for _ in range(100)]
    holding = list[Client]()

    def take() -> None:
        if holding:
            world.memory.update(holding.pop(0), 0)

    world = World(on_look=take)

    async def ask(client: Client) -> None:
        await world.queue.begin()
        world.memory.update(client, LARGE)
        holding.append(client)

    await asyncio.gather(*map(ask, clients))
    assert not any(client.evicted for client in clients)
    assert world.memory.evicted_bytes == 0


async def test_clients_that_take_nothing_delay_others_for_a_bounded_time() -> None:
    world = World()
    world.fill()
    await world.queue.begin()
    assert STALL_SECONDS <= world.clock.now_s < STALL_SECONDS + 0.1


async def test_clients_that_take_little_delay_others_for_a_bounded_time() -> None:
    def take_little() -> None:
        world.memory.update(clients[0], next(held))

    held = count(LARGE - 1, -1)
    world = World(on_look=take_little)
    clients = world.fill()
    await world.queue.begin()
    assert WAIT_SECONDS_MAX <= world.clock.now_s < WAIT_SECONDS_MAX + 0.1


async def test_who_leaves_the_queue_does_not_hold_it_up() -> None:
    world = World()
    clients = world.fill()
    first, second = (asyncio.ensure_future(world.queue.begin()) for _ in range(2))
    await settle()
    first.cancel()
    for client in clients:
        world.memory.update(client, 0)
    await second
    assert first.cancelled()


async def test_few_of_a_crowd_of_long_works_are_begun() -> None:
    """Each holds what it has made, so the others wait before they hold anything."""
    world = World()
    begun, most, ends = set[str](), 0, list[str]()

    async def page(name: str) -> None:
        nonlocal most
        await world.queue.begin()
        for _ in range(40):
            begun.add(name)
            most = max(most, len(begun))
            await asyncio.sleep(0)
        begun.discard(name)
        ends.append(name)

    await asyncio.gather(*(schedule_fairly(page(str(number)), world.scheduler, CpuMeter()) for number in range(200)))
    assert len(ends) == 200
    assert most <= BEGUN_MAX + 200 // 8


async def test_clients_without_credentials_do_not_delay_others() -> None:
    budgets = budgets_of(Limits(), lambda: 0.0)
    begin_large = large_responses(WatchedScheduler(), budgets)
    for _ in range(10):
        budgets.unauthenticated.update(Client(), Limits().unauthenticated_bytes // 10)
    await begin_large(True)
    waiting = asyncio.ensure_future(begin_large(False))
    await settle()
    assert not waiting.done()
    waiting.cancel()
