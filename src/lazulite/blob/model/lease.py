"""Leases of blobs and containers: the whole matrix of the REST reference (Lease Blob).

A lease is what its row says; its state follows from that and the time. So expiry and the end of a break need no work.
Every function takes the lease (None: there is none) and the time in ticks, and returns what is to be stored, or raises
`LeaseError`. A lease is changed only in the commit that read it, so that there are never two holders.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeVar
from uuid import UUID

from lazulite.blob.errors import CONTAINER_MESSAGES
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError

INFINITE = -1
"""The duration of a lease that does not expire."""
DURATIONS = range(15, 61)
"""The other durations, in seconds."""
BREAK_SECONDS = range(61)

LEASE_ALREADY_PRESENT = "LeaseAlreadyPresent"
NOT_ACQUIRED = "LeaseIsBreakingAndCannotBeAcquired"
NOT_CHANGED = "LeaseIsBreakingAndCannotBeChanged"
IS_BROKEN = "LeaseIsBrokenAndCannotBeRenewed"
MISMATCH = "LeaseIdMismatchWithLeaseOperation"
NOT_PRESENT = "LeaseNotPresentWithLeaseOperation"
MISSING = "LeaseIdMissing"
LOST = "LeaseLost"
T = TypeVar("T")
_CONTAINER_CODES = {
    "LeaseIdMismatchWithBlobOperation": "LeaseIdMismatchWithContainerOperation",
    "LeaseNotPresentWithBlobOperation": "LeaseNotPresentWithContainerOperation",
}
"""The codes of a blob's lease that have another name for a container's."""


class State(Enum):
    """The states of a lease, with their names on the wire."""

    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"

    @property
    def locks(self) -> bool:
        """Whether a write needs the lease's id; on the wire, the status `locked`."""
        return self in (State.LEASED, State.BREAKING)


