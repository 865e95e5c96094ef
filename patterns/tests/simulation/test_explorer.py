"""The model checker finds what it should, and goes through everything."""

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Write
from lazulite_patterns.simulation import (
    Crash,
    Explored,
    FaultAt,
    InvariantError,
    Simulation,
    World,
    every_fault,
    explore,
)

KEY = EntityKey("p", "counter")


def increment(conditional: bool) -> Protocol[None]:
    stored = yield from perform(Read("t", KEY))
    assert stored is not None
    count = stored.properties["Count"]
    assert isinstance(count, int)
    etag = stored.etag if conditional else None
    try:
        yield from perform(Write("t", Operation(Kind.REPLACE, KEY, {"Count": count + 1}, etag)))
    except Rejected:
        yield from increment(conditional)


def start() -> World:
    return World().perform(Write("t", Operation(Kind.INSERT, KEY, {"Count": 0})))[0]


def all_counted(world: World) -> None:
    """Each of two writers that ended counted: their second write makes the count two."""
    stored = world.entity("t", KEY)
    assert stored is not None
    assert stored.etag == f'W/"{int(str(stored.properties["Count"])) + 1}"', "an increment is lost"


def test_a_lost_update_is_found() -> None:
    with pytest.raises(InvariantError, match="an increment is lost") as found:
        explore(start(), [lambda: increment(False)] * 2, all_counted)
    assert sorted(found.value.path) == [0, 0, 1, 1]


def test_a_correct_protocol_passes_in_every_interleaving() -> None:
    explored = explore(start(), [lambda: increment(True)] * 3, all_counted, crashes_max=3)
    assert explored.states_count > 100


def test_every_interleaving_of_independent_processes_is_explored() -> None:
    def write(name: str) -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, EntityKey("p", name))))

    processes = [lambda: write("a"), lambda: write("b")]
    assert explore(World(), processes, lambda _: None, crashes_max=0) == Explored(4, 1)
    # Each has begun, is done or has crashed: nine states, four of them ends.
    assert explore(World(), processes, lambda _: None, crashes_max=2) == Explored(9, 4)
    with pytest.raises(RuntimeError, match="more than 3 states"):
        explore(World(), processes, lambda _: None, states_max=3)


def test_a_defect_is_not_taken_for_the_end_of_a_process() -> None:
    def broken() -> Protocol[None]:
        stored = yield from perform(Read("t", KEY))
        assert stored is not None
        stored.missing  # type: ignore[attr-defined]  # noqa: B018 - the defect

    with pytest.raises(AttributeError):
        explore(start(), [broken], lambda _: None)


def test_every_fault_is_tried_at_every_effect() -> None:
    counts: list[int] = []

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation(failpoints=fault)
        simulation.world = start()
        try:
            simulation.run(increment(True))
        except (Crash, ResultUnknown):
            assert fault.hit
        stored = simulation.world.entity("t", KEY)
        assert stored is not None
        counts.append(int(str(stored.properties["Count"])))

    tried = [(at.fault.name, at.number) for at in every_fault(attempt)]
    assert len(tried) == 6 * 2
    assert len(set(tried)) == 12
    # Three of the faults come after the write; and the last attempt of each of six kinds meets none.
    assert sum(counts) == 3 + 6
