"""What an audit finds of tasks whose messages are lost, as in a poison queue: moves and sagas that are not done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds
from lazulite_patterns.outcomes.ring import same

if TYPE_CHECKING:
    from lazulite_patterns.transactions.move import Move

IN_BOTH = "moved entity that its source still has"
NOT_DONE = "saga that is not done"


@dataclass(frozen=True)
class MoveCheck:
    """No entity is in the source and, copied later than it was last written, in the target.

    Another program may put an entity back into the source. It does so after the copy, which is older then.
    """

    move: "Move[Any]"

    @property
    def tables(self) -> Sequence[str]:
        """The source."""
        return [self.move.source.name]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for an entity that was copied and not deleted. Its repair runs the move again."""
        if not all(each.matches(row.properties) for each in self.move.source.hidden):
            return []
        try:
            copy = self.move.copy_of(row)
        except (EntityFormatError, EntityValueError):
            return []
        there = yield from self.move.target.stored(copy.key)
        if there is None or not same(copy.properties, there.properties) or not _after(there, row):
            return []
        found = Finding(IN_BOTH, table, row.key, 0, "run the move again", f"{tuple(copy.key)}")
        return [replace(found.waiting(age_seconds(row, now)), repair=lambda _: self._again(row))]

    def _again(self, row: Stored) -> Protocol[bool]:
        try:
            yield from self.move.handle((yield from self.move.mark(row)))
        except Conflict:
            return False
        return True


def _after(there: Stored, row: Stored) -> bool:
    return there.timestamp is not None and row.timestamp is not None and there.timestamp >= row.timestamp


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
