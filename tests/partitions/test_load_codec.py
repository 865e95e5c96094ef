"""Loads as bytes: what a process tells the one that balances."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.partitions.load import RangeLoad
from lazulite.partitions.load_codec import BYTES_MAX, SAMPLES_MAX, LoadError, added, continued, decode, encode
from lazulite.partitions.ranges import TableKey

ORDERS = TableKey("acct", "orders", 1024)
KEYS = st.text(max_size=5)
LOADS = st.dictionaries(
    st.builds(TableKey, KEYS, KEYS, st.integers(0, 2**62)),
    st.dictionaries(
        KEYS, st.tuples(st.floats(0, 1e9), st.integers(-(2**40), 2**40), st.lists(KEYS, max_size=200)), min_size=1
    ),
    max_size=3,
)


def load(operations: float, size: int = 0, *samples: str) -> RangeLoad:
    found = RangeLoad(operations, size)
    found.samples.extend(samples)
    return found


@given(LOADS)
def test_loads_are_read_back_with_their_latest_samples(
    given_loads: dict[TableKey, dict[str, tuple[float, int, list[str]]]],
) -> None:
    loads = {
        table: {start: load(count, size, *samples) for start, (count, size, samples) in ranges.items()}
        for table, ranges in given_loads.items()
    }
    found = decode(encode(loads))
    assert found.keys() == loads.keys()
    for table, ranges in loads.items():
        for start, each in ranges.items():
            told = found[table][start]
            assert (told.operations, told.bytes_written) == (each.operations, each.bytes_written)
            assert list(told.samples) == list(each.samples)[-SAMPLES_MAX:]


def test_what_does_not_fit_are_the_ranges_with_the_least_load() -> None:
    loads = {ORDERS: {f"{number:05}" + "k" * 500: load(number) for number in range(5_000)}}
    document = encode(loads)
    assert len(document) <= BYTES_MAX
    found = decode(document)[ORDERS]
    assert len(found) > 1_000
    assert min(each.operations for each in found.values()) == 5_000 - len(found)


@given(st.binary(max_size=100))
def test_any_bytes_are_loads_or_an_error(document: bytes) -> None:
    try:
        decode(document)
    except LoadError:
        return
    assert not document.strip(b"\r\n")


@pytest.mark.parametrize(
    "row",
    [
        ["acct", "orders", 1024, "", 1, 0],
        ["acct", "orders", 1024, "", 1, 0, [], 0],
        ["acct", "orders", 1024, "", "1", 0, []],
        ["acct", "orders", 1024, "", True, 0, []],
        ["acct", "orders", 1024, "", float("inf"), 0, []],
        ["acct", "orders", 1024, "", float("nan"), 0, []],
        ["acct", "orders", 1024, "", 10**400, 0, []],
        ["acct", "orders", 1024, "\ud800", 1, 0, []],
        ["acct", "orders", 1024, "", 1, 0, [1]],
        ["acct", "orders", 1024, "", 1, 0, 1],
        ["acct", 1, 1024, "", 1, 0, []],
        ["acct", "orders", "x", "", 1, 0, []],
        ["acct", "orders", None, "", 1, 0, []],
        ["acct", "orders", 1024, [], 1, 0, []],
    ],
)
def test_damage_is_an_error(row: list[object]) -> None:
    with pytest.raises(LoadError):
        decode(json.dumps(row).encode())


def test_what_is_too_long_or_too_deep_is_an_error() -> None:
    for document in (b"\n" * (BYTES_MAX + 1), b"[" * 100_000):
        with pytest.raises(LoadError):
            decode(document)


def test_loads_of_two_processes_and_of_two_rounds() -> None:
    one, other = {ORDERS: {"": load(1, 10, "a")}}, {ORDERS: {"": load(2, 20, "b"), "m": load(4, 40)}}
    for together, size in ((added(one, other), 30), (continued(one, other), 20)):
        found = together[ORDERS]
        assert (found[""].operations, found[""].bytes_written, list(found[""].samples)) == (3, size, ["a", "b"])
        assert (found["m"].operations, found["m"].bytes_written) == (4, 40)
    assert one == {ORDERS: {"": load(1, 10, "a")}}
    assert continued(one, {})[ORDERS][""].operations == 1
