"""The lease matrix: each action, write and read in each state of a lease, of blobs and containers."""

from collections.abc import Callable, Mapping

import pytest

from .conftest import Pass
from .resources import A, B, C, Resource, with_lease

Expected = tuple[int, str]

STATES = ("available", "leased", "breaking", "broken", "expired")
PRESENT = (409, "LeaseAlreadyPresent")
MISMATCH = (409, "LeaseIdMismatchWithLeaseOperation")
NONE = (409, "LeaseNotPresentWithLeaseOperation")
CANNOT_ACQUIRE = (409, "LeaseIsBreakingAndCannotBeAcquired")
CANNOT_CHANGE = (409, "LeaseIsBreakingAndCannotBeChanged")
CANNOT_RENEW = (409, "LeaseIsBrokenAndCannotBeRenewed")
CREATED, DONE, ACCEPTED = (201, ""), (200, ""), (202, "")

ACTIONS: dict[str, tuple[str, dict[str, str | int], tuple[Expected, ...]]] = {
    "acquire": ("acquire", {"duration": 15}, (CREATED, PRESENT, PRESENT, CREATED, CREATED)),
    "acquire B": ("acquire", {"duration": -1, "proposed_id": B}, (CREATED, PRESENT, PRESENT, CREATED, CREATED)),
    "acquire A": ("acquire", {"duration": 60, "proposed_id": A}, (CREATED, CREATED, CANNOT_ACQUIRE, CREATED, CREATED)),
    "renew A": ("renew", {"id": A}, (MISMATCH, DONE, CANNOT_RENEW, CANNOT_RENEW, DONE)),
    "renew B": ("renew", {"id": B}, (MISMATCH,) * 5),
    "change A to B": ("change", {"id": A, "proposed_id": B}, (NONE, DONE, CANNOT_CHANGE, NONE, NONE)),
    "change A to A": ("change", {"id": A, "proposed_id": A}, (NONE, DONE, CANNOT_CHANGE, NONE, NONE)),
    "change B to A": ("change", {"id": B, "proposed_id": A}, (NONE, DONE, MISMATCH, NONE, NONE)),
    "change B to C": ("change", {"id": B, "proposed_id": C}, (NONE, MISMATCH, MISMATCH, NONE, NONE)),
    "release A": ("release", {"id": A}, (MISMATCH, DONE, DONE, DONE, DONE)),
    "release B": ("release", {"id": B}, (MISMATCH,) * 5),
    "break": ("break", {}, (NONE, ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED)),
}
"""An action with its headers, and what it gives in each of the `STATES` of the lease A."""

BLOB_MESSAGES = {
    "LeaseAlreadyPresent": "There is already a lease present.",
    "LeaseIdMismatchWithLeaseOperation": "The lease ID specified did not match the lease ID for the blob.",
    "LeaseNotPresentWithLeaseOperation": "There is currently no lease on the blob.",
    "LeaseIsBreakingAndCannotBeAcquired": "The lease ID matched, but the lease is currently in breaking state and"
    " cannot be acquired until it is broken.",
    "LeaseIsBreakingAndCannotBeChanged": "The lease ID matched, but the lease is currently in breaking state and"
    " cannot be changed.",
    "LeaseIsBrokenAndCannotBeRenewed": "The lease ID matched, but the lease has been broken explicitly and cannot be"
    " renewed.",
}


def bring(resource: Resource, state: str, pass_seconds: Pass) -> None:
    """Bring the lease A of a resource into a state."""
    if state == "available":
        return
    duration = 15 if state == "expired" else -1
    resource.lease("acquire", duration=duration, proposed_id=A).expect(201)
    if state in ("breaking", "broken"):
        resource.lease("break", break_period=60 if state == "breaking" else 0).expect(202)
    if state == "expired":
        pass_seconds(16)
    assert resource.facts().header("x-ms-lease-state") == state


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ACTIONS)
def test_actions(blob: Resource, pass_seconds: Pass, action: str, state: str) -> None:
    name, fields, expected = ACTIONS[action]
    bring(blob, state, pass_seconds)
    before = blob.facts()
    answer = blob.lease(name, **fields)
    status, code = expected[STATES.index(state)]
    assert answer.rejection == (status, code, BLOB_MESSAGES.get(code, ""))
    after = blob.facts()
    assert (after.etag, after.header("Last-Modified")) == (before.etag, before.header("Last-Modified"))
    if not code:
        assert (answer.etag, answer.header("Last-Modified")) == (before.etag, before.header("Last-Modified"))
        if name in ("acquire", "renew", "change"):
            assert answer.header("x-ms-lease-id") == after_id(action, answer.required("x-ms-lease-id"))


def after_id(action: str, given: str) -> str:
    """The id that a lease has after a successful action; a server makes one up where the client proposes none."""
    return given if action == "acquire" else {"A": A, "B": B}[action[-1]]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ["acquire", "acquire A", "renew A", "change A to B", "change B to C", "break"])
