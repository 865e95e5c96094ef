"""What processes add: the sum of what each has counted."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.traffic.codec import decode, encode, join
from lazulite.traffic.counters import WIDTH
from lazulite.traffic.meter import HALF_LIFE_SECONDS, Meter, ResourceTraffic
from tests.traffic.test_meter import GET, ORDERS, PUT, START, Time, known

NOTES = st.lists(
    st.tuples(st.text("xyz\ud7ff\U00010000", max_size=2), st.sampled_from([GET, PUT]), st.integers(0, 90)), min_size=1
)


def counted(notes: list[tuple[str, tuple[int, ...], int]], time: Time, cuts: list[str]) -> Meter:
    meter = Meter(time)
    for cut in cuts:
        meter._traffic(ORDERS).ranges.divide(cut)
    for key, counts, seconds in notes:
        time.now += seconds
        meter.note(ORDERS, key, counts)
        meter.note_query(ORDERS, "point", 1, 1, ["City"])
    return meter


def sent(meter: Meter, time: Time) -> ResourceTraffic:
    items = list(encode(known(meter), meter.weight(), time.now))
    assert items[0]["time"] == time.now  # type: ignore[call-overload, index]  # a head is an object
    return decode(json.loads(json.dumps(items)))


def sums(traffic: ResourceTraffic) -> list[list[float]]:
    found = [[0.0] * WIDTH for _ in range(3)]
    for each in traffic.ranges.ranges:
        for total, ring in zip(found, each.history.rings, strict=True):
            for _, counts in ring.cells():
                for index, count in enumerate(counts):
                    total[index] += count
    return found


@given(NOTES, NOTES, st.lists(st.text("xyz", min_size=1, max_size=2)), st.lists(st.text("xyz", min_size=1, max_size=2)))
@settings(deadline=None)
def test_the_sum_of_two_processes(
    one: list[tuple[str, tuple[int, ...], int]],
    other: list[tuple[str, tuple[int, ...], int]],
    cuts: list[str],
    other_cuts: list[str],
) -> None:
    time, other_time = Time(), Time()
    meter, second = counted(one, time, cuts), counted(other, other_time, other_cuts)
    time.now = other_time.now = START + 20_000
    total, added = sent(meter, time), sent(second, other_time)
    join(total, added)
    expected = sums(known(meter)), sums(known(second))
    for found, *parts in zip(sums(total), *expected, strict=True):
        assert found == pytest.approx([a + b for a, b in zip(*parts, strict=True)])
    assert total.totals == [a + b for a, b in zip(known(meter).totals, known(second).totals, strict=True)]
    assert total.queries["point"].properties["City"] == pytest.approx(total.queries["point"].scanned)
    assert total.queries["point"].pages == pytest.approx(
        known(meter).queries["point"].pages / meter.weight() + known(second).queries["point"].pages / second.weight()
    )
    assert total.load == pytest.approx(total.hitters.total)
    for key in {each[0] for each in one + other}:
        weights = known(meter).hitters.lower(key) / meter.weight() + known(second).hitters.lower(key) / second.weight()
        assert total.hitters.lower(key) == pytest.approx(weights)


def test_processes_of_different_ages_weigh_the_same() -> None:
    time = Time()
    old = Meter(time)
    old.note(ORDERS, "p", PUT)
    time.now += 3 * HALF_LIFE_SECONDS
    new = Meter(time)
    new.note(ORDERS, "p", PUT)
    old.note(ORDERS, "p", PUT)
    total = sent(old, time)
    assert total.load == pytest.approx(1 + 1 / 8)
    join(total, sent(new, time))
    assert total.load == pytest.approx(2 + 1 / 8)
    assert (total.order.highest, total.order.lowest) == ("p", "p")
    assert total.order.written == pytest.approx(2 + 1 / 8)
