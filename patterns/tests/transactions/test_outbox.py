"""A side effect happens if and only if its transaction commits, whatever fails: in memory and on a service."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns import Column, EntityValueError, Index, column, columns, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.queues import Send
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Conflict, Exists, Policy, Unavailable
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.outbox import LEFT, OUTBOX
from lazulite_patterns.table.session import Session
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions import Outbox, SideEffect, TaskMessage
from lazulite_patterns.transactions.outbox import BoundTransaction
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns.transactions.tasks import Tasks
from lazulite_patterns_simulation import Crash, FaultAt, Simulation, every_fault

from ..declared import indexed

FAST = Policy(first_wait_seconds=0.001)
Run = Callable[[Protocol[Any], Failpoints], Any]


@entity
class Member:
    club: Column[str] = partition()
    id: Column[str] = row()
    email: Column[str] = column(default="")


def test_every_fault_of_an_outbox(run: Run, table_client: TableClient, queue_client: QueueClient) -> None:
    seen: list[SideEffect] = []
    members = Table(table_client, Bag, policy=FAST, outbox=True)
    mails = Outbox("mails", members, seen.append)
    work = TaskQueue("q", "q-poison", {"mails": mails}, policy=FAST)
    keys: list[str] = []

    def rival() -> None:
        with suppress(Exists):
            members.insert(Bag(PartitionKey=keys[-1], RowKey="7", By="rival"))

    def attempt(fault: FaultAt) -> None:
        keys.append(uuid4().hex)
        seen.clear()
        transaction = BoundTransaction[Bag](mails, work, {"to": keys[-1]}, None)
        transaction.insert(Bag(PartitionKey=keys[-1], RowKey="7", By="us"))
        with suppress(Crash, Conflict):
            run(transaction.commit(), fault)
        rows = list(table_client.query_entities(f"PartitionKey eq '{keys[-1]}' and RowKey ge '{OUTBOX}'"))
        if (found := members.get(EntityKey(keys[-1], "7"))) is None or found["By"] == "rival":
            assert (seen, rows) == ([], []), "a side effect without its data"
        else:
            assert seen or rows, "a side effect is forgotten"
        # The message is received when its time is over; here another one, as the first is hidden for minutes.
        for each in rows:
            run(work.send(TaskMessage("mails", each["RowKey"].removeprefix(f"{OUTBOX}!"), keys[-1])), NoFailpoints())
        run(work.drain(30, 1), NoFailpoints())
        assert (len(seen) > 0) is (found is not None and found["By"] == "us")
        assert {each.payload["to"] for each in seen} <= {keys[-1]}
        assert len({each.id for each in seen}) <= 1, "duplicates have the same id"
        assert [each.key for each in map(_stored, table_client.query_entities(f"PartitionKey eq '{keys[-1]}'"))] == (
            [] if found is None else [EntityKey(keys[-1], "7")]
        )
        queue_client.clear_messages()

    assert sum(1 for _ in every_fault(attempt, rival)) == 7 * 5, "message, transaction, side effect, row, message"


def _stored(row: Any) -> Stored:
    return Stored(dict(row), "")


def test_a_side_effect_runs_at_once(table_client: TableClient, queue_client: QueueClient) -> None:
    seen: list[SideEffect] = []
    members = indexed(Member, [Index("email", "email", unique=True)], lambda: Table(table_client, Member, outbox=True))
    mails = Outbox("mails", members, seen.append)
    with Tasks(queue_client, [mails]) as tasks:
        with tasks.transaction(mails, {"to": "ann@b"}, "north") as transaction:
            transaction.insert(Member("north", "7", "ann@b"))
        assert [each.payload for each in seen] == [{"to": "ann@b"}]
        with pytest.raises(Conflict), tasks.transaction(mails, {"to": "bob@b"}) as transaction:
            transaction.insert(Member("north", "7", "bob@b"))
        with pytest.raises(KeyError), tasks.transaction(mails, {}) as transaction:
            raise KeyError
        with pytest.raises(ValueError, match="the block has none"), tasks.transaction(mails, {}):
            pass
        with pytest.raises(TypeError, match="transaction"):
            tasks.start(mails, {})
    assert len(seen) == 1
    assert [each.id for each in members.by(email="ann@b")] == ["7"]
    assert queue_client.get_queue_properties().approximate_message_count == 1, "that of the conflict; it is dropped"


def test_queries_and_audits_leave_the_rows_out(table_client: TableClient, queue_client: QueueClient) -> None:
    members = Table(table_client, Member, outbox=True)
    mails = Outbox("mails", members, lambda _: None, inline=False)
    with Tasks(queue_client, [mails]) as tasks, tasks.transaction(mails, {}) as transaction:
        transaction.insert(Member("north", "7"))
    assert len(list(table_client.list_entities())) == 2
    member = columns(Member)
    assert [each.id for each in members.where(member.club == "north")] == ["7"]
    for check in members.checks():
        for each in map(_stored, table_client.list_entities()):
            assert not list(Simulation().run(check.examine(table_client.table_name, each, datetime.now(UTC))))
    with pytest.raises(EntityValueError, match="those of the outbox"):
        Table(table_client, Bag, outbox=True).insert(Bag(PartitionKey="p", RowKey="_Outbox!1"))


def test_old_rows_are_found() -> None:
    check = Memory().session.checks()[1]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    properties = {"PartitionKey": "p", "RowKey": "_Outbox!1", "_Type": OUTBOX, "Task": "mails"}
    for seconds, count in ((749, 0), (751, 1)):
        row = Stored(properties, "e", now - timedelta(seconds=seconds))
        findings = Simulation().run(check.examine("t", row, now))
        assert [each.kind for each in findings] == [LEFT] * count
    assert not Simulation().run(check.examine("t", Stored({**properties, "_Type": "Member"}, "e", now), now))


class Memory:
    """What an outbox knows of a table in memory."""

    def __init__(self) -> None:
        self.session: Session[Bag] = Session("t", Bags(), Policy(), outbox=True)
        self.clients: dict[str, object] = {}
        self.containers: dict[str, object] = {}


def simulated(
    handler: Callable[[SideEffect], object], inline: bool = True
) -> tuple[Simulation, TaskQueue, Outbox[Bag]]:
    outbox = Outbox("mails", Memory(), handler, inline=inline)
    return Simulation(), TaskQueue("q", "q-poison", {"mails": outbox}), outbox


PLANNED = [Planned(Operation(Kind.INSERT, EntityKey("p", "7"), {"N": 1}))]


def test_what_fails_at_once_is_left_to_a_worker() -> None:
    seen: list[SideEffect] = []

    def flawed(effect: SideEffect) -> None:
        seen.append(effect)
        if len(seen) == 1:
            raise OSError("no connection")

    simulation, work, outbox = simulated(flawed)
    simulation.run(outbox.commit(work, PLANNED, 5))
    for seconds, count in ((149, 0), (2, 1)):
        simulation.now_seconds += seconds
        assert simulation.run(work.drain(30, 1)) == count, "the message is visible after twice the deadline and 30 s"
    assert [each.payload for each in seen] == [5, 5]
    assert [each.key.row_key for each in simulation.world.entities("t")] == ["7"]


def test_without_inline_only_workers_run_it() -> None:
    seen: list[SideEffect] = []
    simulation, work, outbox = simulated(seen.append, inline=False)
    simulation.run(outbox.commit(work, PLANNED, 5))
    assert seen == []
    simulation.now_seconds = 151
    simulation.run(work.drain(30, 1))
    assert [each.payload for each in seen] == [5]


class Slow:
    """Moves the clock of a simulation past the deadline at the first effect of a kind."""

    def __init__(self, simulation: Simulation, kind: type[Effect[Any]]) -> None:
        self.simulation, self.kind, self.seconds = simulation, kind, 61
        self.effects: list[Effect[object]] = []

    def before(self, effect: Effect[object]) -> None:
        self.effects.append(effect)

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, self.kind):
            self.simulation.now_seconds += self.seconds
            self.seconds = 0


def test_a_transaction_does_not_begin_after_the_deadline() -> None:
    simulation, work, outbox = simulated(lambda _: None)
    simulation.runtime.failpoints = Slow(simulation, Send)
    with pytest.raises(Unavailable):
        simulation.run(outbox.commit(work, PLANNED, 5))
    assert simulation.world.entities("t") == []


def test_an_indexed_transaction_does_not_begin_after_the_deadline(table_client: TableClient) -> None:
    members = indexed(Member, [Index("email", "email")], lambda: Table(table_client, Member, outbox=True))
    outbox = Outbox("mails", members, lambda _: None)
    simulation = Simulation()
    slow = Slow(simulation, Write)
    simulation.runtime.failpoints = slow
    planned = [members.session.planned(Kind.INSERT, Member("north", "7", "a@b"))]
    with pytest.raises(Unavailable):
        simulation.run(outbox.commit(TaskQueue("q", "q-poison", {}), planned, 5))
    assert len(slow.effects) > 3, "the entry was written"
    assert not any(isinstance(each, Batch) for each in slow.effects)


def test_a_message_that_cannot_be_sent_prevents_the_transaction() -> None:
    simulation, work, outbox = simulated(lambda _: None)

    class Lost:
        def before(self, effect: Effect[object]) -> None:
            if isinstance(effect, Send):
                raise ResultUnknown("not sent")

        def after(self, effect: Effect[object]) -> None:
            """Do nothing."""

    simulation.runtime.failpoints = Lost()
    with pytest.raises(Unavailable, match="nothing was written"):
        simulation.run(outbox.commit(work, PLANNED, 5))
    assert simulation.world.entities("t") == []


def test_a_payload_that_is_too_large_is_rejected_before_anything_is_sent() -> None:
    simulation, work, outbox = simulated(lambda _: None)
    with pytest.raises(EntityValueError, match="Payload"):
        simulation.run(outbox.commit(work, PLANNED, "x" * 32_768))
    assert simulation.world.messages("q") == []


def test_a_transaction_has_room_for_the_row(table_client: TableClient) -> None:
    outbox = Outbox("mails", Table(table_client, Bag, outbox=True), lambda _: None)
    transaction = BoundTransaction[Bag](outbox, TaskQueue("q", "q-poison", {}), 1, None)
    for number in range(99):
        transaction.insert(Bag(PartitionKey="p", RowKey=str(number)))
    with pytest.raises(ValueError, match="99 operations"):
        transaction.insert(Bag(PartitionKey="p", RowKey="99"))
    with pytest.raises(ValueError, match="outbox=True"):
        Outbox("mails", Table(table_client, Bag), lambda _: None)


async def test_an_asynchronous_outbox(
    connection_string: str, table_client: TableClient, queue_client: QueueClient
) -> None:
    seen: list[SideEffect] = []

    async def mail(effect: SideEffect) -> None:
        await asyncio.sleep(0)
        seen.append(effect)

    client = AsyncTableClient.from_connection_string(connection_string, table_client.table_name)
    queue = AsyncQueueClient.from_connection_string(connection_string, queue_client.queue_name)
    async with client, queue:
        mails = Outbox("mails", AsyncTable(client, Member, outbox=True), mail)
        async with AsyncTasks(queue, [mails]) as tasks, tasks.transaction(mails, {"to": "ann@b"}) as transaction:
            transaction.insert(Member("north", "7"))
    assert [each.payload for each in seen] == [{"to": "ann@b"}]
    assert [each["RowKey"] for each in table_client.list_entities()] == ["7"]
