"""Lease Container and Lease Blob: acquire, renew, change, release, break. Source: reference §39."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from lazulite.blob.containers.containers import version_headers
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.lease import (
    BREAK_SECONDS,
    DURATIONS,
    INFINITE,
    Lease,
    acquire,
    break_,
    change,
    leased,
    release,
    renew,
)
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import read_guid, read_number, version_of
from lazulite.blob.storage.catalog import Container
from lazulite.protocol.errors import invalid_header, missing_header
from lazulite.protocol.message import Response

_ACTION, _ID, _PROPOSED = "x-ms-lease-action", "x-ms-lease-id", "x-ms-proposed-lease-id"
_DURATION, _BREAK = "x-ms-lease-duration", "x-ms-lease-break-period"


class _Outcome(NamedTuple):
    """What a lease action makes of a lease."""

    lease: Lease | None
    status: int
    headers: list[tuple[str, str]]


Action = Callable[[Lease | None, int], _Outcome]
"""Takes the lease and the time. Raises `LeaseError`."""


async def lease_container(call: Call) -> Response:
    """Do an action to the lease of a container."""
    action = _read_action(call)

    def apply(container: Container) -> tuple[Container, _Outcome]:
        now = call.context.present()
        call.preconditions.allow_write(container, now)
        outcome = leased(lambda: action(container.lease, now), "Container")
        return replace(container, lease=outcome.lease), outcome

    container, outcome = await call.context.catalog.change(call.account, call.resource.container, apply)
    return Response(outcome.status, [*version_headers(container), *outcome.headers])


async def lease_blob(call: Call) -> Response:
    """Do an action to the lease of a blob. Its ETag and Last-Modified stay."""
    action = _read_action(call)

    def decide(transaction: Transaction) -> tuple[_Outcome, Blob]:
        blob = transaction.require_blob()
        call.preconditions.allow_write(blob, transaction.present)
        outcome = leased(lambda: action(blob.lease, transaction.present))
        changed = blob._replace(lease=outcome.lease)
        transaction.put_blob(changed)
        return outcome, changed

    outcome, blob = await call.commit(await call.container(), decide)
    return Response(outcome.status, [*version_of(blob), *outcome.headers])


def _read_action(call: Call) -> Action:
    """Return what the headers of a request ask for.

    Raises:
        ServiceError: `MissingRequiredHeader`, `InvalidHeaderValue`.
    """
    headers = call.request.headers
    text = headers.get(_ACTION)
    if not text:
        raise missing_header(_ACTION)
    read = _ACTIONS.get(text.lower())
    if read is None:
        raise invalid_header(_ACTION, text)
    return read(headers, call)


def _acquire(headers: Mapping[str, str], call: Call) -> Action:
    duration = read_number(headers, _DURATION, INFINITE, DURATIONS[-1])
    if duration is None:
        raise missing_header(_DURATION)
    if duration != INFINITE and duration not in DURATIONS:
        raise invalid_header(_DURATION, headers[_DURATION])
    proposed = read_guid(headers, _PROPOSED) or UUID(int=call.context.random.getrandbits(128), version=4)
    return lambda lease, now: _Outcome(acquire(lease, now, proposed, duration), 201, _id_of(proposed))


def _renew(headers: Mapping[str, str], _: Call) -> Action:
    given = _require_id(headers, _ID)
    return lambda lease, now: _Outcome(renew(lease, now, given), 200, _id_of(given))


def _change(headers: Mapping[str, str], _: Call) -> Action:
    given, proposed = _require_id(headers, _ID), _require_id(headers, _PROPOSED)
    return lambda lease, now: _Outcome(change(lease, now, given, proposed), 200, _id_of(proposed))


def _release(headers: Mapping[str, str], _: Call) -> Action:
    given = _require_id(headers, _ID)

    def apply(lease: Lease | None, now: int) -> _Outcome:  # noqa: ARG001 - as the other actions
        release(lease, given)
        return _Outcome(None, 200, [])

    return apply


def _break(headers: Mapping[str, str], _: Call) -> Action:
    period = read_number(headers, _BREAK, 0, BREAK_SECONDS[-1])

    def apply(lease: Lease | None, now: int) -> _Outcome:
        broken = break_(lease, now, period)
        return _Outcome(broken.lease, 202, [("x-ms-lease-time", str(broken.seconds))])

    return apply


def _require_id(headers: Mapping[str, str], name: str) -> UUID:
    found = read_guid(headers, name)
    if found is None:
        raise missing_header(name)
    return found


def _id_of(lease: UUID) -> list[tuple[str, str]]:
    return [(_ID, str(lease))]


_ACTIONS = {"acquire": _acquire, "renew": _renew, "change": _change, "release": _release, "break": _break}
