"""The lease matrix: each action, write and read in each state of a lease, of blobs and containers."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from tests.conformance.answers import Answer

from .blobs import Container, new_name
from .conftest import New, Pass, making
from .matrix import MATRIX, request_of, requests_of, row_of
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

ACTION_MESSAGES = {
    "LeaseAlreadyPresent": "There is already a lease present.",
    "LeaseIdMismatchWithLeaseOperation": "The lease ID specified did not match the lease ID for the {noun}.",
    "LeaseNotPresentWithLeaseOperation": "There is currently no lease on the {noun}.",
    "LeaseIsBreakingAndCannotBeAcquired": "The lease ID matched, but the lease is currently in breaking state and"
    " cannot be acquired until it is broken.",
    "LeaseIsBreakingAndCannotBeChanged": "The lease ID matched, but the lease is currently in breaking state and"
    " cannot be changed.",
    "LeaseIsBrokenAndCannotBeRenewed": "The lease ID matched, but the lease has been broken explicitly and cannot be"
    " renewed.",
}
LEASED = {name: row for name, row in MATRIX.items() if row.lease != "–"}
"""The other operations that a lease is for."""
KINDS = {"blob": "block", "container": "container"}
TARGETS = {f"{action} of a {noun}": kind for action in ACTIONS for noun, kind in KINDS.items()}
TARGETS |= {name: request_of(name).target for name in requests_of(LEASED)}
"""Everything that is tried in each state, with the kind of its resource."""

InState = Callable[[str, str], Resource]
"""Takes a name of `TARGETS` and a state to a resource for it whose lease A is in that state."""


@pytest.fixture(scope="module")
def expired(sources: Container, pass_seconds: Pass) -> Iterator[Mapping[str, Resource]]:
    """Resources whose lease has expired: elsewhere than in this process, that takes its time."""
    with making(sources) as make:
        found = {name: make(target) for name, target in TARGETS.items()}
        for resource in found.values():
            resource.lease("acquire", duration=15, proposed_id=A).expect(201)
        pass_seconds(16)
        yield found


@pytest.fixture
def in_state(new: New, expired: Mapping[str, Resource]) -> InState:
    """Brings resources into states."""

    def bring(name: str, state: str) -> Resource:
        resource = expired[name] if state == "expired" else new(TARGETS[name])
        if state in ("leased", "breaking", "broken"):
            resource.lease("acquire", duration=-1, proposed_id=A).expect(201)
        if state in ("breaking", "broken"):
            resource.lease("break", break_period=60 if state == "breaking" else 0).expect(202)
        assert resource.facts().header("x-ms-lease-state") == state
        return resource

    return bring


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("noun", KINDS)
@pytest.mark.parametrize("action", ACTIONS)
def test_actions(in_state: InState, action: str, noun: str, state: str) -> None:
    name, fields, expected = ACTIONS[action]
    resource = in_state(f"{action} of a {noun}", state)
    before = resource.facts()
    answer = resource.lease(name, **fields)
    status, code = expected[STATES.index(state)]
    assert answer.rejection == (status, code, ACTION_MESSAGES.get(code, "").format(noun=noun))
    after = resource.facts()
    assert (after.etag, after.header("Last-Modified")) == (before.etag, before.header("Last-Modified"))
    if not code:
        assert (answer.etag, answer.header("Last-Modified")) == (before.etag, before.header("Last-Modified"))
        if name in ("acquire", "renew", "change"):
            assert answer.header("x-ms-lease-id") == after_id(action, answer.required("x-ms-lease-id"))
        assert name != "break" or state == "breaking" or answer.header("x-ms-lease-time") == "0"


def after_id(action: str, given: str) -> str:
    """The id that a lease has after a successful action; a server makes one up where the client proposes none."""
    return given if action == "acquire" else {"A": A, "B": B}[action[-1]]


MISSING = (412, "LeaseIdMissing")
OTHER = (412, "LeaseIdMismatch")
ABSENT = (412, "LeaseNotPresent")
LOST = (412, "LeaseLost")
BY_ID: dict[str | None, tuple[Expected | None, ...]] = {
    None: (None, MISSING, MISSING, None, None),
    A: (ABSENT, None, None, LOST, LOST),
    B: (ABSENT, OTHER, OTHER, OTHER, OTHER),
}
"""The rejection of a request that names a lease or none, in each of the `STATES` of the lease A. None: it succeeds.

