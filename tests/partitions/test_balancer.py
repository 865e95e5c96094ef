"""The balancer: what lasts is balanced, what passes is not, and nothing flaps."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.partitions.balancer import Balancer, Event
from lazulite.partitions.load import SAMPLES_MAX, RangeLoad, loads_of, median_key
from lazulite.partitions.map_codec import decode, encode
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.targets import CURRENT, Balancing, Targets

T = TableKey("acct", "orders", 1024)
OTHER = T._replace(space=1025)
TARGETS = replace(CURRENT, server_cap=1_000)
Requests = Callable[[int], Mapping[TableKey, Mapping[str, float]]]
"""From the number of a round to the operations per second of tables and their partitions."""


class Simulation:
    """Tables under a load, in rounds."""

    def __init__(self, targets: Targets = TARGETS, time_scale: float = 1) -> None:
        self.balancer = Balancer(targets, time_scale)
        self.maps: dict[TableKey, RangeMap] = {}
        self.loads: dict[TableKey, dict[str, RangeLoad]] = {}
        self.now = 0.0
        self.events: list[tuple[float, Event]] = []

    def run(self, seconds: float, requests: Requests) -> None:
        """Run rounds for so long."""
        step = self.balancer.round_seconds
        for number in range(round(seconds / step)):
            asked = requests(number)
            for table in asked:
                if table not in self.maps:
                    self.maps[table] = RangeMap.of_new_table(self.balancer.place(self.maps), self.now)
            for table, found in self.maps.items():
                self.loads[table] = loads_of(found, self.loads.get(table, {}))
            for table, partitions in asked.items():
                for _ in range(10):
                    for partition, rate in partitions.items():
                        self.loads[table][self.maps[table].find(partition).start].note(partition, rate * step / 10)
            self.now += step
            self.maps, events = self.balancer.balance(self.maps, self.loads, self.now, step)
            for load in (load for ranges in self.loads.values() for load in ranges.values()):
                load.next_round()
            self.events += [(self.now, each) for each in events]

    def actions(self) -> list[str]:
        return [each.action for _, each in self.events]


def spread(rate: float, count: int = 100) -> dict[str, float]:
    return {f"{number:03}": rate / count for number in range(count)}


def test_a_load_that_lasts_is_split_and_spread_over_servers() -> None:
    world = Simulation()
    world.run(285, lambda _: {T: spread(2_400)})
    assert world.events == []  # It is not decided yet.
    world.run(3_600, lambda _: {T: spread(2_400)})
    found = world.maps[T]
    assert world.events[0][1].action == "split"
    rates = [0.0] * 4
    for partition, rate in spread(2_400).items():
        rates[found.find(partition).server] += rate
    assert max(rates) <= 1_000
    assert min(rates) >= 300


def test_a_spike_is_ignored() -> None:
    world = Simulation()
    world.run(3_600, lambda number: {T: spread(3_000 if number % 20 < 15 else 0)})
    assert world.events == []


def test_a_hot_partition_cannot_be_split() -> None:
    world = Simulation()
    world.run(3_600, lambda _: {T: {"one": 5_000.0}})
    assert "split" not in world.actions()
    assert len(world.maps[T].ranges) == 1


def test_a_partition_that_is_hot_among_others_ends_almost_alone() -> None:
    world = Simulation()
    load = {**spread(600), "050": 5_000.0}
    world.run(14_400, lambda _: {T: load})
    found = world.maps[T]
    index = found.index("050")
    assert found.ranges[index].start == "050"
    assert (found.end(index) or "") < "060"


def test_ranges_at_rest_merge_after_a_while_and_do_not_flap() -> None:
    world = Simulation()
    world.run(3_600, lambda _: {T: spread(2_400)})
    count = len(world.maps[T].ranges)
    assert count > 3
    world.run(585, lambda _: {T: {}})
    assert len(world.maps[T].ranges) == count
    world.run(36_000, lambda _: {T: {}})
    assert len(world.maps[T].ranges) == 1
    # A load that comes every half an hour finds its ranges again.
    world = Simulation()
    world.run(3_600, lambda _: {T: spread(2_400)})
    before = len(world.events)
    world.run(36_000, lambda number: {T: spread(2_400) if number % 120 < 60 else {}})
    assert len([each for each in world.actions()[before:] if each == "split"]) <= 3


def test_a_busy_server_gives_a_range_to_an_idle_one() -> None:
    world = Simulation()
    world.maps = {
        T: RangeMap((Range("", 0, 0),)),
        OTHER: RangeMap((Range("", 0, 0),)),
    }
    world.run(600, lambda _: {T: spread(400), OTHER: spread(400)})
    assert world.actions() == ["move"]
    assert {found.ranges[0].server for found in world.maps.values()} != {0}
    assert all(not found.ranges[0].is_moving(world.now + 15) for found in world.maps.values())


def test_a_process_that_takes_over_watches_servers_anew() -> None:
    """Another process balanced for an hour, and may have moved ranges meanwhile."""
    world = Simulation()
    world.maps = {T: RangeMap((Range("", 0, 0),)), OTHER: RangeMap((Range("", 0, 0),))}
    busy = {T: spread(400), OTHER: spread(400)}
    world.run(150, lambda _: busy)
    world.now += 3_600
    world.run(285, lambda _: busy)
    assert world.actions() == []
    world.run(60, lambda _: busy)
    assert world.actions() == ["move"]


def test_the_time_scale_divides_times_and_no_rate() -> None:
    slow, fast = Simulation(), Simulation(time_scale=64)
    slow.run(3_600, lambda _: {T: spread(2_400)})
    fast.run(3_600 / 64, lambda _: {T: spread(2_400)})
    assert slow.actions() == fast.actions() != []
    assert [at / 64 for at, _ in slow.events] == pytest.approx([at for at, _ in fast.events], abs=15 / 64)
    assert fast.balancer.move_seconds == 15 / 64


def test_the_high_watermark_ends_splits() -> None:
    few = replace(TARGETS, balancing=Balancing(servers=2, ranges_low=1, ranges_high=2))
    world = Simulation(few)
    world.run(20_000, lambda _: {T: spread(50_000)})
    assert len(world.maps[T].ranges) == 4


def test_a_large_range_is_split_at_rest() -> None:
    balancer = Balancer(TARGETS)
    load = RangeLoad()
    for number in range(10):
        load.note(str(number), 1, 2 * 1024**3)
    maps, events = balancer.balance({T: RangeMap.of_new_table(0, 0)}, {T: {"": load}}, 15, 15)
    assert [each.start for each in maps[T].ranges] == ["", "5"]
    assert [each.action for each in events] == ["split"]


def test_new_tables_are_placed_evenly() -> None:
    balancer, maps = Balancer(TARGETS), dict[TableKey, RangeMap]()
    for number in range(8):
        maps[T._replace(space=number)] = RangeMap.of_new_table(balancer.place(maps), 0)
    assert sorted(found.ranges[0].server for found in maps.values()) == [0, 0, 1, 1, 2, 2, 3, 3]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([T, OTHER]),
            st.dictionaries(st.text(max_size=2), st.floats(0, 5_000), max_size=5),
        ),
        max_size=40,
    )
)
def test_any_load_leaves_maps_whole(rounds: list[dict[TableKey, dict[str, float]]]) -> None:
    short = Balancing(decide_after_seconds=15, cold_after_seconds=30)
    world = Simulation(replace(TARGETS, balancing=short))
    for asked in rounds:
        world.run(15, partial(_always, asked))
        for found in world.maps.values():
            assert decode(encode("t", found)) == ("t", found)
            assert sum(each.is_moving(world.now) for each in found.ranges) <= 1


def _always(asked: Mapping[TableKey, Mapping[str, float]], _: int) -> Mapping[TableKey, Mapping[str, float]]:
    return asked


def test_samples_stand_for_costs() -> None:
    load = RangeLoad()
    for _ in range(2):
        load.next_round()
        for _ in range(100):
            load.note("light", 1)
            load.note("heavy", 9)
    assert len(load.samples) == SAMPLES_MAX
    assert 6 <= load.samples.count("light") <= 20
    assert load.operations == pytest.approx(1_000)
    other = RangeLoad()
    other.note("other", 5, 7)
    load.add(other)
    assert load.samples[-1] == "other"
    assert load.operations == pytest.approx(1_005)
    assert load.bytes_written == 7
    load.next_round()
    assert load.operations == 0
    assert len(load.samples) == SAMPLES_MAX
    load.next_round()
    assert not load.samples
    load.note("k" * 1_000, 1)
    assert list(load.samples) == ["k" * 64]


@pytest.mark.parametrize(
    ("samples", "start", "key"),
    [
        ("", "", None),
        ("aaa", "", None),
        ("aab", "", "b"),
        ("aaab", "a", "b"),
        ("abbb", "a", "b"),
        ("abcd", "", "c"),
        ("\ue000\U00010000", "", "\ue000"),
    ],
)
def test_the_median_key_halves_a_load(samples: str, start: str, key: str | None) -> None:
    assert median_key(samples, start) == key
