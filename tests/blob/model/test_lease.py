"""The matrix of leases, cell by cell as the REST reference has it (Lease Blob, Lease Container)."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.lease import (
    DURATIONS,
    INFINITE,
    Lease,
    LeaseError,
    State,
    acquire,
    break_,
    change,
    check_given,
    lease_after_write,
    release,
    renew,
    state_of,
)
from lazulite.protocol.clock import TICKS_PER_SECOND

A, B, C = (UUID(int=number) for number in (1, 2, 3))
NOW = 1_000 * TICKS_PER_SECOND
DURATION = 30
LEASED = Lease(A, DURATION, NOW + 10 * TICKS_PER_SECOND)
STATES = {
    "available": None,
    "leased": LEASED,
    "breaking": replace(LEASED, broken=NOW + 5 * TICKS_PER_SECOND),
    "broken": replace(LEASED, broken=NOW),
    "expired": replace(LEASED, ends=NOW),
}
FRESH = NOW + DURATION * TICKS_PER_SECOND
PRESENT, MISMATCH = "LeaseAlreadyPresent", "LeaseIdMismatchWithLeaseOperation"
NONE, BROKEN = "LeaseNotPresentWithLeaseOperation", "LeaseIsBrokenAndCannotBeRenewed"
ACQUIRED, CHANGED = "LeaseIsBreakingAndCannotBeAcquired", "LeaseIsBreakingAndCannotBeChanged"
OTHER, GONE = "LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation"
ROWS: dict[str, tuple[Callable[[Lease | None], object], tuple[object, ...]]] = {
    "acquire B": (lambda lease: acquire(lease, NOW, B, DURATION).id, (B, PRESENT, PRESENT, B, B)),
    "acquire A": (lambda lease: acquire(lease, NOW, A, DURATION).ends, (FRESH, FRESH, ACQUIRED, FRESH, FRESH)),
    "renew A": (lambda lease: renew(lease, NOW, A).ends, (MISMATCH, FRESH, BROKEN, BROKEN, FRESH)),
    "renew B": (lambda lease: renew(lease, NOW, B), (MISMATCH,) * 5),
    "change A to B": (lambda lease: change(lease, NOW, A, B).id, (NONE, B, CHANGED, NONE, NONE)),
    "change B to A": (lambda lease: change(lease, NOW, B, A).id, (NONE, A, MISMATCH, NONE, NONE)),
    "change A to A": (lambda lease: change(lease, NOW, A, A).id, (NONE, A, CHANGED, NONE, NONE)),
    "change B to C": (lambda lease: change(lease, NOW, B, C), (NONE, MISMATCH, MISMATCH, NONE, NONE)),
    "release A": (lambda lease: release(lease, A), (MISMATCH, None, None, None, None)),
    "release B": (lambda lease: release(lease, B), (MISMATCH,) * 5),
    "break": (lambda lease: break_(lease, NOW, None).seconds, (NONE, 10, 5, 0, 0)),
    "break 3": (lambda lease: break_(lease, NOW, 3).seconds, (NONE, 3, 3, 0, 0)),
    "break 60": (lambda lease: break_(lease, NOW, 60).seconds, (NONE, 10, 5, 0, 0)),
    "write": (
        lambda lease: lease_after_write(lease, NOW, None),
        (None, "LeaseIdMissing", "LeaseIdMissing", None, None),
    ),
    "write A": (lambda lease: lease_after_write(lease, NOW, A) is lease, (GONE, True, True, "LeaseLost", "LeaseLost")),
    "write B": (lambda lease: lease_after_write(lease, NOW, B), (GONE, *(OTHER,) * 4)),
    "read A": (lambda lease: check_given(lease, NOW, A), (GONE, None, None, "LeaseLost", "LeaseLost")),
    "read B": (lambda lease: check_given(lease, NOW, B), (GONE, *(OTHER,) * 4)),
}


@pytest.mark.parametrize("row", ROWS)
def test_matrix(row: str) -> None:
    act, expected = ROWS[row]
    found: list[object] = []
    for lease in STATES.values():
        try:
            found.append(act(lease))
        except LeaseError as error:
            found.append(error.code)
    assert dict(zip(STATES, found, strict=True)) == dict(zip(STATES, expected, strict=True))


@pytest.mark.parametrize("name", STATES)
def test_states(name: str) -> None:
    state = state_of(STATES[name], NOW)
    assert state is State(name)
    assert state.locks is (name in ("leased", "breaking"))


def test_an_infinite_lease_is_broken_at_once_or_after_the_period() -> None:
    lease = acquire(None, NOW, A, INFINITE)
    assert state_of(lease, 1 << 62) is State.LEASED
    assert break_(lease, NOW, None).seconds == 0
    assert state_of(break_(lease, NOW, None).lease, NOW) is State.BROKEN
    breaking = break_(lease, NOW, 60)
    assert (breaking.seconds, state_of(breaking.lease, NOW)) == (60, State.BREAKING)


def test_an_expired_lease_is_broken_by_a_break() -> None:
    lease = break_(STATES["expired"], NOW, None).lease
    assert state_of(lease, NOW) is State.BROKEN
    assert break_(lease, NOW + 1, 60).lease == lease


_ACTS = st.one_of(
    st.tuples(st.just("acquire"), st.sampled_from([A, B]), st.sampled_from([15, 60, INFINITE])),
    st.tuples(st.sampled_from(["renew", "release", "write"]), st.sampled_from([A, B])),
    st.tuples(st.just("change"), st.sampled_from([A, B]), st.sampled_from([A, B])),
    st.tuples(st.just("break"), st.sampled_from([None, 0, 7, 60])),
)


def _act(lease: Lease | None, now: int, what: tuple[object, ...]) -> Lease | None:
    match what:
        case ("acquire", UUID() as proposed, int() as duration):
            return acquire(lease, now, proposed, duration)
        case ("renew", UUID() as own):
            return renew(lease, now, own)
        case ("release", UUID() as own):
            release(lease, own)
            return None
        case ("write", UUID() as own):
            return lease_after_write(lease, now, own)
        case ("change", UUID() as own, UUID() as proposed):
            return change(lease, now, own, proposed)
        case ("break", period):
            assert period is None or isinstance(period, int)
            return break_(lease, now, period).lease
    raise AssertionError(what)


@given(st.lists(st.tuples(_ACTS, st.integers(0, 40 * TICKS_PER_SECOND))))
def test_a_holder_keeps_the_lease_until_its_end_unless_it_is_broken(
    steps: list[tuple[tuple[object, ...], int]],
) -> None:
    """The other client neither gets the lease nor shortens it, except by a break or by the holder's own id."""
    lease: Lease | None = None
    now = NOW
    for what, pause in steps:
        now += pause
        before, state = lease, state_of(lease, now)
        try:
            lease = _act(lease, now, what)
        except LeaseError:
            assert lease is before
            continue
        if before is not None and state.locks and what[0] != "break" and before.id not in what:
            raise AssertionError((before, what, lease))
        if what[0] == "break" and before is not None and lease is not None and state.locks:
            assert lease.broken is not None
            assert before.ends is None or lease.broken <= max(before.ends, before.broken or 0)


def test_durations() -> None:
    assert (DURATIONS[0], DURATIONS[-1]) == (15, 60)
