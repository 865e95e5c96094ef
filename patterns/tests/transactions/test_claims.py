"""A message that is too large lies in a blob, which has a message at every instant and is deleted when that is done."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.effects.blobs import BlobDelete, BlobPut
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.queues import CreateQueue, Extend, Length, Message, Receive, Remove, Send
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Write
from lazulite_patterns.outcomes import OutcomeUnknown, Policy
from lazulite_patterns.transactions import MessageTooLargeError, TaskMessage
from lazulite_patterns.transactions.claims import Claims
from lazulite_patterns.transactions.messages import CLAIM_BYTES_MAX, TEXT_BYTES_MAX, Claim, MessageFormatError
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Crash, FaultAt, InvariantError, Simulation, World, every_fault, explore
from lazulite_patterns_simulation.world import Request

from .test_tasks import Calling, fail

LARGE = "x" * TEXT_BYTES_MAX
UNMARKED = Policy(marks=0)


def texts(client: QueueClient) -> list[str]:
    return [each.content for each in client.peek_messages(max_messages=32)]


def names(container: ContainerClient) -> list[str]:
    return [each.name for each in container.list_blobs()]


def test_a_large_message_is_in_a_blob_until_it_is_done(
    queue_client: QueueClient, container_client: ContainerClient
) -> None:
    seen: list[Any] = []
    call = Calling(seen.append)
    for large in (LARGE, "€" * 2_000_000):
        with Tasks(queue_client, [call], claims=container_client) as tasks:
            tasks.start(call, "small")
            tasks.start(call, large)
            (name,) = names(container_client)
            assert name.startswith(f"{queue_client.queue_name}/")
            assert [len(each) < 150 for each in texts(queue_client)] == [True, True], "it is visible at once"
            assert tasks.drain() == 2
        assert seen == ["small", large]
        seen.clear()
        assert names(container_client) == texts(queue_client) == []


def test_a_large_message_that_fails_keeps_its_blob_and_can_be_sent_again(
    queue_client: QueueClient, container_client: ContainerClient
) -> None:
    with Tasks(queue_client, [Calling(fail)], max_dequeue=1, claims=container_client) as tasks:
        tasks.start(Calling(fail), LARGE)
        tasks.drain()
        (poison,) = tasks.poison.receive_messages()
        queue_client.send_message(poison.content)
        tasks.poison.delete_queue()
    seen: list[Any] = []
    with Tasks(queue_client, [Calling(seen.append)], claims=container_client) as tasks:
        tasks.drain()
        assert seen == [LARGE]
        queue_client.send_message(poison.content)
        assert (tasks.drain(), len(seen)) == (1, 1), "a second message finds nothing to do"
    assert names(container_client) == []


def test_blobs_whose_message_another_program_removed_are_collected(
    queue_client: QueueClient, container_client: ContainerClient
) -> None:
    call = Calling(fail)
    later = Runtime(utc_now=lambda: datetime.now(UTC) + timedelta(seconds=700))
    with Tasks(queue_client, [call], claims=container_client) as young:
        young.start(call, LARGE)
        container_client.upload_blob("others/1", b"")
        with Tasks(queue_client, [call], claims=container_client, runtime=later) as tasks:
            assert tasks.collect() == 0, "there is a message"
            queue_client.clear_messages()
            tasks.poison.create_queue()
            tasks.poison.send_message("it failed")
            assert tasks.collect() == 0, "there may be a message in the poison queue"
            tasks.poison.delete_queue()
            assert young.collect() == 0, "it is young"
            assert tasks.collect() == 1
    assert names(container_client) == ["others/1"]
    with Tasks(queue_client, [call]) as tasks, pytest.raises(ValueError, match="claims="):
        tasks.collect()


def test_large_messages_with_asynchronous_clients(
    queue_client: QueueClient, container_client: ContainerClient, connection_string: str
) -> None:
    seen: list[Any] = []

    async def main() -> None:
        container = AsyncContainerClient.from_connection_string(connection_string, container_client.container_name)
        queue = AsyncQueueClient.from_connection_string(connection_string, queue_client.queue_name)
        call = Calling(seen.append)
        async with container, queue, AsyncTasks(queue, [call], claims=container) as tasks:
            await tasks.start(call, LARGE)
            assert await tasks.collect() == 0
            await tasks.drain()

    asyncio.run(main())
    assert seen == [LARGE]
    assert names(container_client) == []


def work(function: Callable[..., object], kind: type[Claims] = Claims) -> TaskQueue:
    return TaskQueue("q", "p", {"call": Calling(function)}, 5, claims=kind("c", "q", "p"))


def test_messages_that_are_none_of_the_queue_are_rejected() -> None:
    simulation, claims = Simulation(), Claims("c", "q", "p")
    message = TaskMessage("call", "1", LARGE)
    simulation.run(perform(BlobPut("c", "q/1", message.json.encode())))
    size = len(message.json)
    for claim in (Claim("other/1", 5), Claim("q/1", 0), Claim("q/1", CLAIM_BYTES_MAX + 1), Claim("q/1", 10)):
        with pytest.raises(MessageFormatError):
            simulation.run(claims.download(message, claim))
    with pytest.raises(MessageFormatError, match="another message"):
        simulation.run(claims.download(TaskMessage("call", "2"), Claim("q/1", size)))
    assert simulation.run(claims.download(message, Claim("q/1", size))) == message
    assert simulation.run(claims.download(message, Claim("q/2", size))) is None
    with pytest.raises(MessageFormatError):
        TaskMessage.of('{"task":"call","id":"1","claim":"q/1"}')
    with pytest.raises(MessageFormatError, match="no container"):
        simulation.run(TaskQueue("q", "p", {"call": Calling(fail)})._run_task(claimed("q/1")))


def claimed(name: str) -> Any:
    return type("Text", (), {"text": TaskMessage("call", "1", claim=Claim(name, 5)).text})


def test_a_message_beyond_all_limits_is_rejected_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite_patterns.transactions.claims.CLAIM_BYTES_MAX", len(LARGE))
    simulation, own = Simulation(), work(fail)
    with pytest.raises(MessageTooLargeError, match="fit into a blob"):
        simulation.run(own.start(own.tasks["call"], LARGE))
    assert simulation.world.messages("q") == []


def test_an_upload_that_is_rejected_leaves_no_message() -> None:
    class Full:
        def before(self, effect: Effect[object]) -> None:
            if isinstance(effect, BlobPut):
                raise Rejected(403, "AuthorizationFailure")

        def after(self, effect: Effect[object]) -> None: ...

    simulation, own = Simulation(failpoints=Full()), work(fail)
    with pytest.raises(Rejected):
        simulation.run(own.start(own.tasks["call"], LARGE))
    assert simulation.world.messages("q") == []


def test_an_upload_that_was_sent_twice_keeps_its_message() -> None:
    """The transport sent the blob again after a lost answer: the service says that it is there."""

    class Twice:
        def before(self, effect: Effect[object]) -> None:
            if isinstance(effect, BlobPut):
                simulation.world, _ = simulation.world.perform(effect, 0)

        def after(self, effect: Effect[object]) -> None: ...

    simulation, own = Simulation(failpoints=Twice()), work(fail)
    simulation.run(own.start(own.tasks["call"], LARGE))
    assert len(simulation.world.messages("q")) == 1


def test_an_upload_after_the_deadline_is_not_taken_for_a_start() -> None:
    class Slow:
        def before(self, effect: Effect[object]) -> None:
            simulation.now_seconds += 61 * isinstance(effect, BlobPut)

        def after(self, effect: Effect[object]) -> None: ...

    simulation, own = Simulation(failpoints=Slow()), work(fail)
    with pytest.raises(OutcomeUnknown, match="after the deadline"):
        simulation.run(own.start(own.tasks["call"], LARGE))


def test_every_fault_leaves_no_blob_and_loses_no_task_that_started() -> None:
    def attempt(fault: FaultAt) -> None:
        seen: list[Any] = []
        simulation, own, started = Simulation(failpoints=fault), work(seen.append), False
        with suppress(Crash):
            simulation.run(own.start(own.tasks["call"], LARGE))
            started = True
            simulation.run(own.drain(30, 1))
        simulation.runtime.failpoints = NoFailpoints()
        simulation.now_seconds += 100
        simulation.run(own.drain(30, 1))
        assert seen or not started
        assert (simulation.world.messages("q"), simulation.world.blobs("c")) == ([], [])

    # Send, upload, show; receive, read, the task, delete, remove, and receive again.
    assert sum(1 for _ in every_fault(attempt)) >= 9 * 6 - 6


STARTED, DONE, OVER = ("state", EntityKey("started", "")), ("state", EntityKey("done", "")), EntityKey("over", "")


class Timed(World):
    """What the protocol assumes of time: a hidden message is seen if it is shown, or if no upload can succeed."""

    def perform(self, effect: Request, now_seconds: float = 0.0) -> tuple[World, object]:
        over = self.entity("state", OVER) is not None
        if isinstance(effect, BlobPut) and over:
            raise Rejected(400, "TooLate")
        after, answer = super().perform(effect, 1e9 if over else now_seconds)
        return Timed(after._rows, after._queues, after._containers), answer


class Modelled(Calling):
    """A task that the model sees."""

    def __init__(self) -> None:
        super().__init__(fail)

    def handle(self, message: TaskMessage) -> Protocol[None]:
        yield from perform(Write(DONE[0], Operation(Kind.PUT, DONE[1])))


class UploadFirst(TaskQueue):
    """Uploads the blob before it sends the message."""

    def _send_by_claim(self, message: TaskMessage, claims: Claims) -> Protocol[None]:
        check = yield from claims.reference(message)
        assert check.claim is not None
        yield from perform(BlobPut("c", check.claim.name, message.json.encode()))
        yield from perform(Send("q", check.text))


class Forgetful(TaskQueue):
    """Removes the message before it deletes the blob."""

    def handle(self, received: Message, visibility_seconds: int) -> Protocol[None]:
        message = TaskMessage.of(received.text)
        assert message.claim is not None
        with suppress(Rejected):
            if (yield from self.claims.download(message, message.claim)) is not None:  # type: ignore[union-attr] # it has them
                yield from perform(Write(DONE[0], Operation(Kind.PUT, DONE[1])))
            yield from perform(Remove("q", received.id, received.receipt))
            yield from perform(BlobDelete("c", message.claim.name))


class Hasty(TaskQueue):
    """Deletes the blob before the task is run."""

    def _run_task(self, received: Message) -> Protocol[None]:
        message = TaskMessage.of(received.text)
        assert message.claim is not None
        with suppress(Rejected):
            yield from perform(BlobDelete("c", message.claim.name))
            yield from perform(Write(DONE[0], Operation(Kind.PUT, DONE[1])))


class Shown(TaskQueue):
    """Sends the message so that workers see it at once."""

    def send(self, message: TaskMessage, delay_seconds: int = 0, attempts: object = None) -> Protocol[Any]:
        return perform(Send("q", message.text))


class Counting(Claims):
    """Takes each blob for old that the clock allows."""

    def collect(self) -> Protocol[int]:
        over = (yield from perform(Read("state", OVER))) is not None
        return (yield from Claims("c", "q", "p", UNMARKED, -1 if over else 600).collect())


class Blind(Counting):
    """Deletes old blobs whatever is in the queues."""

    def _has_messages(self, queue: str) -> Protocol[bool]:
        return False
        yield

    def collect(self) -> Protocol[int]:
        return Claims.collect(type("B", (Blind,), {})("c", "q", "p", UNMARKED, -1))


def processes(kind: type[TaskQueue], claims: type[Claims]) -> Iterator[Callable[[], Protocol[object]]]:
    own = kind("q", "p", {"call": Modelled()}, policy=UNMARKED, claims=claims("c", "q", "p", UNMARKED))

    def starting() -> Protocol[None]:
        yield from own.start(own.tasks["call"], LARGE)
        yield from perform(Write(STARTED[0], Operation(Kind.PUT, STARTED[1])))

    def passing() -> Protocol[object]:
        return (yield from perform(Write("state", Operation(Kind.PUT, OVER))))

    yield from (starting, passing, lambda: own.handle_next(30), lambda: own.handle_next(30))
    assert own.claims is not None
    yield own.claims.collect


def kept(world: World) -> None:
    messages, blobs = world.messages("q"), {each.name for each in world.blobs("c")}
    checks = [TaskMessage.of(each.text).claim for each in messages]
    assert blobs <= {each.name for each in checks if each is not None}, "a blob without a message"
    done = world.entity(*DONE) is not None
    assert done or world.entity(*STARTED) is None or blobs, "a task is lost"


def test_a_blob_has_a_message_and_no_task_is_lost_in_every_interleaving() -> None:
    assert explore(Timed(), list(processes(TaskQueue, Counting)), kept).states_count > 10


@pytest.mark.parametrize(
    ("kind", "claims"),
    [(UploadFirst, Counting), (Forgetful, Counting), (Hasty, Counting), (Shown, Counting), (TaskQueue, Blind)],
)
def test_each_step_is_needed(kind: type[TaskQueue], claims: type[Claims]) -> None:
    with pytest.raises(InvariantError):
        explore(Timed(), list(processes(kind, claims)), kept)


def test_the_length_of_a_queue_counts_hidden_messages_as_in_memory(queue_client: QueueClient) -> None:
    driver, simulation = Driver({}, queues={"q": queue_client}), Simulation()
    for run in (driver.run, simulation.run):
        assert run(perform(Length("q"))) == 0
        run(perform(CreateQueue("q")))
        sent = run(perform(Send("q", "1", 60)))
        run(perform(Send("q", "2")))
        run(perform(Receive("q", 60)))
        run(perform(Extend("q", sent.id, sent.receipt, 60)))
        assert run(perform(Length("q"))) == 2
