"""No increment is lost or doubled, whatever is lost; an outcome that cannot be known is reported as unknown."""

import math
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Conflict, Exists, OutcomeUnknown, Policy, Unavailable, WriteIds
from lazulite_patterns.outcomes.ring import RING
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.table.session import Session
from lazulite_patterns_simulation import Fault, FaultAt, Simulation, World, every_fault, explore, explorer
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "counter")
COUNTER = Session[Bag]("t", Bags(), Policy())


def start(failpoints: "FaultAt | Faults | None" = None, session: Session[Bag] = COUNTER) -> Simulation:
    simulation = Simulation()
    simulation.run(session.insert(Bag(PartitionKey="p", RowKey="counter", Count=0)))
    if failpoints is not None:
        simulation.runtime.failpoints = failpoints
    return simulation


def count(simulation: Simulation) -> int:
    stored = simulation.world.entity("t", KEY)
    assert stored is not None
    return int(str(stored.properties["Count"]))


def increment(simulation: Simulation, session: Session[Bag] = COUNTER) -> None:
    def change(bag: Bag) -> Bag:
        return Bag({**bag, "Count": int(str(bag["Count"])) + 1})

    simulation.run(session.update(KEY, change, 8, "rebase"))


class Faults:
    """Random faults at each effect; sometimes a rival increments the counter in between."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.simulation: Simulation | None = None
        self.rivals_count = 0

    def before(self, effect: Effect[object]) -> None:
        if self.random.random() < 0.2:
            self.rival()
        if self.random.random() < 0.15:
            raise ResultUnknown("not sent")

    def after(self, effect: Effect[object]) -> None:
        if self.random.random() < 0.1:
            self.rival()
        if self.random.random() < 0.15:
            raise ResultUnknown("lost")

    def rival(self) -> None:
        assert self.simulation is not None
        self.simulation.runtime.failpoints = FaultAt(-1, Fault.BUSY)
        increment(self.simulation)
        self.simulation.runtime.failpoints = self
        self.rivals_count += 1


@pytest.mark.parametrize("seed", range(4))
def test_no_increment_is_lost_or_doubled(seed: int) -> None:
    # Each increment meets a few effects, so these are more than 10⁴ faults in all.
    faults = Faults(Random(seed))
    simulation = start(faults)
    faults.simulation = simulation
    done = unknown = conflicts = 0
    for _ in range(3_000):
        before = count(simulation) - faults.rivals_count
        assert before >= done
        try:
            increment(simulation)
            done += 1
        except Conflict:
            conflicts += 1
        except OutcomeUnknown:
            unknown += 1
            done += count(simulation) - faults.rivals_count - before
        assert count(simulation) == done + faults.rivals_count
    assert unknown < 30, "four marks suffice nearly always"


def test_every_fault_of_an_update_ends_right() -> None:
    counts: list[int] = []

    def attempt(fault: FaultAt) -> None:
        simulation = start(fault)
        try:
            increment(simulation)
            expected = {1}
        except BaseException as error:  # noqa: BLE001 - a crash is none of Exception
            assert type(error).__name__ == "Crash"
            expected = {0, 1}
        counts.append(count(simulation))
        assert counts[-1] in expected

    tried = sum(1 for _ in every_fault(attempt))
    assert tried >= 12
    assert set(counts) == {0, 1}


class Lost(FaultAt):
    """Loses the answer of the first write, and lets others write before it is looked for."""

    def __init__(self, others: Callable[[], None]) -> None:
        super().__init__(-1, Fault.BUSY)
        self.others: Callable[[], None] | None = others

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write | Batch) and self.others is not None:
            others, self.others = self.others, None
            others()
            raise ResultUnknown("lost")


def lost_then(others: Callable[[Simulation], None], session: Session[Bag] = COUNTER) -> Simulation:
    simulation = start(session=session)
    simulation.runtime.failpoints = Lost(lambda: others(simulation))
    increment(simulation, session)
    return simulation


def rivals(number: int) -> Callable[[Simulation], None]:
    def others(simulation: Simulation) -> None:
        for _ in range(number):
            increment(simulation)

    return others


@pytest.mark.parametrize("number", range(4))
def test_a_write_is_found_in_the_ring(number: int) -> None:
    assert count(lost_then(rivals(number))) == 1 + number


def test_a_wrapped_ring_is_an_unknown_outcome() -> None:
    with pytest.raises(OutcomeUnknown):
        lost_then(rivals(4))


def test_a_dropped_ring_is_an_unknown_outcome() -> None:
    def foreign(simulation: Simulation) -> None:
        simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.REPLACE, KEY, {"Count": 9})))

    with pytest.raises(OutcomeUnknown):
        lost_then(foreign)


def test_an_entity_that_was_deleted_is_an_unknown_outcome() -> None:
    def foreign(simulation: Simulation) -> None:
        simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.DELETE, KEY)))

    with pytest.raises(OutcomeUnknown):
        lost_then(foreign)


def test_a_foreign_merge_leaves_the_ring() -> None:
    def foreign(simulation: Simulation) -> None:
        simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.MERGE, KEY, {"Other": 9})))

    assert count(lost_then(foreign)) == 1


def test_without_marks_only_the_etag_tells() -> None:
    unmarked = Session[Bag]("t", Bags(), Policy(marks=0))
    with pytest.raises(OutcomeUnknown):
        lost_then(lambda _: None, unmarked)
    simulation = start(FaultAt(1, Fault.NEVER_SENT), unmarked)
    increment(simulation, unmarked)
    assert count(simulation) == 1
    stored = simulation.world.entity("t", KEY)
    assert stored is not None
    assert RING not in stored.properties


def test_an_insert_that_meets_another_entity_after_a_lost_answer_is_an_unknown_outcome() -> None:
    bag = Bag(PartitionKey="p", RowKey="counter", Count=0)
    for fault in (Fault.NEVER_SENT, Fault.BUSY):
        simulation = Simulation(failpoints=FaultAt(0, fault))
        other = Simulation()
        other.run(COUNTER.insert(bag))
        simulation.world = other.world
        # Ids of both begin with 1, which tells nothing here: skip one.
        simulation.runtime.new_id()
        with pytest.raises(OutcomeUnknown, match="it may have been done before another program deleted or replaced"):
            simulation.run(COUNTER.insert(bag))
        with pytest.raises(Exists):
            simulation.run(COUNTER.insert(bag))


class Applied(World):
    """Notes that the insert of a process was done."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        after, answer = super().perform(effect, now_seconds)
        operations = effect.operations if isinstance(effect, Batch) else ()
        for each in (effect.operation,) if isinstance(effect, Write) else operations:
            if each.properties.get("By") == "own" and each.kind is Kind.INSERT:
                after, _ = after.perform(Write("applied", Operation(Kind.PUT, KEY)))
        return Applied(after._rows), answer


