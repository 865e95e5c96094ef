"""The bounds of the summary, against exact counts."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lazulite.traffic.heavy_hitters import HeavyHitters

STREAM = st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.integers(1, 50)), max_size=60)
SIZE = st.integers(1, 6)


def summary(stream: list[tuple[str, int]], size: int) -> HeavyHitters:
    made = HeavyHitters(size)
    for key, weight in stream:
        made.add(key, weight)
    return made


def exact(stream: list[tuple[str, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for key, weight in stream:
        counts[key] += weight
    return counts


def check(found: HeavyHitters, counts: Counter[str], size: int) -> None:
    total = sum(counts.values())
    assert found.total == total
    assert found.error <= total / (size + 1)
    assert len(found) <= 2 * size
    for key in "abcdefghijkl":
        assert found.lower(key) <= counts[key] <= found.lower(key) + found.error


@given(STREAM, SIZE)
def test_a_weight_is_within_the_error(stream: list[tuple[str, int]], size: int) -> None:
    check(summary(stream, size), exact(stream), size)


@given(STREAM, STREAM, SIZE)
def test_a_merged_summary_has_the_bound_of_both_streams(
    one: list[tuple[str, int]], other: list[tuple[str, int]], size: int
) -> None:
    merged, second = summary(one, size), summary(other, size)
    merged.merge(second.counts.items(), second.total, second.error)
    check(merged, exact(one + other), size)


@given(STREAM, STREAM, SIZE)
def test_a_smaller_summary_has_the_bound_of_its_size(
    one: list[tuple[str, int]], other: list[tuple[str, int]], size: int
) -> None:
    found = summary(one, size + 4)
    found.resize(size)
    for key, weight in other:
        found.add(key, weight)
    check(found, exact(one + other), size)


def test_the_heaviest_keys_come_first() -> None:
    found = summary([("a", 1), ("b", 5), ("c", 3), ("b", 1)], 3)
    assert found.top(2) == [("b", 6), ("c", 3)]
    found.scale(0.5)
    assert (found.top(1), found.total) == ([("b", 3)], 5)
