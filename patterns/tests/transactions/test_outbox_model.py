"""A side effect happens if and only if its transaction commits, in every interleaving; each step is needed."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import Receive
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Joined
from lazulite_patterns.table.outbox import OUTBOX
from lazulite_patterns.table.session import Session
from lazulite_patterns.transactions.messages import TaskMessage
from lazulite_patterns.transactions.outbox import Outbox, SideEffect
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns_simulation import InvariantError, World, explore
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "jones")
OVER = ("clock", EntityKey("over", ""))
"""Where it stands that the time of each transaction is over."""


class Table:
    """What an outbox knows of a table in memory."""

    session: Session[Bag] = Session("t", Bags(), Policy(marks=0), outbox=True)
    clients: Mapping[str, object] = {}
    containers: Mapping[str, object] = {}


class Timed(World):
    """What the protocol assumes of time: a message is hidden until its transaction is committed, or never will be."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        over = self.entity(*OVER) is not None
        if isinstance(effect, Batch) and over:
            raise Rejected(400, "TooLate")
        if isinstance(effect, Receive) and not over:
            return self, ()
        after, answer = super().perform(effect, now_seconds)
        return Timed(after._rows, after._queues), answer


class Modelled(Outbox[Bag]):
    """Has a side effect that the model sees."""

    def __init__(self) -> None:
        super().__init__("mails", Table(), lambda _: None)

    def _handled(self, effect: SideEffect) -> Protocol[None]:
        key = EntityKey("effect", str(effect.payload))
        yield from perform(Write("effects", Operation(Kind.PUT, key, {"Id": effect.id})))


def work(outbox: Outbox[Bag]) -> TaskQueue:
    return TaskQueue("q", "poison", {"mails": outbox}, policy=Policy(marks=0))


def writer(outbox: Modelled, name: str) -> Callable[[], Protocol[object]]:
    """Insert an entity, with a side effect; of several writers one succeeds."""

    def run() -> Protocol[None]:
        for _ in name:
            yield from perform(NewId())  # The ids of processes differ by how many there were.
        planned = [Planned(Operation(Kind.INSERT, KEY, {"By": name}))]
        yield from outbox.commit(work(outbox), planned, name)

    return run


def clock() -> Protocol[object]:
    return (yield from perform(Write(OVER[0], Operation(Kind.PUT, OVER[1]))))


def bound(world: World) -> None:
    data = world.entity("t", KEY)
    done = {each.key.row_key for each in world.entities("effects")}
    assert done <= ({str(data.properties["By"])} if data is not None else set()), "a side effect without its data"
    rows = [each for each in world.entities("t") if each.key != KEY]
    sent = {TaskMessage.of(each.text).id for each in world.messages("q")}
    for each in rows:
        effect_id = each.key.row_key.removeprefix(f"{OUTBOX}!")
        assert effect_id in sent or done, "a side effect that no message is left for"
    assert data is None or done or rows, "a side effect is forgotten"


def explored(kind: type[Modelled], world: World, seen: Callable[[World], None] = bound) -> int:
    outbox = kind()
    worker: Callable[[], Protocol[object]] = lambda: work(outbox).handle_next(30)  # noqa: E731
    processes: Sequence[Callable[[], Protocol[object]]] = [
        *(writer(outbox, "a"), writer(outbox, "bb")),
        *(worker, worker, clock),
    ]
    return explore(world, processes, seen, states_max=3_000_000).states_count


def test_a_side_effect_happens_if_and_only_if_its_transaction_commits() -> None:
    ends = set()

    def seen(world: World) -> None:
        bound(world)
        data = world.entity("t", KEY)
        messages, rows = len(world.messages("q")), len(world.entities("t")) - (data is not None)
        ends.add((None if data is None else data.properties["By"], len(world.entities("effects")), rows, messages))

    assert explored(Modelled, Timed(), seen) > 1000
    assert {("a", 1, 0, 0), ("bb", 1, 0, 0), (None, 0, 0, 0), ("a", 0, 1, 1), ("bb", 1, 0, 2)} <= ends


class SentLast(Modelled):
    """Sends the message after the transaction."""

    def commit(self, work: TaskQueue, planned: Sequence[Planned], payload: object) -> Protocol[None]:
        effect = SideEffect((yield from perform(NewId())), payload)
        row = self._row("p", effect)
        yield from self.session.write(planned, joined=Joined((row,)))
        yield from work.send(TaskMessage(self.name, effect.id, "p"))


class RowFirst(Modelled):
    """Deletes the row before the side effect is run."""

    def _done(self, key: EntityKey, effect: SideEffect) -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.DELETE, key)))
        yield from self._handled(effect)


class Trusting(Modelled):
    """Runs the task of the message, without a look at the row."""

    def handle(self, message: TaskMessage) -> Protocol[None]:
        yield from self._handled(SideEffect(message.id, "a"))


class Early(Modelled):
    """Runs the side effect before the transaction."""

    def commit(self, work: TaskQueue, planned: Sequence[Planned], payload: Any) -> Protocol[None]:
        yield from self._handled(SideEffect("early", payload))
        yield from super().commit(work, planned, payload)


@pytest.mark.parametrize("mutation", [SentLast, RowFirst, Trusting, Early])
def test_each_step_is_needed(mutation: type[Modelled]) -> None:
    with pytest.raises(InvariantError):
        explored(mutation, Timed())


def test_the_message_must_be_hidden_until_the_transaction_is_over() -> None:
    with pytest.raises(InvariantError, match="no message is left for"):
        explored(Modelled, World())
