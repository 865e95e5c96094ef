"""A lease is a row. Its holder writes it again and again; a row that is too old is free.

- The age is judged by the service alone: the `Date` of its answer, less the row's `Timestamp`. Clocks of processes do
  not count. `Date` has whole seconds and is never ahead, so a row is not taken for too old too early.
- Taking the lease replaces the row If-Match its ETag, with an `Id` that no other grant has and the next `Token`.
- A guarded transaction replaces the row, too, If-Match its ETag. After another process took the lease, that ETag is
  gone. So the transaction of an old holder is never done, however late it arrives, and whatever its clock says.

A grant is lost when the row says so: it has another `Id`, or is absent. An error of the connection says nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId, Now
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.errors import PatternsError
from lazulite_patterns.outcomes.errors import Conflict, OutcomeUnknown
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

ATTEMPTS = 16
"""Times that a holder tries again after its own renewal or another transaction of it was faster."""


class LeaseTaken(PatternsError):  # noqa: N818 - it is an outcome
    """Another process has the lease."""


class LeaseLost(PatternsError):  # noqa: N818 - it is an outcome
    """Another process has taken the lease, or it was released. A guarded transaction was not done."""


@dataclass
class Grant:
    """What a holder knows of its lease.

    Attributes:
        id: of this grant; no other one has it.
        token: a number that grows with each grant.
        until_seconds: of the clock of this process; before, no other process can have the lease.
        lost: whether the row said that another process has it.
    """

    id: str
    token: int
    until_seconds: float
    lost: bool = False
    row: Stored | None = field(default=None, repr=False)
    """The row as this process knows it; None if it has to be read."""


@dataclass(frozen=True)
class LeaseProtocol:
    """Makes the protocols of one lease.

    Attributes:
        table: of the row.
        key: of the row.
        seconds: for which a grant lasts after it was renewed.
        holder: a name for persons.
        policy: of each request.
    """

    table: str
    key: EntityKey
    seconds: float
    holder: str = ""
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        """Reject seconds that the service's time cannot tell, and what the service would reject.

        Raises:
            ValueError: as `EntityValueError` if it is about the row.
        """
        if not 3 <= self.seconds < math.inf:
            raise ValueError(f"a lease lasts for 3 seconds at least, and ends: not {self.seconds}")
        limits.check_key("lease", self.key)
        limits.check_properties("lease", {"Holder": self.holder})

    def acquire(self) -> Protocol[Grant]:
        """Take the lease, if it is free.

        Raises:
            LeaseTaken: another process has it.
            OutcomeUnknown: it is not known whether it was taken. If it was, it is free after its seconds.
        """
        started = yield from perform(Now())
        found = yield from self._read()
        if found is not None and not self._is_free(found):
            raise LeaseTaken(f"{found.properties.get('Holder')!r} has {self.key}")
        token = 1 if found is None else number(found, "Token") + 1
        grant = Grant((yield from perform(NewId())), token, started + self.seconds)
        try:
            yield from self._put(grant, found, grant.id, [])
        except Conflict as conflict:
            raise LeaseTaken(f"another process was faster to take {self.key}") from conflict
        return grant

    def renew(self, grant: Grant) -> Protocol[None]:
        """Make a grant last from now.

        Raises:
            LeaseLost: another process has the lease.
            OutcomeUnknown: the service does not answer. The grant lasts as before, and may be renewed again.
            Unavailable: the same.
        """
        grant.until_seconds = yield from self._write(grant, grant.id, [])

    def release(self, grant: Grant) -> Protocol[None]:
        """Free the lease, if the grant still holds."""
        try:
            yield from self._write(grant, "", [])
        except LeaseLost:
            return
        grant.lost = True

    def guard(self, grant: Grant, planned: Sequence[Planned]) -> Protocol[None]:
        """Do writes of the row's partition in one transaction, if the grant holds at that instant. It renews it, too.

        Raises:
            LeaseLost: another process has the lease. Nothing was written.
            Conflict: an entity is not as expected. Nothing was written. `index` is the number of its write.
            OutcomeUnknown: it is not known whether it was done.
        """
        grant.until_seconds = yield from self._write(grant, grant.id, planned)

    def _write(self, grant: Grant, grant_id: str, planned: Sequence[Planned]) -> Protocol[float]:
        """Write the row with an id, and other rows in the same transaction, if the row is that of the grant.

        The result is until when the row is young.
        """
        for count in range(ATTEMPTS):
            started = yield from perform(Now())
            row = grant.row
            if row is None:
                row = yield from self._own(grant)
            try:
                yield from self._put(grant, row, grant_id, planned)
            except Conflict as conflict:
                # The row may be another one by a renewal of this very grant, or by a write whose answer was lost.
                grant.row = None
                if conflict.index:
                    raise Conflict(str(conflict), conflict.index - 1) from conflict
                grant.row = yield from self._own(grant)
                if count == ATTEMPTS - 1:
                    raise
            except OutcomeUnknown:
                grant.row = None
                raise
            else:
                return started + self.seconds
        raise ValueError("there is at least 1 attempt")

    def _put(self, grant: Grant, row: Stored | None, grant_id: str, planned: Sequence[Planned]) -> Protocol[None]:
        """Replace a row by that of a grant, or insert it."""
        properties: dict[str, object] = {
            "Holder": self.holder,
            "Id": grant_id,
            "Token": EntityProperty(grant.token, EdmType.INT64),
            "Seconds": float(self.seconds),
        }
        ring = WriteIds() if row is None else WriteIds.of(row.properties)
        if row is None:
            own = Planned(Operation(Kind.INSERT, self.key, properties))
        else:
            own = Planned(Operation(Kind.REPLACE, self.key, properties, row.etag), ring)
        written = yield from write(self.table, [own, *planned], self.policy)
        if not written.etags[0]:
            grant.row = None
            return
        operation_id, marks = written.operation_id, self.policy.marks
        ring = WriteIds.born(operation_id) if row is None else ring.add(operation_id, marks)
        grant.row = Stored({**properties, **({RING: ring.text} if marks else {})}, written.etags[0])

    def _own(self, grant: Grant) -> Protocol[Stored]:
        """Read the row, which must be that of the grant."""
        row = yield from self._read()
        if row is None or not self._is_of(row, grant):
            grant.lost = True
            raise LeaseLost(f"{self.key} has another holder")
        return row

    def _is_of(self, row: Stored, grant: Grant) -> bool:
        return row.properties.get("Id") == grant.id

    def _is_free(self, row: Stored) -> bool:
        """Tell whether a row was released, or is too old by the service's clock."""
        if not row.properties.get("Id"):
            return True
        if row.date is None or row.timestamp is None:
            return False
        return (row.date - row.timestamp).total_seconds() > _value(row, "Seconds")

    def _read(self) -> Protocol[Stored | None]:
        return (yield from read(Read(self.table, self.key), (yield from begin(self.policy))))


def number(row: Stored, name: str) -> int:
    """Return a number of a row without its fraction, 0 if it is absent.

    Raises:
        EntityFormatError: another program wrote something else.
    """
    return int(_value(row, name))


def _value(row: Stored, name: str) -> float:
    found = row.properties.get(name, 0)
    value = found.value if isinstance(found, EntityProperty) else found
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise EntityFormatError(f"{row.key.row_key}.{name}: {value!r} is no number")
    return value
