"""Messages are handled at least once, renewed meanwhile, and end in the poison queue if they fail."""

import asyncio
import re
import threading
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueClient, TextBase64DecodePolicy, TextBase64EncodePolicy
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.queues import Extend, Message, Receive, Send
from lazulite_patterns.effects.runtime import Runtime, Sleep
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.transactions import MessageTooLargeError, Task, TaskMessage
from lazulite_patterns.transactions.messages import TEXT_BYTES_MAX
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Crash, Fault, FaultAt, Simulation, every_fault


class Calling(Task[Any]):
    """A task that calls a function with what it was started with."""

    def __init__(self, function: Callable[..., object], name: str = "call") -> None:
        super().__init__(name)
        self.function = function

    def begin(self, argument: Any) -> Protocol[TaskMessage]:
        return TaskMessage(self.name, "an-id", argument)
        yield

    def handle(self, message: TaskMessage) -> Protocol[None]:
        yield from perform(Call(self.function, (message.body,)))


def fail(_: object) -> None:
    raise ValueError("no")


def texts(client: QueueClient) -> list[str]:
    return [each.content for each in client.peek_messages(max_messages=32)]


def test_what_is_started_is_run(queue_client: QueueClient) -> None:
    seen: list[Any] = []
    call = Calling(seen.append)
    with Tasks(queue_client, [call]) as tasks:
        assert [tasks.start(call, {"n": number}) for number in range(5)] == ["an-id"] * 5
        assert tasks.drain(workers=3) == 5
        assert tasks.drain() == 0
    assert sorted(each["n"] for each in seen) == [0, 1, 2, 3, 4]
    assert texts(queue_client) == []


def test_workers_stop_when_they_shall(queue_client: QueueClient) -> None:
    seen: list[Any] = []
    call = Calling(seen.append)
    with Tasks(queue_client, [call]) as tasks:
        for number in range(3):
            tasks.start(call, number)
        tasks.work(workers=2, idle_seconds=0.01, stop=lambda: len(seen) == 3)
        tasks.start(call, 3)
        tasks.work(stop=lambda: True)
    assert sorted(seen) == [0, 1, 2]
    queue_client.delete_queue()
    with Tasks(queue_client, [call]) as tasks, pytest.raises(Rejected, match="QueueNotFound"):
        tasks.work(workers=2, stop=lambda: False)
    queue_client.create_queue()


def poison_of(client: QueueClient, connection_string: str) -> QueueClient:
    return QueueClient.from_connection_string(connection_string, f"{client.queue_name}-poison")


def test_what_fails_goes_to_the_poison_queue(queue_client: QueueClient, connection_string: str) -> None:
    call = Calling(fail)
    poison = poison_of(queue_client, connection_string)
    with Tasks(queue_client, [call], max_dequeue=1) as tasks, poison:
        with pytest.raises(ResourceNotFoundError):
            poison.get_queue_properties()
        tasks.start(call, 1)
        queue_client.send_message("no message of a task")
        queue_client.send_message('{"task": "unknown", "id": "1", "body": 1}')
        assert tasks.drain() == 3
        left = {each.content: each for each in poison.receive_messages()}
        poison.delete_queue()
    assert set(left) == {
        TaskMessage("call", "an-id", 1).text,
        "no message of a task",
        '{"task": "unknown", "id": "1", "body": 1}',
    }
    assert all("9999" in str(each.expires_on) for each in left.values()), "they never expire"
    assert texts(queue_client) == []


def test_a_poison_queue_of_the_programs_own(queue_client: QueueClient, connection_string: str) -> None:
    call = Calling(fail)
    name = f"{queue_client.queue_name}-own"
    with QueueClient.from_connection_string(connection_string, name) as own:
        with Tasks(queue_client, [call], max_dequeue=1, poison=own) as tasks:
            tasks.start(call, 1)
            tasks.drain()
        assert texts(own) == [TaskMessage("call", "an-id", 1).text], "it is open, and created"
        own.delete_queue()


def test_the_poison_queue_has_the_same_encoding(queue_client: QueueClient, connection_string: str) -> None:
    coded = QueueClient.from_connection_string(
        connection_string,
        queue_client.queue_name,
        message_encode_policy=TextBase64EncodePolicy(),
        message_decode_policy=TextBase64DecodePolicy(),
    )
    call = Calling(fail)
    with coded, Tasks(coded, [call], max_dequeue=1) as tasks, poison_of(queue_client, connection_string) as poison:
        tasks.start(call, 1)
        assert texts(queue_client) != texts(coded)
        tasks.drain()
        assert b64decode(texts(poison)[0]).decode() == TaskMessage("call", "an-id", 1).text
        poison.delete_queue()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_message_that_cannot_be_decoded_goes_to_the_poison_queue(
    queue_client: QueueClient, connection_string: str, kind: str
) -> None:
    coding: dict[str, Any] = {
        "message_encode_policy": TextBase64EncodePolicy(),
        "message_decode_policy": TextBase64DecodePolicy(),
    }
    seen: list[Any] = []
    call = Calling(seen.append)
    name = queue_client.queue_name
    queue_client.send_message("no Base64 !!!")
    coded = QueueClient.from_connection_string(connection_string, name, **coding)
    with coded, Tasks(coded, [call], max_dequeue=1) as tasks:
        tasks.start(call, 1)
        assert kind == "async" or tasks.drain() == 2

    async def drained() -> int:
        client = AsyncQueueClient.from_connection_string(connection_string, name, **coding)
        async with client, AsyncTasks(client, [call], max_dequeue=1) as tasks:
            return await tasks.drain()

    assert kind == "sync" or asyncio.run(drained()) == 2
    assert seen == [1]
    with poison_of(queue_client, connection_string) as poison:
        assert [b64decode(each).decode() for each in texts(poison)] == ["no Base64 !!!"]
        poison.delete_queue()


