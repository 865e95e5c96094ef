"""The lease of a blob elects a holder; a row fences the holder's transactions.

1. Take the lease of the blob, by an id of one's own. The service decides: no clock of a process counts.
2. Replace the row, whatever holder it names: `Id` and the next `Token`.
3. Guarded transactions replace the row, too, If-Match its ETag. Renewals are of the blob, and leave the row alone.
4. Free the row, and then the blob.

Step 1 does not keep an old holder from writing: it may not know yet that its time is over. Step 2 does. After it, the
ETag of an old holder's row is gone. So the rules of the row are those of a lease by a row, but for its age.

A request for the lease is repeated by the same id: the service gives a lease to its holder again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from lazulite_patterns.effects.blobs import BlobPut, LeaseAcquire, LeaseRelease, LeaseRenew
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import NewId, Now
from lazulite_patterns.keys.characters import units
from lazulite_patterns.leases.protocol import ATTEMPTS, Grant, LeaseLost, LeaseProtocol, LeaseTaken, number
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.retries import at_least_once, begin
from lazulite_patterns.outcomes.verdict import Planned

BLOB_NAME_MAX = 1024
_ABSENT = "BlobNotFound"
_PRESENT = "LeaseAlreadyPresent"
_GONE = frozenset({404, 409, 412})
"""Statuses of a renewal or a release that tell of the blob or its lease: it is not the holder's any more."""


@dataclass(frozen=True)
class BlobLeaseProtocol(LeaseProtocol):
    """Makes the protocols of the lease of a blob.

    Attributes:
        container: the name by which the driver knows the container.
        blob: the name of the blob.
    """

    container: str = ""
    blob: str = ""

    def __post_init__(self) -> None:
        """Reject what the service would reject."""
        super().__post_init__()
        if self.seconds not in range(15, 61):
            raise ValueError("the lease of a blob lasts for 15 to 60 whole seconds")
        if not 1 <= units(self.blob) <= BLOB_NAME_MAX:
            raise ValueError(f"the name of a blob has 1 to {BLOB_NAME_MAX} characters")

    def acquire(self) -> Protocol[Grant]:
        """Take the lease of the blob, if it is free, and then the row.

        Raises:
            LeaseTaken: another process has it.
            OutcomeUnknown: it is not known whether it was taken. If it was, it is free after its seconds.
        """
        started = yield from perform(Now())
        first, second = (yield from perform(NewId())), (yield from perform(NewId()))
        lease_id = str(UUID(f"{first}{second}"))
        try:
            yield from self._leased(LeaseAcquire(self.container, self.blob, lease_id, int(self.seconds)))
        except Rejected as rejected:
            if rejected.code != _PRESENT:
                raise
            raise LeaseTaken(f"another process has the lease of {self.blob}") from rejected
        for _ in range(ATTEMPTS):
            row = yield from self._read()
            token = 1 if row is None else number(row, "Token") + 1
            grant = Grant(lease_id, token, started + self.seconds)
            try:
                yield from self._put(grant, row, grant.id, [])
            except Conflict:
                continue  # A holder of before has written, which it may until the row is replaced.
            return grant
        yield from self._free(lease_id)
        raise LeaseTaken(f"other processes were faster to take {self.key}")

    def renew(self, grant: Grant) -> Protocol[None]:
        """Make the lease of the blob last from now.

        Raises:
            LeaseLost: another process has the lease, or it was broken.
            OutcomeUnknown: the service does not answer. The grant lasts as before, and may be renewed again.
        """
        started = yield from perform(Now())
        try:
            yield from self._at_least_once(LeaseRenew(self.container, self.blob, grant.id))
        except Rejected as rejected:
            if rejected.status not in _GONE:
                raise
            grant.lost = True
            raise LeaseLost(f"{self.blob}: {rejected}") from rejected
        grant.until_seconds = started + self.seconds

    def guard(self, grant: Grant, planned: Sequence[Planned]) -> Protocol[None]:
        """Do writes of the row's partition in one transaction, if no other process took the row. It renews nothing.

        Raises:
            LeaseLost: another process has the lease. Nothing was written.
            Conflict: an entity is not as expected. Nothing was written. `index` is the number of its write.
            OutcomeUnknown: it is not known whether it was done.
        """
        if grant.lost:
            raise LeaseLost(f"the lease of {self.blob} is lost")
        yield from self._write(grant, grant.id, planned)

    def release(self, grant: Grant) -> Protocol[None]:
        """Free the row, so that no transaction of the grant comes late, and then the blob."""
        yield from super().release(grant)
        yield from self._free(grant.id)

    def _free(self, lease_id: str) -> Protocol[None]:
        try:
            yield from self._at_least_once(LeaseRelease(self.container, self.blob, lease_id))
        except Rejected as rejected:
            if rejected.status not in _GONE:
                raise

    def _leased(self, acquire: LeaseAcquire) -> Protocol[None]:
        """Take the lease of the blob, which is created if it is absent."""
        try:
            yield from self._at_least_once(acquire)
        except Rejected as absent:
            if absent.code != _ABSENT:
                raise
            try:
                yield from self._at_least_once(BlobPut(self.container, self.blob, b""))
            except Rejected as there:
                if there.status not in _GONE:
                    raise
            yield from self._at_least_once(acquire)

    def _at_least_once(self, effect: Effect[object]) -> Protocol[None]:
        """Perform an effect that may be done twice, until there is an answer."""
        yield from at_least_once(effect, (yield from begin(self.policy)))
