"""Each step of a saga is done in its order and recorded, in every interleaving and after every fault."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.storage.queue import QueueClient

from lazulite_patterns import EntityValueError
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.queues import Send
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.session import Session
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Saga, SagaProgress, Step, TaskMessage
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import (
    Crash,
    Fault,
    FaultAt,
    InvariantError,
    Simulation,
    World,
    every_fault,
    explore,
)

from ..faults import FAST, Run

NAMES = ("badge", "mailbox", "payroll")


class Memory:
    """What a saga knows of a table in memory."""

    session: Session[Bag] = Session("records", Bags(), Policy(marks=0))
    clients: Mapping[str, object] = {}
    containers: Mapping[str, object] = {}


class Modelled(Saga):
    """Has steps that the model sees."""

    def __init__(self) -> None:
        super().__init__("hire", records=Memory(), steps=[Step(each, lambda _: None) for each in NAMES])

    def _done(self, step: Step, progress: SagaProgress) -> Protocol[object]:
        key = EntityKey("effect", step.name)
        yield from perform(Write("effects", Operation(Kind.PUT, key, {"By": progress.id})))
        return progress.id


def work(saga: Saga) -> TaskQueue:
    return TaskQueue("q", "q-poison", {"hire": saga})


def in_order(world: World) -> None:
    done = [each for each in NAMES if world.entity("effects", EntityKey("effect", each)) is not None]
    assert tuple(done) == NAMES[: len(done)], "a step was done before the one before it"
    record = world.entity("records", EntityKey("an-id", "hire"))
    recorded = [] if record is None else list(json.loads(str(record.properties["Results"])))
    assert recorded == done[: len(recorded)], "a step is recorded, and not done"
    assert world.messages("q") or len(recorded) == len(NAMES), "a saga is forgotten"


def explored(kind: Callable[[], Saga]) -> int:
    world, _ = World().perform(Send("q", TaskMessage("hire", "an-id", {}).text))
    worker: Callable[[], Protocol[object]] = lambda: work(kind()).handle_next(30)  # noqa: E731
    return explore(world, [worker] * 2, in_order).states_count


def test_steps_are_done_in_order_and_none_is_forgotten() -> None:
    assert explored(Modelled) > 1000


class RecordedFirst(Modelled):
    """Records a step before it is done."""

    def handle(self, message: TaskMessage) -> Protocol[None]:
        for number, name in enumerate(NAMES, 1):
            key = EntityKey(message.id, self.name)
            found = yield from self._records.stored(key)
            yield from self._recorded(key, found, dict.fromkeys(NAMES[:number]))
            yield from self._done(Step(name, lambda _: None), SagaProgress(name, None, {}))


class Backwards(Modelled):
    """Does the last step first."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = self._steps[::-1]


class Unconditional(Modelled):
    """Overwrites the record."""

    def _recorded(self, key: EntityKey, found: object, results: dict[str, object]) -> Protocol[None]:
        yield from perform(Write("records", Operation(Kind.PUT, key, {"Results": json.dumps(results)})))


@pytest.mark.parametrize("mutation", [RecordedFirst, Backwards, Unconditional])
def test_each_rule_is_needed(mutation: type[Modelled]) -> None:
    with pytest.raises(InvariantError):
        explored(mutation)