def simulated(task: Task[Any], max_dequeue: int = 5) -> tuple[Simulation, TaskQueue]:
    return Simulation(), TaskQueue("q", "q-poison", {task.name: task}, max_dequeue)


def test_a_message_is_delivered_again_until_it_fails_too_often() -> None:
    seen: list[Any] = []

    def flawed(body: object) -> None:
        seen.append(body)
        raise ValueError

    simulation, work = simulated(Calling(flawed), 3)
    simulation.run(work.start(work.tasks["call"], 7))
    for delivery in range(1, 4):
        assert simulation.run(work.drain(30, 1)) == 1, "it is hidden for its time"
        assert len(seen) == delivery
        assert len(simulation.world.messages("q-poison")) == (delivery == 3)
        simulation.now_seconds += 31
    assert simulation.run(work.drain(30, 1)) == 0


def test_the_log_of_a_failed_delivery_names_task_queue_and_limit(caplog: pytest.LogCaptureFixture) -> None:
    simulation, work = simulated(Calling(fail), 3)
    simulation.run(work.start(work.tasks["call"], 7))
    simulation.run(work.send(TaskMessage("other", "its-id", None)))
    simulation.run(perform(Send("q", "damaged")))
    assert simulation.run(work.drain(30, 1)) == 3, "deliveries that fail count"
    assert [re.sub(r"message \S+,", "message …,", each) for each in caplog.messages] == [
        "task call, queue q, message …, delivery 1 of 3: ValueError: no",
        "task other, queue q, message …, delivery 1 of 3: MessageFormatError: there is no task other",
        "task unknown, queue q, message …, delivery 1 of 3: MessageFormatError: no message of a task: 'damaged'",
    ]


def test_what_is_no_task_is_not_started(queue_client: QueueClient) -> None:
    with Tasks(queue_client) as tasks, pytest.raises(TypeError, match="is no task"):
        tasks.start(cast(Task[int], print), 1)


def test_a_message_whose_workers_crash_goes_to_the_poison_queue_untried() -> None:
    def crash(_: object) -> None:
        raise Crash

    simulation, work = simulated(Calling(crash), 2)
    simulation.run(work.start(work.tasks["call"], 7))
    for _ in range(2):
        with pytest.raises(Crash):
            simulation.run(work.handle_next(30))
        simulation.now_seconds += 31
    assert simulation.run(work.handle_next(30)) is True
    assert (len(simulation.world.messages("q")), len(simulation.world.messages("q-poison"))) == (0, 1)


def test_every_fault_of_a_poisoned_message_on_a_service(
    run: Callable[[Protocol[Any], Failpoints], Any], queue_client: QueueClient, poison_client: QueueClient
) -> None:
    message = TaskMessage("call", "an-id", 7)
    work = TaskQueue("q", "q-poison", {"call": Calling(fail)}, 1, Policy(first_wait_seconds=0.001))

    def poisoned() -> list[str]:
        try:
            return texts(poison_client)
        except ResourceNotFoundError:
            return []

    def attempt(fault: FaultAt) -> None:
        for client in (queue_client, poison_client):
            with suppress(ResourceNotFoundError):
                client.clear_messages()
        run(work.send(message), NoFailpoints())
        with suppress(Crash):
            run(work.handle_next(30), fault)
        hidden = queue_client.get_queue_properties().approximate_message_count
        assert hidden or poisoned(), "poison copy first"
        # The message is delivered again; here by another one, as the first is hidden for its time.
        if hidden:
            run(work.send(message), NoFailpoints())
            run(work.drain(30, 1), NoFailpoints())
        assert set(poisoned()) == {message.text}

    # The first run creates the poison queue, which is two requests more, and the others find it.
    assert sum(1 for _ in every_fault(attempt)) >= 6 * 4


def test_every_fault_of_a_poisoned_message_leaves_it_in_one_queue_or_both() -> None:
    simulations: list[Simulation] = []

    def attempt(fault: FaultAt) -> None:
        simulation, work = simulated(Calling(fail), 1)
        simulations.append(simulation)
        simulation.run(work.start(work.tasks["call"], 7))
        simulation.runtime.failpoints = fault
        try:
            simulation.run(work.handle_next(30))
        except Crash:
            assert simulation.world.messages("q") or simulation.world.messages("q-poison")
        simulation.now_seconds += 31
        simulation.runtime.failpoints = NoFailpoints()
        simulation.run(work.drain(30, 1))
        assert simulation.world.messages("q") == []
        assert len(simulation.world.messages("q-poison")) >= 1, "poison copy first"

    assert sum(1 for _ in every_fault(attempt)) == 6 * 4


