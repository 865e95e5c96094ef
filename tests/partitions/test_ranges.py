"""The ranges of a table: whatever is split, moved and merged, each partition is in one range."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.ordinal import ordinal
from lazulite.partitions.ranges import Range, RangeMap

KEYS = st.text(st.sampled_from("ab\ue000\U00010000"), max_size=3)
STEPS = st.lists(st.tuples(st.sampled_from(["split", "move", "merge"]), KEYS, st.integers(0, 3)), max_size=20)


def changed(steps: list[tuple[str, str, int]]) -> RangeMap:
    """Return a map after steps, each a second after the one before; steps that cannot be made are left out."""
    found = RangeMap.of_new_table(0, 0)
    for now, (step, key, server) in enumerate(steps, 1):
        index = found.index(key)
        if step == "split" and key != found.ranges[index].start:
            found = found.split(index, key, server, now, 10)
        elif step == "move":
            found = found.move(index, server, now, 10)
        elif step == "merge" and found.end(index) is not None:
            found = found.merge(index, now, 10)
    return found


@given(STEPS, st.lists(KEYS, min_size=1))
def test_each_partition_is_in_the_range_between_its_bounds(steps: list[tuple[str, str, int]], keys: list[str]) -> None:
    found = changed(steps)
    assert found.ranges[0].start == ""
    for key in keys:
        end = found.end_of(key)
        assert ordinal(found.find(key).start) <= ordinal(key)
        assert end is None or ordinal(key) < ordinal(end)


def test_only_the_upper_half_of_a_split_moves() -> None:
    found = RangeMap.of_new_table(0, 0).split(0, "m", 1, 100, 10)
    assert [(each.start, each.server, each.moving_until, each.changed) for each in found.ranges] == [
        ("", 0, 0, 100),
        ("m", 1, 110, 100),
    ]
    assert (found.find("l").is_moving(100), found.find("m").is_moving(109.9)) == (False, True)
    assert not found.find("m").is_moving(110)
    same = RangeMap.of_new_table(0, 0).split(0, "m", 0, 100, 10)
    assert not same.find("m").is_moving(100)


def test_a_merge_moves_only_between_servers() -> None:
    apart = RangeMap((Range("", 0, 0, peak=1), Range("m", 1, 0, peak=2))).merge(0, 50, 10)
    together = RangeMap((Range("", 1, 0), Range("m", 1, 0))).merge(0, 50, 10)
    assert apart.ranges == (Range("", 0, 50, 60, peak=3),)
    assert together.ranges == (Range("", 1, 50),)


def test_what_does_not_change_keeps_its_version() -> None:
    found = RangeMap.of_new_table(0, 0)
    assert found.updated(found.ranges) is found
    assert found.move(0, 1, 0, 10).version == 1


@pytest.mark.parametrize(("index", "key"), [(0, ""), (0, "m"), (1, "m"), (1, "a")])
def test_a_range_is_split_only_inside(index: int, key: str) -> None:
    found = RangeMap((Range("", 0, 0), Range("m", 0, 0)))
    with pytest.raises(ValueError, match="inside"):
        found.split(index, key, 1, 0, 10)
