"""One transaction of a load: sent again without a row that the service rejects, until all other rows are done.

A load that is resumed sends some rows again. An insert that meets an equal row is done, as is the delete of an absent
one. After the first such row, all rows of the transaction are read, so that a hundred of them cost two more requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, cast

from lazulite_patterns.bulk.groups import Row
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import EntityKey, Kind, Stored
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists
from lazulite_patterns.outcomes.ring import same
from lazulite_patterns.table.session import Session

E = TypeVar("E")
T = TypeVar("T")
_OF_A_ROW = frozenset({400, 413})
"""Statuses by which the service rejects an entity; the others are about the table or the account."""


class Failure(NamedTuple):
    """A row that was not written.

    Attributes:
        number: of the row in the source, from 0.
        key: of the row; None if the row has none.
        reason: what the service or the library says.
    """

    number: int
    key: EntityKey | None
    reason: str


@dataclass
class Sent:
    """What became of a transaction.

    Attributes:
        done: rows that are as they shall be.
        requests: transactions that were sent until then.
        busy: answers by which the service asked for less.
        failures: rows that the service rejected.
    """

    done: int = 0
    requests: int = 0
    busy: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass
class Sending(Generic[E]):
    """Sends the rows of one transaction."""

    session: Session[E]
    sent: Sent = field(default_factory=Sent)

    def run(self, rows: Sequence[Row]) -> Protocol[Sent]:
        """Send rows of one partition, until each is done or has failed.

        Raises:
            OutcomeUnknown: the service did not answer before the deadline.
            Rejected: the service rejects the request whatever the rows are.
        """
        waiting = [list(rows)]
        while waiting:
            part = waiting.pop()
            self.sent.requests += 1
            try:
                yield from self._counted(self.session.write([each.planned for each in part]))
            except (Conflict, Rejected) as error:
                if isinstance(error, Rejected) and error.status not in _OF_A_ROW:
                    raise
                waiting += yield from self._without(part, error)
            else:
                self.sent.done += len(part)
        return self.sent

    def _without(self, part: list[Row], error: Conflict | Rejected) -> Protocol[list[list[Row]]]:
        """Return what is to be sent after an error: the other rows, or both halves if it names no row."""
        if isinstance(error, Exists | Absent) and len(part) > 1:
            return [left] if (left := (yield from self._unfinished(part))) else []
        if len(part) > 1 and (error.index is None or error.index >= len(part)):
            return [part[len(part) // 2 :], part[: len(part) // 2]]
        row = part[error.index or 0]
        if not isinstance(error, Exists | Absent) or (yield from self._unfinished([row])):
            self._fail(row, str(error))
        rest = [each for each in part if each is not row]
        return [rest] if rest else []

    def _unfinished(self, part: list[Row]) -> Protocol[list[Row]]:
        """Return the rows that are still to be sent; count finished rows, and fail the others."""
        reads = tuple(self.session.stored(each.key) for each in part)
        found = yield from perform(Gather(reads))
        left = []
        for row, stored in zip(part, found, strict=True):
            if _is_done(row, stored):
                self.sent.done += 1
            elif row.planned.operation.kind is Kind.INSERT and stored is not None:
                self._fail(row, f"{row.key} is there, with other properties")
            else:
                left.append(row)
        return left

    def _fail(self, row: Row, reason: str) -> None:
        self.sent.failures.append(Failure(row.number, row.key, reason))

    def _counted(self, protocol: Protocol[T]) -> Protocol[T]:
        """Run a protocol, and count the answers that ask for less."""
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                effect: Effect[object] = protocol.send(answer) if error is None else protocol.throw(error)
            except StopIteration as stop:
                return cast(T, stop.value)
            answer, error = None, None
            try:
                answer = yield effect
            except ResultUnknown as unknown:
                self.sent.busy += unknown.retry_after_seconds is not None
                error = unknown
            except Exception as failed:  # noqa: BLE001 - the protocol sees every error of its effect.
                error = failed


def _is_done(row: Row, stored: Stored | None) -> bool:
    kind = row.planned.operation.kind
    if kind is Kind.DELETE:
        return stored is None
    return kind is Kind.INSERT and stored is not None and same(row.planned.operation.properties, stored.properties)
