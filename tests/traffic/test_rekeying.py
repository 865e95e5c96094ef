"""Other keys, made of real ones."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.traffic.key_sample import KeySample
from lazulite.traffic.rekeying import (
    buckets_for,
    coarser,
    concatenated,
    hashed,
    reversed_ticks,
    with_prefix,
    with_suffix,
)


@pytest.mark.parametrize(
    ("peak", "target", "least", "expected"), [(100, 2_000, 4, 4), (2_000, 500, 4, 8), (501, 500, 2, 3), (0, 500, 2, 2)]
)
def test_each_bucket_takes_half_of_a_target(peak: float, target: float, least: int, expected: int) -> None:
    assert buckets_for(peak, target, least) == expected


@given(st.text(), st.text(), st.integers(2, 200))
def test_buckets_are_numbers_of_one_length(key: str, row: str, buckets: int) -> None:
    number, _, rest = with_prefix(key, buckets).partition(";")
    assert rest == key
    assert 0 <= int(number) < buckets
    assert len(number) == len(str(buckets - 1))
    assert with_prefix(key, buckets) == with_prefix(key, buckets)
    before, _, number = with_suffix(key, buckets, row).rpartition(";")
    assert before == key
    assert 0 <= int(number) < buckets


def test_buckets_take_equal_shares() -> None:
    found = [with_prefix(f"{number:08d}", 4)[0] for number in range(10_000)]
    assert {each: found.count(each) for each in "0123"} == pytest.approx(dict.fromkeys("0123", 2_500), rel=0.1)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("2026-11-28", "k;2026"),
        ("Rental_4711", "k;Rental"),
        ("4711", None),
        ("", None),
        (None, None),
        ("-x", None),
        ("x" * 40, "k;" + "x" * 32),
    ],
)
def test_the_first_word_of_a_row_key_is_added(row: str | None, expected: str | None) -> None:
    assert concatenated("k", row) == expected


NEW_YEAR = 638_396_640_000_000_000
"""2024-01-01 in ticks, as .NET has it."""


@pytest.mark.parametrize(
    "key",
    [
        "638396640000000000",
        "0638396640000000000",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "2024-01-01T01:00:00+01:00",
        "1704067200",
        "1704067200000",
    ],
)
def test_times_are_reversed(key: str) -> None:
    assert reversed_ticks(key) == f"{3_155_378_975_999_999_999 - NEW_YEAR:019d}"


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)), st.integers(1, 10**6))
def test_later_times_come_first(time: datetime, seconds: int) -> None:
    earlier, later = (
        reversed_ticks(each.replace(tzinfo=UTC).isoformat()) for each in (time, time + timedelta(seconds=seconds))
    )
    assert earlier is not None
    assert later is not None
    assert later < earlier
    assert len(earlier) == 19


@pytest.mark.parametrize(
    "key",
    ["", "user04711", "00003599", "9999999999999999999", "0000000000", "2024-13-01", "2024-01-01Tx", "12345678901"],
)
def test_other_keys_are_no_times(key: str) -> None:
    assert reversed_ticks(key) is None


def sample_of(keys: list[str]) -> KeySample:
    sample = KeySample()
    for each in sorted(keys):
        sample.add(each)
    return sample


def test_a_coarser_key_has_the_rows_of_a_batch() -> None:
    sample = sample_of([f"user{number:05d}" for number in range(10_000)])
    assert coarser("user04711", sample) == ("user047", "11")


def test_keys_that_share_nothing_are_hashed() -> None:
    sample = sample_of([f"{number * 2_654_435_761 % 2**32:08x}" for number in range(10_000)])
    assert coarser("x", sample) is None
    assert 0 <= int(hashed("x", sample)) < 100
    assert coarser("9e3779b1", sample) == ("9e", "3779b1")
    constant = sample_of([f"user-{'x' * 64}{number:05d}" for number in range(10_001)])
    assert coarser(f"user-{'x' * 64}04711", constant) is None, "one partition for all of them is no remedy"
