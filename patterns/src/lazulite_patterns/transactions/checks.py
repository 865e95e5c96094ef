"""What an audit finds of tasks whose messages are lost, as in a poison queue: moves and sagas that are not done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lazulite_patterns.auditing.finding import Finding, deletion
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds
from lazulite_patterns.table.inbox import is_inbox
from lazulite_patterns.transactions.moving import Inbox, PendingMove

if TYPE_CHECKING:
    from lazulite_patterns.transactions.move import Move

NOT_MOVED = "move that is not done"
LEFT = "row of a move that is done"
NOT_DONE = "saga that is not done"


@dataclass(frozen=True)
class MoveCheck:
    """Each marked entity has a message that will move it, and each inbox row a marked entity."""

    move: "Move[Any]"

    @property
    def tables(self) -> Sequence[str]:
        """The source, and the target with its inbox rows."""
        return sorted({self.move.source.name, self.move.target.name})

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for an old mark, whose repair runs the move, and for an inbox row without one."""
        if table == self.move.target.name and is_inbox(row.key.row_key):
            return (yield from self._inbox(Inbox(row), table, now))
        mark = PendingMove.of(row) if table == self.move.source.name else None
        if mark is None or mark.move != self.move.name:
            return []
        found = Finding(NOT_MOVED, table, row.key, 0, "run the move")
        return [replace(found.waiting(age_seconds(row, now)), repair=lambda _: self._again(row.key, mark))]

    def _inbox(self, inbox: Inbox, table: str, now: datetime) -> Protocol[list[Finding]]:
        if inbox.move != self.move.name:
            return []
        mark = PendingMove.of((yield from self.move.source.stored(inbox.source)))
        if mark is not None and mark.move == inbox.move:
            return []
        return [deletion(LEFT, table, inbox.row, now)]

    def _again(self, key: EntityKey, mark: PendingMove) -> Protocol[bool]:
        try:
            yield from self.move.handle(self.move.message(key, mark))
        except Conflict:
            return False
        return True


@dataclass(frozen=True)
class SagaCheck:
    """Finds records of sagas that were begun long ago and are not done."""

    table: str
    name: str

    @property
    def tables(self) -> Sequence[str]:
        """The table of the records."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding if the row is a record of this saga, old and not done."""
        seconds = age_seconds(row, now)
        if row.key.row_key != self.name or row.properties.get("State") != "running" or seconds <= GRACE_SECONDS:
            return immediately([])
        return immediately([Finding(NOT_DONE, table, row.key, seconds, "send its message again")])