@pytest.mark.parametrize("with_another_row", [False, True])
def test_a_write_that_raises_a_conflict_was_not_done(with_another_row: bool) -> None:
    other_row = Planned(Operation(Kind.INSERT, EntityKey("p", "more"))) if with_another_row else None

    def own() -> Protocol[None]:
        insert = Planned(Operation(Kind.INSERT, KEY, {"By": "own"}))
        try:
            yield from write("t", [insert, *([other_row] if other_row else [])], Policy())
        except Conflict:
            yield from perform(Write("rejected", Operation(Kind.PUT, KEY)))
        except OutcomeUnknown:
            return

    def rival() -> Protocol[None]:
        with suppress(Conflict):
            yield from write("t", [Planned(Operation(Kind.DELETE, KEY))], Policy())
            yield from write("t", [Planned(Operation(Kind.INSERT, KEY, {"By": "rival"}))], Policy())

    def honest(world: World) -> None:
        rejected, applied = world.entity("rejected", KEY), world.entity("applied", KEY)
        assert rejected is None or applied is None, "a write that was done was reported as rejected"

    for faults in (explorer.Faults(losses=1), explorer.Faults(losses=2), explorer.Faults(lates=1)):
        assert explore(Applied(), [own, rival, rival], honest, faults=faults).complete


