"""Ranges: dividing, merging and joining change no sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.ordinal import ordinal
from lazulite.traffic.counters import WIDTH
from lazulite.traffic.key_ranges import KeyRanges

KEYS = st.text(alphabet="ab\ud7ff\ue000\U00010000", max_size=4)
COUNTS = [1.0, 0.0, 2.0, 0.0, 512.0, 1.0, 0.0]
MINUTE = 29_000_000


def note(ranges: KeyRanges, key: str, times: int = 1, minute: int = MINUTE) -> None:
    for _ in range(times):
        ranges.find(key).add(key, minute, COUNTS, 3.0, 3.0)


def sums(ranges: KeyRanges) -> list[float]:
    found = [0.0] * WIDTH
    for each in ranges.ranges:
        for _, counts in each.history.rings[0].cells():
            found = [total + count for total, count in zip(found, counts, strict=True)]
    return found


def check(ranges: KeyRanges, count: int) -> None:
    assert sums(ranges) == pytest.approx([each * count for each in COUNTS], rel=1e-6)  # Counts are floats of 32 bits.
    assert abs(sum(each.load for each in ranges.ranges) - 3 * count) < 1e-6
    starts = ranges.starts
    assert starts[0] == ""
    assert sorted(set(starts), key=ordinal) == starts
    for each, after in zip(ranges.ranges, [*starts[1:], None], strict=True):
        assert all(ordinal(each.start) <= ordinal(key) for key in each.samples)
        assert after is None or all(ordinal(key) < ordinal(after) for key in each.samples)


@given(st.lists(KEYS), st.lists(KEYS), st.lists(st.integers(0, 20)))
def test_sums_stay(keys: list[str], boundaries: list[str], merges: list[int]) -> None:
    ranges = KeyRanges()
    for number, key in enumerate(keys):
        note(ranges, key, minute=MINUTE + number // 3)
    for boundary in boundaries:
        ranges.divide(boundary)
        check(ranges, len(keys))
    for index in merges:
        if index + 1 < len(ranges):
            ranges.merge(index)
            check(ranges, len(keys))


@given(st.lists(KEYS), st.lists(KEYS), st.lists(KEYS), st.lists(KEYS))
def test_joining_adds(one: list[str], other: list[str], cuts: list[str], other_cuts: list[str]) -> None:
    ranges, others = KeyRanges(), KeyRanges()
    for found, keys, boundaries in ((ranges, one, cuts), (others, other, other_cuts)):
        for boundary in boundaries:
            found.divide(boundary)
        for key in keys:
            note(found, key)
    ranges.join(others)
    assert set(ranges.starts) == {"", *cuts, *other_cuts}
    totals = sums(ranges)
    assert all(abs(total - each * len(one + other)) < 1e-3 for total, each in zip(totals, COUNTS, strict=True))
    assert abs(sum(each.load for each in ranges.ranges) - 3 * len(one + other)) < 1e-6


def test_the_median_halves_the_load() -> None:
    ranges = KeyRanges()
    assert ranges.ranges[0].median() is None, "there is no traffic"
    note(ranges, "m", 8)
    assert ranges.ranges[0].median() == "m", "there is one partition"
    for key in "mmmlmmmm":
        note(ranges, key)
    assert ranges.ranges[0].median() == "m", "a hot partition is set apart"
    ranges.divide("m")
    for key in "mnopqrst":
        note(ranges, key)
    assert ranges.find("m").median() in ("p", "q", "r")
    ranges.divide("t")
    note(ranges, "t", 8)
    assert ranges.find("t").median() == "t\0"


def test_the_ranges_of_a_scan() -> None:
    ranges = KeyRanges()
    for boundary in "dhp":
        ranges.divide(boundary)
    assert [each.start for each in ranges.between("a", "z")] == ["", "d", "h", "p"]
    assert [each.start for each in ranges.between("d", "h")] == ["d", "h"]
    assert [each.start for each in ranges.between("e", "g")] == ["d"]
    assert [each.start for each in ranges.between("z", "a")] == ["p"]