Codes without their suffix. A request that need not name the lease succeeds without an id in each state."""
MESSAGES = {
    "LeaseIdMissing": "There is currently a lease on the {noun} and no lease ID was specified in the request.",
    "LeaseIdMismatch": "The lease ID specified did not match the lease ID for the {noun}.",
    "LeaseNotPresent": "There is currently no lease on the {noun}.",
    "LeaseLost": "A lease ID was specified, but the lease for the {noun} has expired.",
}


def check_lease(answer: Answer, expected: Expected, noun: str) -> None:
    """Check the rejection of a lease id."""
    status, code = expected
    suffix = f"With{noun.capitalize()}Operation" if code in ("LeaseIdMismatch", "LeaseNotPresent") else ""
    assert (answer.status, answer.header("x-ms-error-code")) == (status, code + suffix)
    if answer.body:
        assert answer.rejection.message == MESSAGES[code].format(noun=noun)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", requests_of(LEASED))
def test_other_operations(in_state: InState, name: str, state: str) -> None:
    request, is_required = request_of(name), row_of(name).lease == "required"
    resource, noun = in_state(name, state), "container" if request.target == "container" else "blob"
    holds = state in ("leased", "breaking")
    for id_ in (B, A, None):
        rejection = BY_ID[id_][STATES.index(state)]
        if rejection and (id_ or is_required):
            before = resource.facts()
            answer = request.send(resource, with_lease(id_))
            if id_ == B and state in ("broken", "expired"):
                answer.expect(412)  # The code is not recorded.
            else:
                check_lease(answer, rejection, noun)
            assert resource.facts().etag == before.etag
    for id_ in (A if holds else None, *(() if is_required else (None,))):
        answer = request.send(resource, with_lease(id_))
        assert answer.status < 400 or answer.code == (409, "NoPendingCopyOperation")
    if request.method != "DELETE":
        left = "available" if is_required and not holds else state
        assert resource.facts().header("x-ms-lease-state") == left


@pytest.mark.parametrize("name", [name for name in requests_of(LEASED) if request_of(name).target != "container"])
def test_a_lease_of_nothing(sources: Container, name: str) -> None:
    request, missing = request_of(name), Resource(sources, new_name())
    answer = request.send(missing, with_lease(A))
    if row_of(name).creates or name.startswith("PutBlock"):
        check_lease(answer, ABSENT, "blob")
        assert missing.send("HEAD").status == 404
    else:
        assert (answer.status, answer.header("x-ms-error-code")) == (404, "BlobNotFound")


@pytest.mark.parametrize("name", [name for name in requests_of(LEASED) if name.startswith("CopyBlob")])
def test_a_copy_needs_an_infinite_lease(new: New, name: str) -> None:
    request, blob = request_of(name), new("block")
    blob.lease("acquire", duration=15, proposed_id=A).expect(201)
    check_lease(request.send(blob, {}), MISSING, "blob")
    check_lease(request.send(blob, with_lease(B)), OTHER, "blob")
    answer = request.send(blob, with_lease(A))
    assert answer.rejection == (
        412,
        "InfiniteLeaseDurationRequired",
        "The lease ID matched, but the specified lease must be an infinite-duration lease.",
    )


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


def test_other_operations_ignore_the_lease_of_a_container(own: Resource) -> None:
    own.lease("acquire", duration=15, proposed_id=A).expect(201)
    own.container.put("a").expect(201)
    own.send("PUT", "comp=metadata").expect(200)
    for method, query in (("GET", ""), ("GET", "comp=metadata"), ("PUT", "comp=metadata"), ("GET", "comp=acl")):
        own.send(method, query, headers=with_lease(A)).expect(200)
        answer = own.send(method, query, headers=with_lease(B))
        assert answer.code == (412, "LeaseIdMismatchWithContainerOperation")
    own.lease("release", id=A).expect(200)
