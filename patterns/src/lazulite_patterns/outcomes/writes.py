"""Writes that end with a definite outcome: done, conflict, or an honest `OutcomeUnknown`."""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from lazulite_patterns.effects.ambient import NewId, Together
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Batch, Kind, Operation, Read, Stored, Write
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists, OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, Ring
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


class Joined(NamedTuple):
    """What else a transaction has.

    Attributes:
        planned: writes of other rows in its partition.
        within: until whose deadline it may begin; None for no other than its own.
    """

    planned: tuple[Planned, ...] = ()
    within: Attempts | None = None

    def check(self) -> Protocol[None]:
        """Raise Unavailable if the transaction may not begin any more. Its own deadline must have begun before."""
        if self.within is not None and (yield from self.within.expired()):
            raise Unavailable("the transaction was not begun before the deadline")


ALONE = Joined()


def write(
    table: str, planned: Sequence[Planned], policy: Policy, attempts: Attempts | None = None
) -> Protocol[Written]:
    """Write one entity, or several ones of a partition in one transaction.

    Args:
        table: the name by which the driver knows the client.
        planned: the writes, at least one.
        policy: deadlines and marks.
        attempts: whose deadline holds for this write, too; None for a new one.

    Raises:
        Conflict: an entity is not as expected; `Exists` and `Absent` say more.
        OutcomeUnknown: the result is not known, and the entities do not tell.
        Rejected: the service rejects the request, whatever the entities are.
    """
    operation_id = yield from perform(NewId())
    marked = tuple(_marked(each, operation_id, policy.marks) for each in planned)
    operations = tuple(each.operation for each in marked)
    if attempts is None:
        attempts = yield from begin(policy)
    unsure = False
    while True:
        try:
            return Written((yield from _sent(table, operations)), operation_id)
        except Rejected as rejected:
            # Where an earlier request may have been done, this answer may be about its effect.
            if not unsure or rejected.status not in _ERRORS:
                _raise(rejected)
            cause: Rejected | ResultUnknown = rejected
        except ResultUnknown as unknown:
            unsure = True
            cause = unknown
            if not (yield from attempts.wait(unknown)):
                raise OutcomeUnknown(str(unknown)) from unknown
        found = yield from _decided(table, marked, operation_id, attempts)
        if found is Verdict.DONE:
            return Written(("",) * len(operations), operation_id)
        if found is Verdict.CONFLICT:
            _raise(cause) if isinstance(cause, Rejected) else _conflict(operations)
        if found is Verdict.UNKNOWN or isinstance(cause, Rejected):
            raise OutcomeUnknown(f"operation {operation_id} of {operations[0].key}") from cause


def _sent(table: str, operations: tuple[Operation, ...]) -> Protocol[tuple[str, ...]]:
    if len(operations) > 1:
        return (yield from perform(Batch(table, operations)))
    return ((yield from perform(Write(table, operations[0]))),)


def _marked(planned: Planned, operation_id: str, marks: int) -> Planned:
    """Return a write with its id added to the entity's ring."""
    operation = planned.operation
    if operation.kind is Kind.DELETE:
        return planned
    if not marks:
        return planned._replace(base=Ring())
    properties = {**operation.properties, RING: planned.ring(operation_id, marks).text}
    return Planned(Operation(operation.kind, operation.key, properties, operation.etag), planned.base)


def _decided(table: str, marked: tuple[Planned, ...], operation_id: str, attempts: Attempts) -> Protocol[Verdict]:
    """Read what tells: the first row that is written conditionally, or else written; all rows if all are deleted."""
    probes = [each for each in marked if each.operation.kind is not Kind.DELETE]
    probe = next((each for each in probes if each.conditional), probes[0] if probes else None)
    try:
        if probe is not None:
            found = yield from read(Read(table, probe.operation.key), attempts)
            return verdict(probe, operation_id, found)
        reads: tuple[Protocol[Stored | None], ...] = tuple(
            read(Read(table, each.operation.key), attempts) for each in marked
        )
        return verdict_of_deletes(marked, (yield from perform(Together(reads))))
    except Unavailable as unavailable:
        raise OutcomeUnknown(f"operation {operation_id}: {unavailable}") from unavailable


def _raise(rejected: Rejected) -> NoReturn:
    kind = _ERRORS.get(rejected.status)
    if kind is None or rejected.code == "TableNotFound":
        raise rejected
    raise kind(str(rejected), rejected.index) from rejected


def _conflict(operations: tuple[Operation, ...]) -> NoReturn:
    if len(operations) == 1 and operations[0].kind is Kind.INSERT:
        raise Exists(f"{operations[0].key} is there, and not by this insert")
    raise Conflict(f"{operations[0].key} was changed, and not by this write")
