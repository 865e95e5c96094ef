"""Writes that end with a definite outcome: done, conflict, or an honest `OutcomeUnknown`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import Gather, NewId
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists, OutcomeUnknown, Restart, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned, Verdict, verdict, verdict_of_deletes

_ERRORS: dict[int, type[Conflict]] = {404: Absent, 409: Exists, 412: Conflict}
"""Statuses that tell of the entity; the others tell of the request, and stay `Rejected`."""


class Written(NamedTuple):
    """A write that was done.

    Attributes:
        etags: the entities' new ETags; empty ones where only a read showed that it was done.
        operation_id: in the property `_Op` of the entities.
    """

    etags: tuple[str, ...]
    operation_id: str


@dataclass
class Identity:
    """What makes a write the same one when its protocol begins again.

    Attributes:
        operation_id: in the property `_Op` of the entities.
        unsure: whether an earlier request may have been done, or may still arrive.
    """

    operation_id: str
    unsure: bool = False

    def is_of(self, row: Stored | None) -> bool:
        """Tell whether the write was done, by a row that it writes."""
        return row is not None and self.operation_id in WriteIds.of(row.properties).ids


def identity() -> Protocol[Identity]:
    """Return the identity of a new write."""
    return Identity((yield from perform(NewId())))


class Joined(NamedTuple):
    """What else a transaction has.

    Attributes:
        planned: writes of other rows in its partition.
        within: until whose deadline it may begin; None for no other than its own.
        identity: that of the transaction, for a protocol that begins again on `Restart`; None if no step precedes it.
    """

    planned: tuple[Planned, ...] = ()
    within: Attempts | None = None
    identity: Identity | None = None

    def check(self) -> Protocol[None]:
        """Raise Unavailable if the transaction may not begin any more. Its own deadline must have begun before."""
        if self.within is not None and (yield from self.within.expired()):
            raise Unavailable("the transaction was not begun before the deadline")


ALONE = Joined()


def write(
    table: str,
    planned: Sequence[Planned],
    policy: Policy,
    attempts: Attempts | None = None,
    identity: Identity | None = None,
) -> Protocol[Written]:
    """Write one entity, or several ones of a partition in one transaction.

    Args:
        table: the name by which the driver knows the client.
        planned: the writes, at least one.
        policy: deadlines and marks.
        attempts: whose deadline holds for this write, too; None for a new one.
        identity: that of the write, whose protocol has steps before this one; None if there are no such steps.

    Raises:
        Restart: an identity was given, and the protocol must do the steps before an insert again.
        Conflict: an entity is not as expected; `Exists` and `Absent` say more.
        OutcomeUnknown: the result is not known, and the entities do not tell.
        Rejected: the service rejects the request, whatever the entities are.
    """
    own = identity or Identity((yield from perform(NewId())))
    restarts = identity is not None and any(each.operation.kind is Kind.INSERT for each in planned)
    marked = tuple(_marked(each, own.operation_id, policy.marks) for each in planned)
    operations = tuple(each.operation for each in marked)
    if attempts is None:
        attempts = yield from begin(policy)
    again = True
    while True:
        try:
            return Written((yield from _sent(table, operations, attempts)), own.operation_id)
        except Rejected as rejected:
            # Where an earlier request may have been done, this answer may be about its effect.
            if not own.unsure or rejected.status not in _ERRORS:
                _raise(rejected)
            cause: Rejected | ResultUnknown = rejected
        except ResultUnknown as unknown:
            own.unsure = True
            cause = unknown
            again = yield from attempts.wait(unknown, reserved=True)
        found = yield from _decided(table, marked, own.operation_id, attempts)
        if found is Verdict.DONE:
            return Written(("",) * len(operations), own.operation_id)
        _check_not_applied(found, cause, own, operations[0].key)
        if not again:
            raise unknown_outcome(own, operations[0].key) from cause
        if restarts:
            raise Restart from cause


def _check_not_applied(found: Verdict, cause: Rejected | ResultUnknown, own: Identity, key: EntityKey) -> None:
    """Raise the outcome of a write, unless it was not applied and may be sent again."""
    if found is Verdict.CONFLICT:
        own.unsure = False
        if isinstance(cause, Rejected):
            _raise(cause)
        raise Conflict(f"{key} was changed, and not by this write")
    if found is Verdict.UNKNOWN or isinstance(cause, Rejected):
        raise unknown_outcome(own, key) from cause


def unknown_outcome(identity: Identity, key: EntityKey) -> OutcomeUnknown:
    """Return the error of a write of which the rows do not tell whether it was done."""
    return OutcomeUnknown(
        f"operation {identity.operation_id} of {key}: it was done if {RING} of an entity that it wrote has this id; "
        "else it may have been done before another program deleted or replaced the entity"
    )


def _sent(table: str, operations: tuple[Operation, ...], attempts: Attempts) -> Protocol[tuple[str, ...]]:
    if len(operations) > 1:
        return (yield from attempts.perform(Batch(table, operations), reserved=True))
    return ((yield from attempts.perform(Write(table, operations[0]), reserved=True)),)


def _marked(planned: Planned, operation_id: str, marks: int) -> Planned:
    """Return a write with its id added to the entity's ring."""
    operation = planned.operation
    if operation.kind is Kind.DELETE:
        return planned
    if not marks:
        return planned._replace(base=WriteIds())
    properties = {**operation.properties, RING: planned.ring(operation_id, marks).text}
    return Planned(Operation(operation.kind, operation.key, properties, operation.etag), planned.base)


def _decided(table: str, marked: tuple[Planned, ...], operation_id: str, attempts: Attempts) -> Protocol[Verdict]:
    """Read what tells: a row that is written conditionally, or else written; all rows if all are deleted."""
    probes = [each for each in marked if each.operation.kind is not Kind.DELETE]
    probe = next((each for each in probes if each.conditional), probes[0] if probes else None)
    try:
        if probe is not None:
            found = yield from read(Read(table, probe.operation.key), attempts)
            decided = verdict(probe, operation_id, found)
            others = [each for each in probes if each.conditional and each is not probe]
            if decided in {Verdict.NOT_APPLIED, Verdict.UNKNOWN} and others:
                # All rows of a transaction tell the same, and one of them may still be as it was written.
                rows = yield from _rows(table, others, attempts)
                done = any(verdict(each, operation_id, row) is Verdict.DONE for each, row in rows)
                return Verdict.DONE if done else decided
            return decided
        rows = yield from _rows(table, marked, attempts)
        return verdict_of_deletes(marked, [row for _, row in rows])
    except Unavailable as unavailable:
        raise OutcomeUnknown(f"operation {operation_id}: {unavailable}") from unavailable


def _rows(table: str, planned: Sequence[Planned], attempts: Attempts) -> Protocol[list[tuple[Planned, Stored | None]]]:
    reads: tuple[Protocol[Stored | None], ...] = tuple(
        read(Read(table, each.operation.key), attempts) for each in planned
    )
    return list(zip(planned, (yield from perform(Gather(reads))), strict=True))


def _raise(rejected: Rejected) -> NoReturn:
    kind = _ERRORS.get(rejected.status)
    if kind is None or rejected.code == "TableNotFound":
        raise rejected
    raise kind(str(rejected), rejected.index) from rejected
