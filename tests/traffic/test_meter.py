"""The meter: sums are exact, times are right, and memory is bounded."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.traffic import meter as meter_module
from lazulite.traffic.counters import BYTES_OUT, MINUTES, READ, REQUESTS, SCANNED, WRITTEN, cost
from lazulite.traffic.meter import (
    HALF_LIFE_SECONDS,
    PENDING_MAX,
    SAMPLES_MIN,
    SAMPLES_PER_SECOND,
    Meter,
    Noted,
    Resource,
    ResourceTraffic,
    samples_of,
    shortened,
)

START = 1_700_000_040.0
"""The first second of a minute."""
ORDERS = Resource("a", "table", "Orders")
GET, PUT = (1, 0, 0, 0, 100, 1, 0), (0, 0, 1, 200, 0, 1, 0)


class Time:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


def known(meter: Meter, resource: Resource = ORDERS) -> ResourceTraffic:
    found = meter.traffic(resource)
    assert found is not None
    return found


def minutes(traffic: ResourceTraffic, counter: int) -> dict[int, float]:
    """Return a counter by minutes since the start."""
    found: Counter[int] = Counter()
    for each in traffic.ranges.ranges:
        for column, counts in each.history.rings[0].cells():
            found[column - int(START // MINUTES.seconds)] += int(counts[counter])
    return {column: count for column, count in found.items() if count}


NOTES = st.lists(
    st.tuples(st.sampled_from("abc"), st.text("xyz", max_size=3), st.sampled_from([GET, PUT]), st.integers(0, 200))
)


@given(NOTES)
@settings(deadline=None)
def test_sums_are_exact(notes: list[tuple[str, str, tuple[int, ...], int]]) -> None:
    time = Time()
    meter = Meter(time)
    expected: dict[tuple[str, int], Counter[int]] = {}
    for name, key, counts, seconds in notes:
        time.now += seconds
        meter.note(Resource("a", "table", name), key, counts)
        for index, count in enumerate(counts):
            expected.setdefault((name, index), Counter())[int((time.now - START) // 60)] += count
    for (name, index), by_minute in expected.items():
        traffic = known(meter, Resource("a", "table", name))
        assert traffic.totals[index] == by_minute.total()
        # A note within a second of an earlier one counts for the minute of that one.
        assert abs(sum(minutes(traffic, index).values()) - by_minute.total()) < 1 or time.now - START > 6 * 3600


def test_a_request_counts_for_its_minute(time: Time) -> None:
    meter = Meter(time)
    meter.note(ORDERS, "p", GET)
    time.now += 3600
    meter.note(ORDERS, "p", GET)
    meter.note(ORDERS, "p", PUT)
    time.now += 120
    meter.note(ORDERS, "p", GET)
    assert minutes(known(meter), READ) == {0: 1, 60: 1, 62: 1}
    assert minutes(known(meter), WRITTEN) == {60: 1}
    assert known(meter).hitters.lower("p") > 0


def test_older_traffic_counts_less(time: Time) -> None:
    meter = Meter(time)
    for _ in range(100):
        meter.note(ORDERS, "old", GET)
    time.now += HALF_LIFE_SECONDS
    for _ in range(50):
        meter.note(ORDERS, "new", GET)
    hitters = known(meter).hitters
    assert hitters.lower("old") == pytest.approx(hitters.lower("new"))
    assert hitters.lower("new") / meter.weight() == pytest.approx(50)


@pytest.mark.parametrize("half_lives", [10, 1_000, 1_000_000])
def test_a_weight_stays_finite(time: Time, half_lives: int) -> None:
    meter = Meter(time)
    meter.note(ORDERS, "p", GET)
    time.now += HALF_LIFE_SECONDS * half_lives
    meter.note(ORDERS, "p", GET)
    assert known(meter).hitters.lower("p") / meter.weight() == pytest.approx(1, rel=0.01)
    assert meter.weight() < 2.0**300


def test_a_clock_that_goes_back_loses_nothing(time: Time) -> None:
    meter = Meter(time)
    meter.note(ORDERS, "p", GET)
    time.now -= 7200
    meter.note(ORDERS, "p", GET)
    assert known(meter).totals[READ] == 2
    assert sum(minutes(known(meter), READ).values()) == 2


def test_a_hot_range_is_divided_and_its_partition_is_named(time: Time) -> None:
    meter, chance = Meter(time), random.Random(1)
    for _ in range(20_000):
        meter.note(ORDERS, f"{chance.randrange(500):03d}", GET)
        time.now += 0.01
    ranges = known(meter).ranges
    assert len(ranges) > 50
    loads = sorted(each.load for each in ranges.ranges)
    assert loads[-1] < 20 * loads[len(loads) // 2]
    for _ in range(10_000):
        meter.note(ORDERS, "250", GET)
        time.now += 0.01
    (first, _), *_ = known(meter).hitters.top(1)
    assert first == "250"
    hottest = max(known(meter).ranges.ranges, key=lambda each: each.load)
    assert hottest.start <= "250"


def test_a_scan_is_spread_over_its_ranges(time: Time) -> None:
    meter = Meter(time)
    traffic = meter._traffic(ORDERS)
    traffic.ranges.divide("m")
    meter.note(ORDERS, ("a", "z"), (0, 10, 0, 0, 0, 1, 0))
    meter.note_query(ORDERS, "scan", 10, 1)
    reads = [next(iter(each.history.rings[0].cells()))[1][SCANNED] for each in known(meter).ranges.ranges]
    assert reads == [5, 5]
    assert len(known(meter).hitters) == 0, "a scan is no partition's"
    assert known(meter).queries["scan"].scanned == pytest.approx(10)
    assert known(meter).queries["scan"].pages == pytest.approx(1)


def test_the_order_of_writes_is_known(time: Time) -> None:
    meter = Meter(time)
    for number in range(100):
        meter.note(ORDERS, f"{number:03d}", PUT)
    order = known(meter).order
    assert (order.written, order.above, order.rises, order.falls) == (100, 100, 99, 0)
    assert order.below == 1
    for number in range(100):
        meter.note(ORDERS, f"-{99 - number:03d}", PUT)
    order = known(meter).order
    assert (order.written, order.above, order.below, order.falls) == (200, 100, 101, 100)


def test_many_requests_are_sampled_and_few_are_not(time: Time) -> None:
    meter = Meter(time)
    for _ in range(5_000):
        meter.note(ORDERS, "p", GET)
        time.now += 0.001_1
    assert known(meter).totals[REQUESTS] == 5_000
    before = len(known(meter).ranges.find("p").history.rings[0])
    for number in range(400_000):
        meter.note(ORDERS, f"{number % 100:02d}", GET if number % 2 else PUT)
        time.now += 0.000_05
    totals = known(meter).totals
    assert before == 1
    assert totals[REQUESTS] == pytest.approx(405_000), "the cost of what is sampled is exact"
    # Within six standard deviations, which chance exceeds once in a billion.
    assert totals[READ] == pytest.approx(205_000, abs=6 * (400_000 * 20) ** 0.5)
    assert totals[WRITTEN] + totals[READ] == pytest.approx(405_000)
    time.now += 100
    for _ in range(100):
        meter.note(ORDERS, "p", GET)
        time.now += 1
    assert known(meter).totals[REQUESTS] == pytest.approx(405_100)


def test_a_burst_is_counted_and_what_comes_behind_is_sampled(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def spy(noted: Sequence[Noted], count: int) -> list[Noted]:
        counted.append(count)
        return samples_of(noted, count)

    monkeypatch.setattr(meter_module, "samples_of", spy)
    meter = Meter(time)
    for number in range(SAMPLES_PER_SECOND + 10 * PENDING_MAX):
        meter.note(ORDERS, str(number), GET)
    meter.flush()
    assert 10 <= len(counted) <= 11
    assert set(counted[1:]) == {SAMPLES_MIN}
    time.now += 0.1
    for number in range(PENDING_MAX):
        meter.note(ORDERS, str(number), GET)
    meter.flush()
    assert counted[-1] == pytest.approx(SAMPLES_PER_SECOND / 10, abs=1)


@given(
    st.lists(st.sampled_from([GET, PUT, (0, 0, 100, 5_000, 0, 1, 0), (0, 0, 0, 0, 70, 0, 0)]), min_size=2, max_size=60),
    st.integers(1, 60),
)
def test_samples_stand_for_all(counts: list[tuple[int, ...]], count: int) -> None:
    noted: list[Noted] = [(ORDERS, str(index), each) for index, each in enumerate(counts)]
    samples = [(int(str(key)), each) for _, key, each in samples_of(noted, count)]
    assert len(samples) <= count
    assert [index for index, _ in samples] == sorted({index for index, _ in samples})
    weight = sum(cost(each) or 1 for each in counts)
    assert sum(cost(each) or each[BYTES_OUT] / 70 for _, each in samples) == pytest.approx(weight)
    part = weight / count
    for index, each in samples:
        whole = cost(counts[index]) or 1
        # A request has as many samples as there are parts in it, and at most one more at each end.
        assert each[REQUESTS] <= counts[index][REQUESTS] * (whole + 2 * part) / whole + 1e-9
    for index, each in enumerate(counts):
        if (cost(each) or 1) >= 2 * part:
            assert index in dict(samples), "what costs much is never left out"


def test_samples_are_unbiased() -> None:
    batch, total = (0, 0, 100, 5_000, 0, 1, 0), Counter[int]()
    noted: list[Noted] = [(ORDERS, str(index), batch if index % 10 == 0 else GET) for index in range(100)]
    for _ in range(2_000):
        for _, _, counts in samples_of(noted, 20):
            total.update(dict(enumerate(counts)))
    assert total[WRITTEN] / 2_000 == pytest.approx(1_000, rel=0.01)
    assert total[READ] / 2_000 == pytest.approx(90, rel=0.1)
    assert total[REQUESTS] / 2_000 == pytest.approx(100, rel=0.1)


def test_a_refusal_is_counted(time: Time) -> None:
    meter = Meter(time)
    meter.note(ORDERS, "p", (0, 0, 0, 0, 0, 1, 1))
    assert known(meter).totals == [0, 0, 0, 0, 0, 1, 1]


def test_the_busiest_resources_are_first_and_the_others_are_forgotten(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_module, "RESOURCES_MAX", 20)
    meter = Meter(time)
    for number in range(200):
        for _ in range(5 if number == 3 else 1):
            meter.note(Resource("a", "table", f"T{number}"), "p", GET)
        meter.flush()
    found = meter.resources()
    assert len(found) <= 20
    assert found[0].name == "T3"
    kept = sum(known(meter, each).totals[REQUESTS] for each in found)
    assert kept + meter.forgotten[REQUESTS] == 204
    assert meter.totals()["requests"] == 204, "what is forgotten stays counted"


def test_a_long_key_is_shortened_and_stays_different() -> None:
    assert shortened("k" * 64) == "k" * 64
    one, other = shortened("k" * 512), shortened("k" * 511)
    assert one != other
    assert len(one) == len(other) == 64
    assert shortened("\ud800" * 100) != shortened("\ud801" * 100)
