"""Live partitions: rounds on a clock that the test moves, moves that end, and several tables in bounded memory."""

from collections.abc import Coroutine
from dataclasses import replace
from typing import TypeVar

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.partitions.gate import Decision, Limit
from lazulite.partitions.live import Charge, LivePartitions
from lazulite.partitions.map_store import TABLES_MAX, Balance, Maps, ProcessMaps, TableLoads
from lazulite.partitions.ranges import TableKey
from lazulite.partitions.targets import CURRENT, OFF, STUDY_2010, Targets, targets_from

T = TypeVar("T")
TABLE = TableKey("acct", "orders", 1024)
SMALL = replace(CURRENT, server_cap=100, timeout_share=0)


class World:
    """Live partitions in a clock that stands still, and requests to them."""

    def __init__(self, targets: Targets | None = SMALL, maps: ProcessMaps | None = None, time_scale: float = 1) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []
        self.live = LivePartitions(targets, lambda: self.now, self._sleep, maps=maps, time_scale=time_scale)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def ask(
        self, partition: str | None, cost: float = 1, *, writes: bool = False, space: int = TABLE.space
    ) -> Decision:
        charge = Charge("acct", "table", "orders", partition, space=space, cost=cost, writes=writes)
        return done(self.live.admit(charge))

    def load(self, seconds: int, rate: int) -> None:
        """Spread a load over partitions for a while."""
        for second in range(seconds):
            self.now += 1
            for number in range(5):
                self.ask(f"{(second * 7 + number * 13) % 100:02}", rate / 5)