class LeaseError(Exception):
    """A request that the lease rejects.

    Args:
        code: the error code, as it is of a blob.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Lease:
    """The stored facts of a lease."""

    id: UUID
    duration: int
    """Seconds, or `INFINITE`."""
    ends: int | None
    """When it expires, in ticks; None: it does not."""
    broken: int | None = None
    """When its break ends or ended, in ticks; None: it was not broken."""


class BrokenLease(NamedTuple):
    """The result of a break."""

    lease: Lease
    seconds: int
    """Until the break ends, rounded up."""


def state_of(lease: Lease | None, now: int) -> State:
    """Return the state of a lease."""
    if lease is None:
        return State.AVAILABLE
    if lease.broken is not None:
        return State.BREAKING if now < lease.broken else State.BROKEN
    if lease.ends is not None and now >= lease.ends:
        return State.EXPIRED
    return State.LEASED


def acquire(lease: Lease | None, now: int, proposed: UUID, duration: int) -> Lease:
    """Return a new lease.

    Args:
        lease: the present one.
        now: the time.
        proposed: the id of the new one.
        duration: one of `DURATIONS`, or `INFINITE`.

    Raises:
        LeaseError: another client has it, or it is being broken.
    """
    state = state_of(lease, now)
    if lease is not None and state.locks:
        if lease.id != proposed:
            raise LeaseError(LEASE_ALREADY_PRESENT)
        if state is State.BREAKING:
            raise LeaseError(NOT_ACQUIRED)
    return Lease(proposed, duration, _end(now, duration))


def renew(lease: Lease | None, now: int, given: UUID) -> Lease:
    """Return the lease with its whole duration before it, even if it had expired.

    A write without an id removes an expired lease (`lease_after_write`), so that it cannot be renewed afterwards.

    Raises:
        LeaseError: it is another one, or was broken.
    """
    if lease is None or lease.id != given:
        raise LeaseError(MISMATCH)
    if lease.broken is not None:
        raise LeaseError(IS_BROKEN)
    return replace(lease, ends=_end(now, lease.duration))


def change(lease: Lease | None, now: int, given: UUID, proposed: UUID) -> Lease:
    """Return the lease with another id. It may have that id already, whatever the given one is.

    Raises:
        LeaseError: it is another one, or is not held any more.
    """
    if lease is None:
        raise LeaseError(NOT_PRESENT)
    state = state_of(lease, now)
    if state is State.LEASED:
        if lease.id not in (given, proposed):
            raise LeaseError(MISMATCH)
        return replace(lease, id=proposed)
    if state is State.BREAKING:
        raise LeaseError(NOT_CHANGED if lease.id == given else MISMATCH)
    raise LeaseError(NOT_PRESENT)


def release(lease: Lease | None, given: UUID) -> None:
    """Allow that a lease is removed, in whatever state it is.

    Raises:
        LeaseError: it is another one, or there is none.
    """
    if lease is None or lease.id != given:
        raise LeaseError(MISMATCH)


def break_(lease: Lease | None, now: int, period: int | None) -> BrokenLease:
    """Return the lease as it ends, at once or after a while. A client that breaks it needs no id.

    Args:
        lease: the present one.
        now: the time.
        period: one of `BREAK_SECONDS`; None: as long as it would last, and not at all for an infinite one.

    Raises:
        LeaseError: there is none.
    """
    if lease is None:
        raise LeaseError(NOT_PRESENT)
    state = state_of(lease, now)
    if not state.locks:
        return BrokenLease(replace(lease, broken=now if lease.broken is None else lease.broken), 0)
    last = lease.ends if state is State.LEASED else lease.broken
    left = None if last is None else last - now
    wanted = None if period is None else period * TICKS_PER_SECOND
    ticks = min((each for each in (left, wanted) if each is not None), default=0)
    return BrokenLease(replace(lease, broken=now + ticks), -(-ticks // TICKS_PER_SECOND))


def lease_after_write(lease: Lease | None, now: int, given: UUID | None) -> Lease | None:
    """Return the lease after a write or a deletion, which it allows. One that was not held any more is gone.

    Args:
        lease: the present one.
        now: the time.
        given: the id of the request, if it has one.

    Raises:
        LeaseError: it does not allow it.
    """
    if given is not None:
        check_given(lease, now, given)
        return lease
    if state_of(lease, now).locks:
        raise LeaseError(MISSING)
    return None


def check_given(lease: Lease | None, now: int, given: UUID) -> None:
    """Reject a request, a read too, whose id is not that of a lease that is held.

    What a wrong id gets after the lease has ended is *unverified*.

    Raises:
        LeaseError: it is another lease, there is none, or it has ended.
    """
    if lease is None:
        raise LeaseError("LeaseNotPresentWithBlobOperation")
    if lease.id != given:
        raise LeaseError("LeaseIdMismatchWithBlobOperation")
    if not state_of(lease, now).locks:
        raise LeaseError(LOST)


def _end(now: int, duration: int) -> int | None:
    return None if duration == INFINITE else now + duration * TICKS_PER_SECOND


def leased(run: Callable[[], T], noun: str = "Blob") -> T:
    """Return what `run` returns.

    Args:
        run: a step of the lease's model.
        noun: `Blob` or `Container`.

    Raises:
        ServiceError: the lease rejects it.
    """
    try:
        return run()
    except LeaseError as error:
        if noun == "Blob":
            raise ServiceError(error.code) from None
        code = _CONTAINER_CODES.get(error.code, error.code)
        raise ServiceError(code, CONTAINER_MESSAGES.get(code)) from None


def lease_for_write(lease: Lease | None, now: int, given: UUID | None, noun: str = "Blob") -> Lease | None:
    """Return the lease after a write or deletion that it allows. Raises `ServiceError`."""
    if lease is None and given is None:
        return None
    return leased(lambda: lease_after_write(lease, now, given), noun)


def check_lease(lease: Lease | None, now: int, given: UUID | None, noun: str = "Blob") -> None:
    """Reject a read whose lease id, if it has one, is not that of the lease. Raises `ServiceError`."""
    if given is not None:
        leased(lambda: check_given(lease, now, given), noun)


def lease_facts(lease: Lease | None, now: int) -> list[tuple[str, str]]:
    """Return the facts of a lease by their last word: `status`, `state`, and `duration` if it is held."""
    state = state_of(lease, now)
    facts = [("status", "locked" if state.locks else "unlocked"), ("state", state.value)]
    if lease is not None and state is State.LEASED:
        facts.append(("duration", "infinite" if lease.ends is None else "fixed"))
    return facts
