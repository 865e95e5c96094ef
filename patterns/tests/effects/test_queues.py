"""Both drivers and the simulation do the same with queues, with functions and with protocols beside each other."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects.calls import Call, WithHeartbeat
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import CreateQueue, Extend, QueueEffect, Receive, Remove, Send
from lazulite_patterns.effects.runtime import Sleep
from lazulite_patterns_simulation import Simulation, World

Run = Callable[[Protocol[Any]], Any]


@pytest.fixture(params=["sync", "async", "simulation"])
def run(request: pytest.FixtureRequest, connection_string: str, queue_client: QueueClient) -> Iterator[Run]:
    """Yield what runs a protocol on a queue named `q`, with one of the drivers."""
    if request.param == "simulation":
        yield Simulation().run
    elif request.param == "sync":
        yield Driver({}, queues={"q": queue_client}).run
    else:

        async def run(protocol: Protocol[Any]) -> Any:
            name = queue_client.queue_name
            async with AsyncQueueClient.from_connection_string(connection_string, name) as client:
                return await AsyncDriver({}, queues={"q": client}).run(protocol)

        yield lambda protocol: asyncio.run(run(protocol))


def rejection(effect: QueueEffect) -> Protocol[tuple[int, str]]:
    try:
        yield from perform(effect)
    except Rejected as error:
        return error.status, error.code
    raise AssertionError("it was done")


def messages() -> Protocol[list[object]]:
    yield from perform(CreateQueue("q"))
    seen: list[object] = [(yield from perform(Receive("q", 30)))]
    first, _ = yield from perform(Send("q", '{"a": "<&>"}'))
    yield from perform(Send("q", "later", delay_seconds=100))
    yield from perform(Send("q", "second", lifetime_seconds=1000))
    sent = yield from perform(Send("q", "removed by its sender", delay_seconds=5))
    yield from perform(Remove("q", *sent))
    received = yield from perform(Receive("q", 30, count=32))
    seen.append([(each.text, each.dequeue_count) for each in received])
    assert received[0].id == first
    seen.append((yield from perform(Receive("q", 30, count=32))))
    receipt = yield from perform(Extend("q", first, received[0].receipt, 0))
    again = (yield from perform(Receive("q", 30)))[0]
    seen += [again.id == first, again.dequeue_count, receipt != again.receipt]
    seen.append((yield from rejection(Remove("q", first, receipt))))
    yield from perform(Remove("q", first, again.receipt))
    seen.append((yield from rejection(Extend("q", first, again.receipt, 30))))
    yield from perform(Remove("q", received[1].id, received[1].receipt))
    return seen


def test_messages(run: Run) -> None:
    both = [('{"a": "<&>"}', 1), ("second", 1)]
    absent = (404, "MessageNotFound")
    assert run(messages()) == [(), both, (), True, 2, True, absent, absent]


def test_a_queue_that_is_absent_is_an_error(connection_string: str) -> None:
    with QueueClient.from_connection_string(connection_string, f"q{uuid4().hex}") as client:
        run = Driver({}, queues={"q": client}).run
        for effect in (Send("q", "text"), Receive("q", 30)):
            with pytest.raises(Rejected, match=r"404 QueueNotFound: queue q: "):
                run(perform(effect))
        run(perform(CreateQueue("q")))
        run(perform(Send("q", "text")))
        client.delete_queue()


def test_a_function_of_the_program_is_called(run: Run) -> None:
    assert run(perform(Call(lambda *given: sum(given), (1, 2)))) == 3
    with pytest.raises(ZeroDivisionError):
        run(perform(Call(lambda: 1 / 0)))


def test_an_asynchronous_function_is_awaited() -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    assert asyncio.run(AsyncDriver({}).run(perform(Call(double, (4,))))) == 8


def beside(seen: list[int]) -> Callable[[], Protocol[None]]:
    def once() -> Protocol[None]:
        yield from perform(Call(seen.append, (len(seen),)))
        raise ValueError("the first protocol goes on")

    return once


def test_a_protocol_runs_beside_another_one() -> None:
    seen: list[int] = []
    enough = threading.Event()

    def count() -> Protocol[None]:
        yield from perform(Call(seen.append, (len(seen),)))
        if len(seen) == 3:
            enough.set()

    assert Driver({}).run(perform(WithHeartbeat(perform(Call(enough.wait, (60,))), count, 0.001))) is True
    assert seen[:3] == [0, 1, 2]


def test_an_asynchronous_protocol_runs_beside_another_one() -> None:
    seen: list[int] = []

    async def main() -> object:
        enough = asyncio.Event()

        def count() -> Protocol[None]:
            yield from perform(Call(seen.append, (len(seen),)))
            if len(seen) == 3:
                enough.set()

        return await AsyncDriver({}).run(perform(WithHeartbeat(perform(Call(enough.wait)), count, 0.001)))

    assert asyncio.run(main()) is True
    assert seen[:3] == [0, 1, 2]


def test_in_a_simulation_the_clock_tells_when_it_runs() -> None:
    seen: list[int] = []

    def slow() -> Protocol[str]:
        yield from perform(Sleep(4))
        yield from perform(Sleep(7))
        return "done"

    assert Simulation().run(perform(WithHeartbeat(slow(), beside(seen), 3))) == "done"
    assert seen == [0, 1, 2]


def test_errors_of_the_first_protocol_are_raised(run: Run) -> None:
    with pytest.raises(Rejected):
        run(perform(WithHeartbeat(perform(Remove("q", "absent", "AgAAAAMAAAAAAAAA")), lambda: perform(Sleep(0)), 60)))


def test_a_message_is_hidden_until_its_time() -> None:
    simulation = Simulation()

    def texts() -> list[str]:
        return [each.text for each in simulation.run(perform(Receive("q", 10, 32)))]

    simulation.run(perform(Send("q", "delayed", delay_seconds=5)))
    simulation.run(perform(Send("q", "short", lifetime_seconds=8)))
    assert texts() == ["short"]
    simulation.now_seconds = 5
    assert texts() == ["delayed"]
    simulation.now_seconds = 10
    assert texts() == [], "one expired, one is hidden for five seconds more"
    simulation.now_seconds = 15
    assert texts() == ["delayed"]
    assert [each.dequeue_count for each in simulation.world.messages("q")] == [2]


def test_at_infinity_every_message_is_visible() -> None:
    effects: list[Effect[object]] = [Send("q", "a", delay_seconds=5), Receive("q", 30), Receive("q", 30)]
    world = World()
    states = set()
    for effect in effects:
        assert isinstance(effect, QueueEffect)
        world, answer = world.perform(effect)
        assert answer
        states.add(world.state)
    assert len(states) == 3