def test_actions_on_containers(own: Resource, pass_seconds: Pass, action: str, state: str) -> None:
    name, fields, expected = ACTIONS[action]
    bring(own, state, pass_seconds)
    answer = own.lease(name, **fields)
    status, code = expected[STATES.index(state)]
    assert answer.code == (status, code)
    if code == "LeaseNotPresentWithLeaseOperation":
        assert answer.rejection.message == "There is currently no lease on the container."
    own.lease("break", break_period=0)


WRITES: dict[str, Callable[[Resource, Mapping[str, str]], Expected]] = {
    "put": lambda blob, lease: blob.put(b"new", lease).code,
    "metadata": lambda blob, lease: blob.send("PUT", "comp=metadata", headers=lease).code,
    "properties": lambda blob, lease: blob.send("PUT", "comp=properties", headers=lease).code,
    "delete": lambda blob, lease: blob.send("DELETE", headers=lease).code,
}
MISSING = (412, "LeaseIdMissing")
OTHER = (412, "LeaseIdMismatchWithBlobOperation")
ABSENT = (412, "LeaseNotPresentWithBlobOperation")
LOST = (412, "LeaseLost")
BY_ID: dict[str | None, tuple[Expected | None, ...]] = {
    None: (None, MISSING, MISSING, None, None),
    A: (ABSENT, None, None, LOST, LOST),
    B: (ABSENT, OTHER, OTHER, OTHER, OTHER),
}
"""The rejection of a write that names a lease or none, in each of the `STATES` of the lease A. None: it succeeds."""


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("write", WRITES)
def test_writes(blob: Resource, pass_seconds: Pass, write: str, state: str) -> None:
    bring(blob, state, pass_seconds)
    for id_ in (B, A, None):
        rejection = BY_ID[id_][STATES.index(state)]
        if id_ == B and state in ("broken", "expired"):
            assert WRITES[write](blob, with_lease(id_))[0] == 412  # The code is not recorded.
        elif rejection:
            assert WRITES[write](blob, with_lease(id_)) == rejection
    allowed = A if state in ("leased", "breaking") else None
    status, code = WRITES[write](blob, with_lease(allowed))
    assert (status, code) in ((200, ""), (201, ""), (202, ""))
    if write != "delete":
        left = state if state in ("leased", "breaking") else "available"
        assert blob.facts().header("x-ms-lease-state") == left


@pytest.mark.parametrize("state", STATES)
def test_reads(blob: Resource, pass_seconds: Pass, state: str) -> None:
    bring(blob, state, pass_seconds)
    for method, query in (("GET", ""), ("HEAD", ""), ("GET", "comp=metadata")):
        blob.send(method, query).expect(200)
        for id_ in (A, B):
            answer = blob.send(method, query, headers=with_lease(id_))
            rejection = BY_ID[id_][STATES.index(state)]
            if rejection is None:
                answer.expect(200)
            elif id_ == A or state not in ("broken", "expired"):
                assert (answer.status, answer.header("x-ms-error-code")) == rejection
            else:
                answer.expect(412)


def test_what_states_show(blob: Resource, pass_seconds: Pass) -> None:
    def facts() -> tuple[str | None, ...]:
        found = blob.facts()
        return tuple(found.header(f"x-ms-lease-{name}") for name in ("status", "state", "duration"))

    assert facts() == ("unlocked", "available", None)
    blob.lease("acquire", duration=15, proposed_id=A).expect(201)
    assert facts() == ("locked", "leased", "fixed")
    pass_seconds(16)
    assert facts() == ("unlocked", "expired", None)
    blob.lease("acquire", duration=-1, proposed_id=A).expect(201)
    assert facts() == ("locked", "leased", "infinite")
    blob.lease("break", break_period=10).expect(202)
    assert facts() == ("locked", "breaking", None)
    pass_seconds(11)
    assert facts() == ("unlocked", "broken", None)
    blob.lease("release", id=A).expect(200)
    assert facts() == ("unlocked", "available", None)


@pytest.mark.parametrize(
    ("duration", "period", "seconds"),
    [(-1, 20, 20), (-1, None, 0), (60, 20, 20), (15, 60, 15), (30, None, 30), (60, 0, 0)],
)
def test_the_time_until_a_lease_is_broken(blob: Resource, duration: int, period: int | None, seconds: int) -> None:
    blob.lease("acquire", duration=duration).expect(201)
    fields = {} if period is None else {"break_period": period}
    left = int(blob.lease("break", **fields).expect(202).required("x-ms-lease-time"))
    assert seconds - 3 <= left <= seconds
    assert blob.facts().header("x-ms-lease-state") == ("breaking" if seconds else "broken")
    if seconds:
        assert int(blob.lease("break", break_period=60).expect(202).required("x-ms-lease-time")) <= left
        assert blob.lease("break", break_period=0).expect(202).header("x-ms-lease-time") == "0"


