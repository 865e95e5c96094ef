"""What a lease says of other requests than lease operations."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from lazulite.blob.errors import CONTAINER_MESSAGES
from lazulite.blob.model.lease import Lease, LeaseError, State, check_given, lease_after_write, state_of
from lazulite.protocol.errors import ServiceError

T = TypeVar("T")

_CONTAINER_CODES = {
    "LeaseIdMismatchWithBlobOperation": "LeaseIdMismatchWithContainerOperation",
    "LeaseNotPresentWithBlobOperation": "LeaseNotPresentWithContainerOperation",
}
"""The codes of a blob's lease that have another name for a container's."""


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
