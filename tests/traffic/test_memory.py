"""The memory of a meter, whatever the numbers of tables and partitions."""

import gc
import random
import sys
from array import array
from collections import deque
from collections.abc import Iterator

import pytest

from lazulite.traffic.counters import REQUESTS
from lazulite.traffic.meter import CELLS_MAX, PARTITIONS_MAX, RANGES_MAX, RESOURCES_MAX, Meter, Resource
from tests.traffic.test_meter import GET, PUT, Time, known


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


def size(root: object) -> int:
    """Return the bytes of all objects that an object has, each once; classes and functions are left out."""
    seen: set[int] = set()
    todo, total = [root], 0
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, (type, Time)):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        todo.extend(_parts(each))
    return total


def _parts(each: object) -> Iterator[object]:
    if isinstance(each, dict):
        yield from each.keys()
        yield from each.values()
    elif isinstance(each, (list, tuple, set, deque)):
        yield from each
    elif not isinstance(each, (str, bytes, array, int, float)):
        yield from gc.get_referents(each)


def counts_of(meter: Meter) -> tuple[int, int, int]:
    found = [known(meter, each) for each in meter.resources()]
    ranges = [part for each in found for part in each.ranges.ranges]
    return len(ranges), sum(len(each.history) for each in ranges), sum(len(each.hitters) for each in found)


def test_a_million_partitions_in_a_hundred_tables_take_less_than_20_mb(time: Time) -> None:
    meter, chance = Meter(time), random.Random(1)
    tables = [Resource("account", "table", f"Table{number}") for number in range(100)]
    for number in range(1_000_000):
        table = tables[max(number % 200 - 100, 0)]  # The first table has half of all.
        meter.note(table, f"{chance.getrandbits(80):020x}", GET if number % 3 else PUT)
        if number % 2_000 == 0:
            time.now += 600  # 83 hours in all.
    meter.balance(time.now)
    ranges, cells, partitions = counts_of(meter)
    assert ranges <= RANGES_MAX
    assert cells <= CELLS_MAX
    assert partitions <= 2 * PARTITIONS_MAX
    assert ranges > RANGES_MAX / 4
    assert len(known(meter, tables[0]).ranges) > 50, "busy tables have more"
    assert size(meter) <= 20e6
    assert sum(known(meter, each).totals[REQUESTS] for each in tables) == pytest.approx(1_000_000)


def test_a_flood_of_tables_is_bounded_too(time: Time) -> None:
    meter = Meter(time)
    for number in range(3_000):
        meter.note(Resource("account", "table", f"T{number}"), "p" * 500, PUT)
    assert len(meter.resources()) <= RESOURCES_MAX
    assert size(meter) <= 20e6