def test_every_fault_of_a_saga() -> None:
    done: list[str] = []
    message = TaskMessage("hire", "an-id", {"employee": 42})

    def step(name: str) -> Step:
        def run(progress: SagaProgress) -> int:
            assert progress.argument == {"employee": 42}
            assert list(progress.results) == list(NAMES[: NAMES.index(name)])
            done.append(progress.id)
            return len(done)

        return Step(name, run)

    def attempt(fault: FaultAt) -> None:
        done.clear()
        simulation = Simulation()
        saga = Saga("hire", records=Memory(), steps=[step(each) for each in NAMES])
        simulation.run(work(saga).send(message))
        simulation.runtime.failpoints = fault
        with suppress(Crash):
            simulation.run(work(saga).handle_next(30))
        simulation.runtime.failpoints = FaultAt(-1, Fault.BUSY)
        simulation.now_seconds += 61
        simulation.run(work(saga).drain(30, 1))
        assert list(dict.fromkeys(done)) == [f"an-id-{each}" for each in NAMES]
        assert len(done) <= len(NAMES) + 1, "one step at most is done again"
        record = simulation.world.entity("records", EntityKey("an-id", "hire"))
        assert record is not None
        assert record.properties["State"] == "done"
        assert simulation.world.messages("q") == []

    assert sum(1 for _ in every_fault(attempt)) == 6 * (2 + 3 * 3 + 1)


def test_every_fault_of_a_saga_on_a_service(run: Run, table_client: TableClient, queue_client: QueueClient) -> None:
    done: list[str] = []
    records = Table(table_client, Bag, policy=FAST)

    def step(name: str) -> Step:
        return Step(name, lambda progress: done.append(progress.id))

    saga = Saga("hire", records=records, steps=[step(each) for each in NAMES])
    work = TaskQueue("q", "q-poison", {"hire": saga}, policy=FAST)

    def attempt(fault: FaultAt) -> None:
        done.clear()
        queue_client.clear_messages()
        message = TaskMessage("hire", uuid4().hex, {})
        run(work.send(message), NoFailpoints())
        with suppress(Crash):
            run(work.handle_next(30), fault)
        # The message is delivered again; here by another one, as the first is hidden for its time.
        run(work.send(message), NoFailpoints())
        run(work.drain(30, 1), NoFailpoints())
        assert list(dict.fromkeys(done)) == [f"{message.id}-{each}" for each in NAMES]
        assert len(done) <= len(NAMES) + 1, "one step at most is done again"
        record = records.get(EntityKey(message.id, "hire"))
        assert record is not None
        assert (record["State"], list(json.loads(str(record["Results"])))) == ("done", list(NAMES))

    assert sum(1 for _ in every_fault(attempt)) == 6 * (2 + 3 * 3 + 1)


def test_a_saga_on_a_service(table_client: TableClient, queue_client: QueueClient) -> None:
    records = Table(table_client, Bag)
    failures = [OSError("no connection")]

    def badge(progress: SagaProgress) -> Any:
        return {"number": progress.argument["employee"] + 1}

    def mailbox(progress: SagaProgress) -> Any:
        if failures:
            raise failures.pop()
        return progress.results["badge"]["number"] + 1

    saga = Saga("hire", records=records, steps=[Step("badge", badge), Step("mailbox", mailbox)])
    with Tasks(queue_client, [saga]) as tasks:
        saga_id = tasks.start(saga, {"employee": 1})
        message = queue_client.peek_messages()[0].content
        assert tasks.drain() == 1
        record = records.get(EntityKey(saga_id, "hire"))
        assert record is not None
        assert (record["State"], record["Results"]) == ("running", '{"badge": {"number": 2}}')
        queue_client.send_message(message)  # As a delivery after the time of the first one.
        tasks.drain()
        record = records.get(EntityKey(saga_id, "hire"))
        assert record is not None
        assert (record["State"], json.loads(str(record["Results"]))["mailbox"]) == ("done", 3)
        queue_client.send_message(message)
        assert tasks.drain() == 1, "a duplicate does nothing"


def test_wrong_sagas_are_rejected() -> None:
    step = Step(uuid4().hex, lambda _: "x" * 40_000)
    for steps in ([], [step, step]):
        with pytest.raises(ValueError, match="names that differ"):
            Saga("hire", records=Memory(), steps=steps)
    saga = Saga("hire", records=Memory(), steps=[step])
    with pytest.raises(EntityValueError, match="Results"):
        Simulation().run(saga.handle(TaskMessage("hire", "an-id", None)))
