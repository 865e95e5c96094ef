"""Cells over time: what is added is there until it is too old."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from lazulite.traffic.counters import RESOLUTIONS, WIDTH, Counts, History, Resolution, Ring, cost

RESOLUTION = Resolution(60, 5)
ADDED = st.lists(st.tuples(st.integers(0, 12), st.lists(st.integers(0, 9), min_size=WIDTH, max_size=WIDTH)))


def ring(added: list[tuple[int, list[int]]]) -> Ring:
    made = Ring(RESOLUTION)
    for column, counts in added:
        made.add(column, counts)
    return made


def cells(found: Ring) -> dict[int, list[float]]:
    return {column: list(counts) for column, counts in found.cells()}


@given(ADDED)
def test_a_ring_has_the_sums_of_its_latest_columns(added: list[tuple[int, list[int]]]) -> None:
    expected: dict[int, list[int]] = defaultdict(lambda: [0] * WIDTH)
    latest = 0
    for column, counts in added:
        latest = max(latest, column)  # A clock that goes back adds to the latest column.
        expected[latest] = [one + other for one, other in zip(expected[latest], counts, strict=True)]
    kept = {column: counts for column, counts in expected.items() if column > latest - RESOLUTION.length}
    found = ring(added)
    assert cells(found) == kept
    assert list(found.columns) == sorted(kept)


@given(ADDED, ADDED)
def test_merging_adds(one: list[tuple[int, list[int]]], other: list[tuple[int, list[int]]]) -> None:
    merged = ring(sorted(one))
    merged.merge(ring(sorted(other)))
    assert cells(merged) == cells(ring(sorted(one + other)))


def test_a_share_of_a_history_is_added_and_kept() -> None:
    one, other = History(), History()
    one.add(0, [4.0] * WIDTH)
    other.add(3600, [8.0] * WIDTH)
    one.merge(other, 0.5)
    assert cells(one.rings[0]) == {0: [4.0] * WIDTH, 60: [4.0] * WIDTH}
    one.scale(0.25)
    assert cells(one.rings[2]) == {0: [1.0] * WIDTH, 1: [1.0] * WIDTH}
    assert len(one) == 6


def test_what_is_too_old_is_dropped() -> None:
    found = History()
    found.add(0, [1.0] * WIDTH)
    for resolution, ring_ in zip(RESOLUTIONS, found.rings, strict=True):
        found.expire(resolution.seconds * (resolution.length - 1))
        assert len(ring_) == 1
        found.expire(resolution.seconds * resolution.length)
        assert len(ring_) == 0


def test_a_request_costs_at_least_one() -> None:
    nothing: Counts = [0, 0, 0, 9, 9, 1, 1]
    assert cost(nothing) == 1
    assert cost([1, 20, 3, 0, 0, 2, 0]) == 24
