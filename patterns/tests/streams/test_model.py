"""No gap, no duplicate: in every interleaving, and under every fault. Each rule is needed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Write
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.streams import AppendTooLarge, DuplicateEvent, Event, WrongVersion
from lazulite_patterns.streams import protocol as module
from lazulite_patterns.streams.layout import event_key, head_key, id_key, version_of
from lazulite_patterns.streams.protocol import StreamProtocol
from lazulite_patterns_simulation import Crash, FaultAt, InvariantError, Simulation, World, every_fault, explore

STREAM = StreamProtocol("t", "s", Policy(marks=0))


def events(*ids: str) -> list[Event]:
    return [Event({"What": each}, each) for each in ids]


def whole(world: World) -> None:
    """Versions have no gap, each event has its id and each id its event; the projection is of the last append."""
    rows = {each.key.row_key: each for each in world.entities("t")}
    head = world.entity("t", head_key("s"))
    last = 0 if head is None else version_of(head)
    found = sorted(key for key in rows if key.startswith("SS-SE-"))
    assert found == [event_key("s", version).row_key for version in range(1, last + 1)], "a gap"
    ids = [str(rows[each].properties["Id"]) for each in found]
    assert len(set(ids)) == len(ids), "a duplicate"
    for version, each in enumerate(ids, 1):
        named = rows.get(id_key("s", each).row_key)
        assert named is not None, "an event without its id"
        assert version_of(named) == version, "an id of another event"
    assert sum(key.startswith("SS-UID-") for key in rows) == len(ids)
    if "count" in rows:
        assert rows["count"].properties["N"] == last, "the projection is of another version"


def projected(count: int) -> Callable[[int], Sequence[Planned]]:
    """Write the version that a stream has after an append of as many events."""
    return lambda first: [Planned(Operation(Kind.PUT, EntityKey("s", "count"), {"N": first + count - 1}))]


def writer(kind: StreamProtocol, *ids: str, expected: int | None = None) -> Callable[[], Protocol[object]]:
    return lambda: kind.append(events(*ids), expected, projected(len(ids)), attempts=3)


WRITERS: list[list[tuple[str, ...]]] = [
    [("a", "b"), ("c",), ("d",)],
    [("a", "b"), ("a", "b"), ("c",)],
    [("a",), ("a", "b"), ("b",)],
]


@pytest.mark.parametrize("writers", WRITERS)
def test_every_interleaving_keeps_the_stream_whole(writers: list[tuple[str, ...]]) -> None:
    processes = [writer(STREAM, *each) for each in writers]
    assert explore(World(), processes, whole).states_count > 5


def _mutated(change: Callable[[Planned], Planned | None]) -> StreamProtocol:
    class Mutated(StreamProtocol):
        def _check(self, planned: Sequence[Planned]) -> None:
            assert isinstance(planned, list)
            planned[:] = [new for each in planned if (new := change(each)) is not None]

    return Mutated("t", "s", Policy(marks=0))


def unconditional(planned: Planned) -> Planned:
    if planned.operation.key.row_key != "SS-HEAD":
        return planned
    return Planned(replace(planned.operation, kind=Kind.PUT, etag=None))


def overwriting(planned: Planned) -> Planned:
    return Planned(replace(planned.operation, kind=Kind.PUT, etag=None))


def without_ids(planned: Planned) -> Planned | None:
    return None if planned.operation.key.row_key.startswith("SS-UID-") else planned


@pytest.mark.parametrize("change", [overwriting, without_ids])
def test_each_rule_is_needed(change: Callable[[Planned], Planned | None]) -> None:
    def broken(writers: list[tuple[str, ...]]) -> bool:
        try:
            explore(World(), [writer(_mutated(change), *each) for each in writers], whole)
        except InvariantError:
            return True
        return False

    assert any(broken(writers) for writers in WRITERS)


def test_a_head_without_a_condition_would_still_collide_in_its_events() -> None:
    """The key of an event is a second guard: two writers of the same version collide there."""
    processes = [writer(_mutated(unconditional), *each) for each in (("a",), ("b",))]
    assert explore(World(), processes, whole).states_count > 1


@pytest.mark.parametrize("expected", [1, None])
def test_an_append_under_every_fault_returns_the_same_version(expected: int | None) -> None:
    stream = StreamProtocol("t", "s")
    rivals = 0

    def rival() -> None:
        nonlocal rivals
        rivals += 1
        current.append_by_rival(rivals)

    class Run:
        def __init__(self) -> None:
            self.simulation = Simulation()
            self.simulation.run(stream.append(events("first"), 0, projected(1)))

        def append_by_rival(self, number: int) -> None:
            other = Simulation()
            other.world = self.simulation.world
            other.run(stream.append(events(f"rival{number}"), None, projected(1)))
            self.simulation.world = other.world

    current = Run()

    def attempt(fault: FaultAt) -> None:
        nonlocal current
        current = Run()
        simulation = current.simulation
        simulation.runtime.failpoints = fault

        def protocol() -> Protocol[int]:
            return stream.append(events("a", "b"), expected, projected(2))

        try:
            version = simulation.run(protocol())
        except Crash:
            whole(simulation.world)
            version = simulation.run(protocol())  # The program is started again.
        except WrongVersion as wrong:
            assert (expected, wrong.version) == (1, 2), "a rival was faster"
            whole(simulation.world)
            return
        simulation.runtime.failpoints = NoFailpoints()
        whole(simulation.world)
        rows = simulation.world.entities("t")
        assert sum(each.key.row_key.startswith("SS-UID-") for each in rows) == version
        assert simulation.run(stream.find("b")) == version
        assert simulation.run(protocol()) == version, "it is not appended again"

    assert sum(1 for _ in every_fault(attempt, rival)) >= 2 * 7


class LostForLong:
    """Failpoints: the service does the first transaction, and then is away for long; rivals append meanwhile."""

    def __init__(self, simulation: Simulation, stream: StreamProtocol, *, back: bool) -> None:
        self.simulation, self.stream, self.back, self.count = simulation, stream, back, 0

    def before(self, effect: Effect[object]) -> None:
        if self.count and not (self.back and self.count > 3):
            self.count += 1
            raise ResultUnknown("away", retry_after_seconds=1)

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Batch) and not self.count:
            self.count = 1
            other = Simulation(seed=1)
            other._ids = 1000
            other.world = self.simulation.world
            for number in range(6):
                other.run(self.stream.append(events(f"later{number}")))
            self.simulation.world = other.world
            raise ResultUnknown("lost")


def test_ids_decide_when_the_ring_of_the_head_has_wrapped() -> None:
    stream = StreamProtocol("t", "s")
    simulation = Simulation()
    simulation.runtime.failpoints = LostForLong(simulation, stream, back=True)
    assert simulation.run(stream.append([Event({"What": 1}), Event()])) == 2, "events without ids get new ones"
    simulation.runtime.failpoints = LostForLong(simulation, stream, back=False)
    with pytest.raises(OutcomeUnknown):
        simulation.run(stream.append(events("x"), 8))


def test_expected_versions_and_duplicates() -> None:
    simulation = Simulation()
    assert simulation.run(STREAM.version()) == 0
    assert simulation.run(STREAM.append(events("a", "b"), 0)) == 2
    assert simulation.run(STREAM.append(events("a", "b"), 0)) == 2, "it is there already"
    assert simulation.run(STREAM.append(events("a", "b"))) == 2
    with pytest.raises(WrongVersion) as wrong:
        simulation.run(STREAM.append(events("c"), 1))
    assert wrong.value.version == 2
    for ids in (("c", "a"), ("b", "a"), ("a", "c")):
        with pytest.raises(DuplicateEvent):
            simulation.run(STREAM.append(events(*ids)))
    with pytest.raises(ValueError, match="same id"):
        simulation.run(STREAM.append(events("d", "d")))
    with pytest.raises(ValueError, match="at least one"):
        simulation.run(STREAM.append([]))
    whole(simulation.world)


def test_more_than_fits_raises_and_writes_nothing() -> None:
    simulation = Simulation()
    assert simulation.run(STREAM.append(events(*map(str, range(49))))) == 49
    many = events(*(f"x{number}" for number in range(50)))
    with pytest.raises(AppendTooLarge, match="101 rows"):
        simulation.run(STREAM.append(many))
    with pytest.raises(EntityValueError, match="65537 bytes"):
        simulation.run(STREAM.append([Event({"A": bytes(65_537)})]))
    assert simulation.run(STREAM.version()) == 49


@pytest.mark.parametrize("key", [EntityKey("other", "count"), EntityKey("s", "SS-HEAD")])
def test_projections_are_in_the_partition_and_no_rows_of_the_stream(key: EntityKey) -> None:
    with pytest.raises(ValueError, match=r"partition of the stream|row of the stream"):
        Simulation().run(STREAM.append(events("a"), projections=lambda _: [Planned(Operation(Kind.PUT, key))]))


def test_a_conflict_of_a_projection_is_raised() -> None:
    simulation = Simulation()
    simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.PUT, EntityKey("s", "row"))), 0.0)
    insert = [Planned(Operation(Kind.INSERT, EntityKey("s", "row")))]
    with pytest.raises(Conflict):
        simulation.run(STREAM.append(events("a"), projections=lambda _: insert))
    assert simulation.run(STREAM.version()) == 0
    assert module.OPERATIONS_MAX == 100
