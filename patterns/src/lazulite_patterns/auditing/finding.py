"""What the auditor finds, and what a pattern declares to be audited."""

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lazulite_patterns.auditing.source import Source
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

Repair = Callable[[Policy], Protocol[bool]]
"""Returns the protocol that repairs a finding. It is conditional: False if another writer was faster."""


@dataclass(frozen=True)
class Finding:
    """Rows that do not agree.

    Attributes:
        kind: what is wrong, the same words for each finding of this kind.
        table: of the row; another place has a name such as `container/table/_Index`, the blobs that are lists.
        key: of the row that was examined.
        age_seconds: since that row was written.
        proposal: what a repair does; empty if only a person can decide.
        detail: more about this one, such as the other row.
        deletes: whether a repair deletes, or takes from another writer. The row must then be older than the grace.
        repaired: whether it was repaired.
        repair: does what is proposed.
    """

    kind: str
    table: str
    key: EntityKey
    age_seconds: float
    proposal: str = ""
    detail: str = ""
    deletes: bool = False
    repaired: bool = False
    repair: Repair | None = field(default=None, repr=False, compare=False)

    def waiting(self, seconds: float) -> "Finding":
        """Return the finding with the age of the row that a repair changes, which must be older than the grace."""
        return replace(self, age_seconds=seconds, deletes=True)

    def __str__(self) -> str:
        """Return a line for a person."""
        end = "repaired: " if self.repaired else ""
        about = f" ({self.detail})" if self.detail else ""
        return f"{self.table} {tuple(self.key)}: {self.kind}{about}; {end}{self.proposal or 'decide by hand'}"


class Check(typing.Protocol):
    """One thing that a pattern keeps in agreement.

    The auditor reads each of the tables once, from end to end, and passes each row to `examine`. That reads what the
    row must agree with. Findings are confirmed by a second read of the row, which must have the same ETag.
    """

    @property
    def tables(self) -> Sequence[str | Source]:
        """The names of the tables whose rows are examined, and other places of rows."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return what is wrong with a row; nothing for a row that is not of this pattern.

        Args:
            table: where the row is; the name of another place.
            row: with all of its properties.
            now: a time before the row was read, to which ages are related.
        """


def deletion(kind: str, table: str, row: Stored, now: datetime, proposal: str = "delete the row") -> Finding:
    """Return the finding that a row is superfluous. Its repair deletes the row If-Match its ETag."""
    planned = Planned(Operation(Kind.DELETE, row.key, etag=row.etag), WriteIds.of(row.properties))
    return Finding(kind, table, row.key, age_seconds(row, now), proposal, deletes=True, repair=_writing(table, planned))


def correction(
    kind: str, table: str, row: Stored, now: datetime, proposal: str, write: tuple[str, Planned] | Properties
) -> Finding:
    """Return the finding that a row is wrong, or that another one is.

    Args:
        kind: what is wrong.
        table: of the row that was examined.
        row: that was examined.
        now: a time before it was read.
        proposal: what the repair does.
        write: a table with a conditional write; or new properties, which replace the row If-Match its ETag.
    """
    if isinstance(write, tuple):
        where, planned = write
        assert planned.conditional, "a repair must not overwrite what another program wrote"
    else:
        operation = Operation(Kind.REPLACE, row.key, write, row.etag)
        where, planned = table, Planned(operation, WriteIds.of(row.properties))
    finding = Finding(kind, table, row.key, age_seconds(row, now), proposal)
    return replace(finding, repair=_writing(where, planned))


def _writing(table: str, planned: Planned) -> Repair:
    def repair(policy: Policy) -> Protocol[bool]:
        try:
            yield from write(table, [planned], policy)
        except Conflict:
            return False
        return True

    return repair