def test_a_lease_that_expired_cannot_be_renewed_after_a_write(blob: Resource, pass_seconds: Pass) -> None:
    blob.lease("acquire", duration=15, proposed_id=A).expect(201)
    pass_seconds(16)
    blob.put(b"new").expect(201)
    assert blob.lease("renew", id=A).code == MISMATCH


BAD: dict[str, tuple[str, dict[str, str | int], str]] = {
    "no duration": ("acquire", {}, "MissingRequiredHeader"),
    "14 seconds": ("acquire", {"duration": 14}, "InvalidHeaderValue"),
    "61 seconds": ("acquire", {"duration": 61}, "InvalidHeaderValue"),
    "no number": ("acquire", {"duration": "x"}, "InvalidHeaderValue"),
    "an id that is no GUID": ("acquire", {"duration": 15, "proposed_id": "x"}, "InvalidHeaderValue"),
    "a period of 61 seconds": ("break", {"break_period": 61}, "InvalidHeaderValue"),
    "a negative period": ("break", {"break_period": -1}, "InvalidHeaderValue"),
    "renew without id": ("renew", {}, "MissingRequiredHeader"),
    "change without id": ("change", {"proposed_id": A}, "MissingRequiredHeader"),
    "change without proposal": ("change", {"id": A}, "MissingRequiredHeader"),
    "release without id": ("release", {}, "MissingRequiredHeader"),
    "unknown action": ("steal", {}, "InvalidHeaderValue"),
}


@pytest.mark.parametrize("bad", BAD)
def test_headers_of_lease_operations(blob: Resource, own: Resource, bad: str) -> None:
    action, fields, code = BAD[bad]
    assert blob.lease(action, **fields).code == own.lease(action, **fields).code == (400, code)


@pytest.mark.parametrize("given", [A.upper(), f"{{{A}}}", f"({A})", A.replace("-", "")])
def test_formats_of_ids(blob: Resource, given: str) -> None:
    assert blob.lease("acquire", duration=15, proposed_id=given).expect(201).header("x-ms-lease-id") == A
    assert blob.lease("renew", id=given).expect(200).header("x-ms-lease-id") == A


def test_a_snapshot_has_no_lease(blob: Resource) -> None:
    blob.lease("acquire", duration=15, proposed_id=A).expect(201)
    time = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    answer = blob.send("HEAD", f"snapshot={time}").expect(200)
    assert answer.header("x-ms-lease-state") is None
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    blob.send("PUT", f"comp=lease&snapshot={time}", headers=headers).expect(400)


def test_conditions_of_lease_operations(blob: Resource) -> None:
    headers = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "If-Match": '"0x8D0000000000000"'}
    assert blob.send("PUT", "comp=lease", headers=headers).code == (412, "ConditionNotMet")


DELETIONS: dict[str | None, tuple[Expected, ...]] = {
    None: (ACCEPTED, MISSING, MISSING, ACCEPTED, ACCEPTED),
    A: ((412, "LeaseNotPresentWithContainerOperation"), ACCEPTED, ACCEPTED, LOST, LOST),
    B: (
        (412, "LeaseNotPresentWithContainerOperation"),
        (412, "LeaseIdMismatchWithContainerOperation"),
        (412, "LeaseIdMismatchWithContainerOperation"),
        (412, ""),
        (412, ""),
    ),
}
CONTAINER_MESSAGES = {
    "LeaseIdMissing": "There is currently a lease on the container and no lease ID was specified in the request.",
    "LeaseIdMismatchWithContainerOperation": "The lease ID specified did not match the lease ID for the container.",
    "LeaseNotPresentWithContainerOperation": "There is currently no lease on the container.",
    "LeaseLost": "A lease ID was specified, but the lease for the container has expired.",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("id_", [None, A, B])
def test_deletion_of_a_container(own: Resource, pass_seconds: Pass, id_: str | None, state: str) -> None:
    bring(own, state, pass_seconds)
    status, code = DELETIONS[id_][STATES.index(state)]
    rejection = own.send("DELETE", headers=with_lease(id_)).rejection
    assert rejection.status == status
    if code:
        assert rejection == (status, code, CONTAINER_MESSAGES[code])
    own.lease("break", break_period=0)


def test_other_operations_ignore_the_lease_of_a_container(own: Resource) -> None:
    own.lease("acquire", duration=15, proposed_id=A).expect(201)
    own.container.put("a").expect(201)
    own.send("PUT", "comp=metadata").expect(200)
    for method, query in (("GET", ""), ("GET", "comp=metadata"), ("PUT", "comp=metadata"), ("GET", "comp=acl")):
        own.send(method, query, headers=with_lease(A)).expect(200)
        answer = own.send(method, query, headers=with_lease(B))
        assert answer.code == (412, "LeaseIdMismatchWithContainerOperation")
    own.lease("release", id=A).expect(200)