def done(work: Coroutine[object, None, T]) -> T:
    """Return the result of what never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("it waits")


def test_a_range_splits_after_its_time_and_its_half_is_refused_while_it_moves() -> None:
    world = World()
    world.load(300, 60)
    assert [each.range.start for each in world.live.states(TABLE)] == [""]
    world.load(30, 60)
    lower, upper = world.live.states(TABLE)
    moved = world.live.events[0]
    assert moved[1].action == "split"
    assert (lower.refused, upper.range.server == lower.range.server) == (0, False)
    world.now = moved[0] + 14.9
    refusal = world.ask("99")
    assert refusal.limit is Limit.MOVE
    assert refusal.error is not None
    assert world.ask("00").error is None
    world.now = moved[0] + 15
    assert world.ask("99").error is None
    assert world.live.states(TABLE)[0].refused == 0
    assert world.live.outcomes[Limit.MOVE, True] == world.live.states(TABLE)[1].refused > 0


def test_rounds_that_were_due_are_made_up_for() -> None:
    world = World()
    world.load(360, 60)
    assert len(world.live.states(TABLE)) > 1
    for _ in range(2):
        world.now += 3_600
        world.ask("00")
    assert len(world.live.states(TABLE)) == 1
    merge = world.live.events[-1]
    assert merge[1].action == "merge"
    assert 1_001_000 < merge[0] < 1_007_000


def test_the_time_scale_divides_times_and_no_rates() -> None:
    world = World(time_scale=10)
    world.load(33, 90)
    assert len(world.live.states(TABLE)) == 2
    assert 1_000_030 <= world.live.events[0][0] <= 1_000_033
    slow = World(time_scale=10)
    slow.load(60, 40)
    assert len(slow.live.states(TABLE)) == 1


def test_without_targets_all_pass_and_nothing_splits() -> None:
    world = World(None)
    world.load(400, 200)
    assert len(world.live.states(TABLE)) == 1
    assert not world.live.outcomes
    world.live.use(SMALL)
    assert world.ask("00", 2_000).error is None
    assert world.ask("00", 2_000).error is not None
    world.live.use(None)
    assert world.ask("00", 2_000).error is None


def test_requests_wait_for_their_turn() -> None:
    world = World(STUDY_2010)
    assert world.ask("p") == Decision(Limit.PARTITION, world.slept[0])
    assert world.ask("p", 100).delay_seconds == pytest.approx(0.001 + 0.001 + 99 * 0.00039)
    assert world.slept == pytest.approx([0.001, 0.04061])
    assert world.ask(None).delay_seconds == 0


def test_a_time_out_of_a_read_is_never_made() -> None:
    world = World(replace(CURRENT, timeout_share=1))
    world.ask("p", 2_000)
    writes = [world.ask("p", writes=True) for _ in range(200)]
    assert 70 <= sum(each.is_made for each in writes) <= 130
    reads = [world.ask("p") for _ in range(200)]
    assert {each.is_made for each in reads} == {False}
    assert {each.error.code for each in reads if each.error is not None} == {"OperationTimedOut"}


def test_scanned_rows_are_owed_and_count_as_load() -> None:
    world = World()
    charge = Charge("acct", "table", "orders", None, "5", 1024)
    world.live.owe(charge, 250)
    assert world.ask("9").limit is Limit.SERVER
    world.now += 3
    assert world.ask("9").error is None


def test_queues_and_blobs_have_rates_of_their_own_and_no_ranges() -> None:
    world = World(replace(CURRENT, timeout_share=0))
    queue = Charge("acct", "queue", "jobs", "")
    blob = Charge("acct", "blob", "files", "a.txt", size=60 * 1024 * 1024)

    def passed(charge: Charge, count: int) -> int:
        return sum(done(world.live.admit(charge)).error is None for _ in range(count))

    assert passed(queue, 2_100) == 2_000
    assert passed(blob._replace(size=0), 600) == 500
    world.now += 1
    assert passed(blob, 2) == 1
    assert not world.live.maps


def test_the_tables_that_are_known_are_bounded_and_idle_ones_are_forgotten() -> None:
    world = World()
    for space in range(TABLES_MAX + 10):
        world.ask("p", space=space)
    assert len(world.live.maps) == TABLES_MAX
    (beyond,) = world.live.map_of(TABLE._replace(space=TABLES_MAX + 5)).ranges
    assert beyond.server == (TABLES_MAX + 5) % world.live.servers
    world.now += 1_200
    world.ask("p", space=1)
    assert len(world.live.maps) == 1


class Counted(ProcessMaps):
    """A store that counts turns."""

    turns = 0

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:
        self.turns += 1
        return await ProcessMaps.take_turn(self, maps, loads, now, seconds, balance)


def test_a_request_after_a_rest_makes_one_turn_of_all_rounds() -> None:
    """The ranges merge at the times that were due, and the store is asked once."""
    store = Counted()
    world = World(maps=store)
    world.load(500, 60)
    assert len(world.live.states(TABLE)) > 1
    for _ in range(2):
        before, rested = store.turns, world.now
        world.now += 3_600
        world.ask("00")
        assert store.turns == before + 1
    (merged,) = [at for at, event in world.live.events if event.action == "merge"]
    assert rested + 600 < merged < rested + 3_000
    assert [(each.range.start, each.rate) for each in world.live.states(TABLE)] == [("", 0)]


def test_the_keys_of_a_load_before_a_rest_are_forgotten() -> None:
    """A later load is split at a median of its own keys."""
    world = World()
    world.load(30, 60)
    world.now += 60
    world.ask("00")
    assert set(world.live._loads[TABLE][""].samples) == {"00"}


class Away(ProcessMaps):
    """A store that cannot be reached now and then."""

    is_away = False

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:
        if self.is_away:
            raise EngineUnavailableError("away")
        return await ProcessMaps.take_turn(self, maps, loads, now, seconds, balance)


def test_a_store_that_is_away_delays_the_rounds() -> None:
    store = Away()
    world = World(maps=store)
    store.is_away = True
    world.load(400, 60)
    assert len(world.live.states(TABLE)) == 1
    store.is_away = False
    world.load(330, 60)
    assert len(world.live.states(TABLE)) == 2
    assert max(each.rate for each in world.live.states(TABLE)) <= 61


def test_a_clock_that_is_set_refuses_nothing() -> None:
    world = World()
    world.load(330, 60)
    assert len(world.live.maps[TABLE].ranges) == 2
    world.live.outcomes.clear()
    world.now -= 100_000
    world.load(40, 20)
    world.now += 10_000_000
    world.load(40, 20)
    assert not world.live.outcomes


def test_off_is_no_targets() -> None:
    assert OFF not in {each.name for each in (CURRENT, STUDY_2010)}
    with pytest.raises(ValueError, match="no targets"):
        targets_from(OFF)