class Seen:
    """Counts renewals."""

    def __init__(self, wanted: int = 0) -> None:
        self.wanted = wanted
        self.count = 0
        self.enough = threading.Event()

    def before(self, effect: Effect[object]) -> None:
        self.count += isinstance(effect, Extend)

    def after(self, effect: Effect[object]) -> None:
        if self.count == self.wanted:
            self.enough.set()


def test_visibility_is_renewed_while_a_task_runs(queue_client: QueueClient) -> None:
    seen = Seen(wanted=4)
    call = Calling(lambda _: seen.enough.wait(60))
    with Tasks(queue_client, [call], runtime=Runtime(failpoints=seen)) as tasks:
        tasks.start(call, 1)
        assert tasks.drain(visibility=1) == 1
    assert seen.enough.is_set()
    assert texts(queue_client) == [], "the latest receipt removed it"


class Slow(Task[Any]):
    """A task that takes more than a minute, in which another worker looks for messages."""

    def begin(self, argument: Any) -> Protocol[TaskMessage]:
        return TaskMessage(self.name, "an-id", argument)
        yield

    def handle(self, message: TaskMessage) -> Protocol[None]:
        for _ in range(7):
            yield from perform(Sleep(10))
            assert (yield from perform(Receive("q", 30))) == (), "it is visible meanwhile"


def test_no_other_worker_receives_a_message_meanwhile() -> None:
    simulation, work = simulated(Slow("slow"), 1)
    simulation.run(work.start(work.tasks["slow"], None))
    assert simulation.run(work.handle_next(30)) is True
    assert (simulation.world.messages("q"), simulation.world.messages("q-poison")) == ([], [])


class FirstRejected:
    """The first request is rejected, the others are not."""

    count = 0

    def before(self, effect: Effect[object]) -> None:
        self.count += 1
        if self.count == 1:
            raise Rejected(403, "AuthorizationFailure")

    def after(self, effect: Effect[object]) -> None:
        """Do nothing."""


def test_if_a_worker_fails_all_end(queue_client: QueueClient) -> None:
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > 300

    with (
        Tasks(queue_client, [Calling(fail)], runtime=Runtime(failpoints=FirstRejected())) as tasks,
        pytest.raises(Rejected, match="403"),
    ):
        tasks.work(workers=2, idle_seconds=0.001, stop=stop)
    assert len(asked) < 300


def test_a_message_that_another_worker_received_is_left_to_it() -> None:
    other: list[Message] = []

    def slow(_: object) -> None:
        simulation.now_seconds += 31
        other.extend(simulation.run(perform(Receive("q", 30))))

    simulation, work = simulated(Calling(slow))
    simulation.run(work.start(work.tasks["call"], 7))
    assert simulation.run(work.handle_next(30)) is True
    assert len(other) == 1
    assert len(simulation.world.messages("q")) == 1
    simulation.run(work.drain(30, 1))


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.NEVER_SENT])
def test_a_message_whose_send_is_unknown_is_sent_again(fault: Fault) -> None:
    simulation, work = simulated(Calling(fail))
    simulation.runtime.failpoints = FaultAt(0, fault)
    simulation.run(work.start(work.tasks["call"], 7))
    assert len(simulation.world.messages("q")) == (2 if fault is Fault.ANSWER_LOST else 1)


def test_a_message_that_is_too_large_names_the_claim_check() -> None:
    rest = len(TaskMessage("call", "an-id", "").text)
    assert TaskMessage("call", "an-id", "x" * (TEXT_BYTES_MAX - rest)).text
    simulation, work = simulated(Calling(fail))
    for body in ("x" * (TEXT_BYTES_MAX - rest + 1), "€" * 10_000):
        with pytest.raises(MessageTooLargeError, match="claim check"):
            simulation.run(work.start(work.tasks["call"], body))
    assert simulation.world.messages("q") == []


def test_the_largest_message_is_taken_in_base64(queue_client: QueueClient, connection_string: str) -> None:
    coded = QueueClient.from_connection_string(
        connection_string, queue_client.queue_name, message_encode_policy=TextBase64EncodePolicy()
    )
    seen: list[Any] = []
    call = Calling(seen.append)
    body = "x" * (TEXT_BYTES_MAX - len(TaskMessage("call", "an-id", "").text))
    with coded, Tasks(coded, [call]) as tasks:
        tasks.start(call, body)
    assert len(texts(queue_client)[0]) == 64 * 1024


def test_wrong_settings_are_rejected(queue_client: QueueClient) -> None:
    with pytest.raises(ValueError, match="the same name"):
        Tasks(queue_client, [Calling(fail), Calling(fail)])
    assert Send("q", "text").lifetime_seconds == -1
