"""Maps as bytes: each is read back, and damage is an error and nothing else."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.engine.ordinal import ordinal
from lazulite.partitions.map_codec import BYTES_MAX, MapError, decode, encode
from lazulite.partitions.ranges import Range, RangeMap
from lazulite.partitions.targets import SERVERS_MAX

from .test_ranges import STEPS, changed

WHOLE = json.loads(encode("orders", changed([("split", "m", 1), ("move", "a", 2)])))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def document(*rows: object, version: object = 0, form: object = 1, table: object = "orders") -> bytes:
    return json.dumps({"format": form, "table": table, "version": version, "ranges": rows}).encode()


def row(start: object = "", server: object = 0, **others: object) -> list[object]:
    return [start, server, *({"changed": 0, "moving": 0, "hot": None, "cold": None, "peak": 0} | others).values()]


@given(STEPS)
def test_a_map_is_read_back(steps: list[tuple[str, str, int]]) -> None:
    found = changed(steps)
    assert decode(encode("orders", found)) == ("orders", found)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_map_or_an_error(given_bytes: bytes) -> None:
    with pytest.raises(MapError):
        decode(given_bytes)


@given(st.data())
def test_a_damaged_map_keeps_the_invariants_or_is_an_error(data: st.DataObject) -> None:
    """One value of a map is replaced, at any depth."""
    damaged = json.loads(json.dumps(WHOLE))
    place = damaged
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], (dict, list)) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(VALUES)
    try:
        table, found = decode(json.dumps(damaged).encode("utf-8", "surrogatepass"))
    except MapError:
        return
    starts = [ordinal(each.start) for each in found.ranges]
    assert not starts[0]
    assert all(left < right for left, right in pairwise(starts))
    assert decode(encode(table, found)) == (table, found)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"format": 2}',
        document(row(), form=2),
        document(),
        document(row(), table=1),
        document(row(), table="\ud800"),
        document(*[row()] * 10_000),
        document(row("a")),
        document(row(), row("b"), row("a")),
        document(row(), row()),
        document(row(), version="x"),
        document(row(), version=-1),
        document(row(), version=True),
        document(row(1)),
        document(row(), row("\ud800")),
        document(row(), row("k" * 1025)),
        document(row(server=-1)),
        document(row(server=SERVERS_MAX)),
        document(row(server=0.5)),
        document(row(changed=None)),
        document(row(changed=float("nan"))),
        document(row(moving=float("inf"))),
        document(row(moving="1")),
        document(row(hot=10**400)),
        document(row(peak=-1)),
        document([*row(), 0]),
        document(row()[:-1]),
        document(row()).replace(b" 0,", b" 1e999,", 1),
        document(row()) + b" " * BYTES_MAX,
    ],
)
def test_damage_is_an_error(damaged: bytes) -> None:
    with pytest.raises(MapError):
        decode(damaged)


@example("\ue000")
@given(st.text(min_size=1, max_size=1024))
def test_any_key_is_a_boundary(key: str) -> None:
    found = RangeMap((Range("", 0, 1.5), Range(key, 63, 2.25, 3.5, None, 4, 0.125)), 7)
    assert decode(encode("orders", found)) == ("orders", found)


def test_a_map_that_is_too_large_is_not_stored() -> None:
    ranges = (Range("", 0, 0), *(Range(f"{number:04}" + "k" * 1020, 0, 0) for number in range(1100)))
    with pytest.raises(MapError, match="of at most"):
        encode("orders", RangeMap(ranges))
