"""A side effect that happens if and only if a transaction commits: an order of steps.

1. Send a message that no worker receives before the transaction is over, one way or the other.
2. Commit the transaction: the program's writes, and a row of the outbox with what the side effect needs.
3. Run the side effect.
4. Delete the row.
5. Remove the message.

If the process ends, a worker receives the message. If it finds the row, it does the steps 3 to 5. If it finds none, the
transaction was not committed, or the side effect was run: it removes the message.

This relies on time. The transaction begins within the policy's deadline after step 1 began, its last request is sent
within another one, and arrives within `ARRIVAL_SECONDS`. So the message is hidden for the sum.
"""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.queues import Sent
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.outcomes.errors import Absent, OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import begin
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Joined, write
from lazulite_patterns.table.outbox import OUTBOX, OUTBOX_TASK, delay_seconds
from lazulite_patterns.table.session import Session
from lazulite_patterns.table.transaction import OPERATIONS_MAX, Transaction
from lazulite_patterns.transactions.messages import MessageFormatError, TaskMessage
from lazulite_patterns.transactions.task import Source, Task
from lazulite_patterns.transactions.task_queue import TaskQueue

E = TypeVar("E")
_PAYLOAD = "Payload"
_log = logging.getLogger("lazulite_patterns.tasks")


class SideEffect(NamedTuple):
    """What a program does outside its tables, such as sending a mail.

    Attributes:
        id: of this one, the same each time that it is run: a key by which others know duplicates.
        payload: what it needs: what JSON has.
    """

    id: str
    payload: Any


class Outbox(Task[Any], Generic[E]):
    """Binds side effects to transactions of a table. `Tasks.transaction` begins one.

    Attributes:
        session: of the table.
    """

    def __init__(
        self, name: str, table: Source[E], handler: Callable[[SideEffect], object], *, inline: bool = True
    ) -> None:
        """Take the table and what runs a side effect.

        Args:
            name: of the task, in messages.
            table: of the transactions: `Table(…, outbox=True)`.
            handler: called once or more for each side effect, until it raises no error.
            inline: whether it is called at once after the commit, too; else by workers only.

        Raises:
            ValueError: the table's queries would show the rows of the outbox.
        """
        super().__init__(name, table)
        self.session: Session[E] = table.session
        self._handler = handler
        self._inline = inline
        if not self.session.outbox:
            raise ValueError(f"outbox {name}: its table needs outbox=True, so that queries leave its rows out")

    @property
    def delay_seconds(self) -> int:
        """The time for which no worker receives a message."""
        return delay_seconds(self.session.policy)

    def begin(self, argument: Any) -> Protocol[TaskMessage]:  # noqa: ARG002 - there is no way to begin
        """Reject: a side effect is started by a transaction.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"outbox {self.name}: `Tasks.transaction` starts a side effect, with the writes that it is of")

    def commit(self, queue: TaskQueue, planned: Sequence[Planned], payload: object) -> Protocol[None]:
        """Do all steps for some writes of one partition.

        Raises:
            Conflict: an entity is not as expected. Nothing was written, and the side effect does not happen.
            OutcomeUnknown: whether the writes were done is not known. If they were, the side effect happens.
        Unavailable: the message was not sent before the deadline. Nothing was written.
        """
        effect = SideEffect((yield from perform(NewId())), payload)
        row = self._row(planned[0].operation.key.partition_key, effect)
        within = yield from begin(self.session.policy)
        message = TaskMessage(self.name, effect.id, row.operation.key.partition_key)
        try:
            sent = yield from queue.send(message, self.delay_seconds, within)
        except OutcomeUnknown as unknown:
            raise Unavailable(f"nothing was written: {unknown}") from unknown
        yield from self.session.write(planned, joined=Joined((row,), within))
        if self._inline:
            yield from self._handle_inline(queue, row.operation.key, effect, sent)

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Run the side effect if its transaction was committed."""
        if not isinstance(message.body, str):
            raise MessageFormatError(f"no message of an outbox: {message}")
        key = _key(message.body, message.id)
        row = yield from self.session.stored(key)
        if row is not None:
            yield from self._done(key, SideEffect(message.id, json.loads(str(row.properties[_PAYLOAD]))))

    def _handle_inline(self, queue: TaskQueue, key: EntityKey, effect: SideEffect, sent: Sent) -> Protocol[None]:
        """Run a side effect after its transaction. If that fails, a worker does it later."""
        try:
            yield from self._done(key, effect)
            yield from queue.retract(sent)
        except Exception as error:  # noqa: BLE001 - the transaction is committed, so its program goes on
            _log.warning("side effect %s of %s is left to a worker: %r", effect.id, self.name, error)

    def _done(self, key: EntityKey, effect: SideEffect) -> Protocol[None]:
        yield from self._handled(effect)
        try:
            yield from write(self.session.name, [Planned(Operation(Kind.DELETE, key))], self.session.policy)
        except Absent:
            return  # Another worker ran it, too.

    def _handled(self, effect: SideEffect) -> Protocol[None]:
        yield from perform(Call(self._handler, (effect,)))

    def _row(self, partition_key: str, effect: SideEffect) -> Planned:
        key = _key(partition_key, effect.id)
        properties = {TYPE: OUTBOX, OUTBOX_TASK: self.name, _PAYLOAD: json.dumps(effect.payload)}
        limits.check(f"outbox {self.name}", {**properties, "PartitionKey": partition_key, "RowKey": key.row_key})
        return Planned(Operation(Kind.INSERT, key, properties))


class BoundTransaction(Transaction[E]):
    """The writes of a `with` block, to which a side effect is bound."""

    operations_max = OPERATIONS_MAX - 1

    def __init__(self, outbox: Outbox[E], queue: TaskQueue, payload: object, partition_key: str | None) -> None:
        """Begin without a write."""
        super().__init__(outbox.session, partition_key)
        self._outbox = outbox
        self._queue = queue
        self._payload = payload

    def commit(self) -> Protocol[None]:
        """Send the message and the writes, and run the side effect.

        Raises:
            ValueError: there is no write.
        """
        if not self._planned:
            raise ValueError("a side effect is bound to a write, and the block has none")
        yield from self._outbox.commit(self._queue, list(self._planned.values()), self._payload)


def _key(partition_key: str, effect_id: str) -> EntityKey:
    return EntityKey(partition_key, f"{OUTBOX}!{effect_id}")