def test_a_transaction_is_found_by_any_row_that_it_inserted() -> None:
    """The entity was replaced by another program, but a row that only this transaction writes is there."""
    rows = [Planned(Operation(Kind.INSERT, EntityKey("p", name))) for name in ("counter", "effect")]

    def others() -> None:
        for operation in (Operation(Kind.DELETE, KEY), Operation(Kind.INSERT, KEY, {"By": "rival"})):
            simulation.world, _ = simulation.world.perform(Write("t", operation))

    simulation = Simulation()
    simulation.runtime.failpoints = Lost(others)
    assert simulation.run(write("t", rows, Policy())).etags == ("", "")


def test_an_insert_whose_ring_wrapped_is_an_unknown_outcome() -> None:
    simulation = Simulation()
    simulation.runtime.failpoints = Lost(lambda: rivals(4)(simulation))
    with pytest.raises(OutcomeUnknown):
        simulation.run(COUNTER.insert(Bag(PartitionKey="p", RowKey="counter", Count=0)))
    assert count(simulation) == 4


class Late(FaultAt):
    """Holds the first write back, until just before it is sent again: a request that was on its way for long."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(-1, Fault.BUSY)
        self.simulation = simulation
        self.held: Write | Batch | None = None

    def before(self, effect: Effect[object]) -> None:
        if not isinstance(effect, Write | Batch):
            return
        if self.held is None:
            self.held = effect
            raise ResultUnknown("no answer yet")
        self.simulation.world, _ = self.simulation.world.perform(self.held)


def test_a_request_that_arrives_late_is_done_once() -> None:
    simulation = start()
    simulation.runtime.failpoints = Late(simulation)
    increment(simulation)
    assert count(simulation) == 1
    other = Bag(PartitionKey="p", RowKey="other")
    simulation.runtime.failpoints = Late(simulation)
    simulation.run(COUNTER.insert(other))
    simulation.runtime.failpoints = Late(simulation)
    assert simulation.run(COUNTER.delete(EntityKey("p", "other"))) is True
    simulation.runtime.failpoints = Late(simulation)
    simulation.run(COUNTER.write([COUNTER.planned(Kind.INSERT, other), COUNTER.deleting(KEY)]))
    assert [each.key.row_key for each in simulation.world.entities("t")] == ["other"]


def test_after_the_deadline_no_request_is_sent() -> None:
    class Down(FaultAt):
        def before(self, effect: Effect[object]) -> None:
            self.count += 1
            raise ResultUnknown("503", retry_after_seconds=25)

    down = Down(0, Fault.BUSY)
    simulation = Simulation(failpoints=down)
    with pytest.raises(OutcomeUnknown):
        simulation.run(COUNTER.insert(Bag(PartitionKey="p", RowKey="counter")))
    assert (simulation.now_seconds, down.count) == (50.0, 3), "25 seconds as the service asks, twice within 60"
    with pytest.raises(Unavailable):
        simulation.run(COUNTER.get(KEY))


def test_what_is_wrong_with_the_request_stays_rejected() -> None:
    class TooLarge(FaultAt):
        def before(self, effect: Effect[object]) -> None:
            raise Rejected(413, "RequestBodyTooLarge")

    with pytest.raises(Rejected, match="RequestBodyTooLarge"):
        Simulation(failpoints=TooLarge(0, Fault.BUSY)).run(COUNTER.insert(Bag(PartitionKey="p", RowKey="r")))


def test_a_transaction_that_only_deletes_reads_all_rows() -> None:
    simulation = start()
    simulation.run(COUNTER.insert(Bag(PartitionKey="p", RowKey="b")))
    planned = [COUNTER.deleting(EntityKey("p", "b")), COUNTER.deleting(KEY)]
    simulation.runtime.failpoints = Lost(lambda: None)
    simulation.run(COUNTER.write(planned))
    assert simulation.world.entities("t") == []


def test_rings() -> None:
    ring = WriteIds.born("a").add("b", 2)
    assert (ring.text, WriteIds.of({RING: ring.text})) == ("^a b", ring)
    assert ring.add("c", 2).text == "b c"
    assert WriteIds.of({}) == WriteIds.of({RING: 5}) == WriteIds()
