"""Decide by one read after an unknown result whether a write was done.

| found | verdict |
|---|---|
| the write's id in the ring | done |
| the ETag that the write expected | not applied: send it again |
| no entity after an insert | not applied, or deleted since: do all steps again |
| another entity after an insert | unknown: the inserted one may have been deleted before |
| no entity after a delete | done |
| the id of the write before, and not this one's | conflict: all writes since are in the ring |
| neither: the ring wrapped, or a foreign writer dropped it | unknown |
"""

from enum import Enum
from typing import NamedTuple

from lazulite_patterns.effects.tables import Kind, Operation, Stored
from lazulite_patterns.outcomes.ring import WriteIds


class Verdict(Enum):
    """What became of a write."""

    DONE = "done"
    NOT_APPLIED = "not applied"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


class Planned(NamedTuple):
    """A write, and the ring of the entity that it replaces."""

    operation: Operation
    base: WriteIds = WriteIds()

    @property
    def conditional(self) -> bool:
        """Whether the service does it only to the expected entity."""
        return self.operation.kind is Kind.INSERT or self.operation.etag is not None

    def ring(self, operation_id: str, marks: int) -> WriteIds:
        """Return the ring of the entity after the write."""
        if self.operation.kind is Kind.INSERT:
            return WriteIds.born(operation_id)
        return self.base.add(operation_id, marks)


def verdict(planned: Planned, operation_id: str, found: Stored | None) -> Verdict:
    """Return what became of a write, from the entity that is found after it."""
    ring = WriteIds() if found is None else WriteIds.of(found.properties)
    kind = planned.operation.kind
    if operation_id in ring.ids or (found is None and kind is Kind.DELETE):
        return Verdict.DONE
    if not planned.conditional or _as_expected(planned, found):
        return Verdict.NOT_APPLIED
    if kind is Kind.INSERT:
        return Verdict.UNKNOWN
    return Verdict.CONFLICT if planned.base.ids[-1:] and planned.base.ids[-1] in ring.ids else Verdict.UNKNOWN


def _as_expected(planned: Planned, found: Stored | None) -> bool:
    if planned.operation.kind is Kind.INSERT:
        return found is None
    return found is not None and found.etag == planned.operation.etag


def verdict_of_deletes(planned: tuple[Planned, ...], found: list[Stored | None]) -> Verdict:
    """Return what became of a transaction that only deletes: no row tells by a ring, so all of them are read."""
    verdicts = [verdict(each, "", row) for each, row in zip(planned, found, strict=True)]
    for each in (Verdict.NOT_APPLIED, Verdict.CONFLICT, Verdict.UNKNOWN):
        if each in verdicts:
            return each
    return Verdict.DONE
