"""The task that writes eventual entries of indexes. `indexes.deferred` says how, and why that is enough."""

from typing import Any

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.indexes.deferred import body, parsed, reconcile, task_name
from lazulite_patterns.table.indexed import IndexedSession
from lazulite_patterns.transactions.messages import MessageFormatError, TaskMessage
from lazulite_patterns.transactions.task import Source, Task


class IndexTask(Task[EntityKey]):
    """Writes the entries of a table with eventual indexes. `Tasks.start(task, key)` writes those of one entity again.

    Attributes:
        session: of the table.
    """

    def __init__(self, table: Source[Any]) -> None:
        """Take the table.

        Raises:
            ValueError: it has no index.
        """
        if not isinstance(table.session, IndexedSession):
            raise ValueError(f"the table {table.session.name} has no index")
        super().__init__(task_name(table.session.name), table)
        self.session: IndexedSession[Any] = table.session

    def begin(self, argument: EntityKey) -> Protocol[TaskMessage]:
        """Return the message for the entries of an entity, whatever they are."""
        return TaskMessage(self.name, (yield from perform(NewId())), body(argument, ()))

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Make the entries of an entity agree with it."""
        try:
            key, entries = parsed(message.body)
        except ValueError as error:
            raise MessageFormatError(str(error)) from error
        yield from reconcile(self.session.pointers, key, entries)
