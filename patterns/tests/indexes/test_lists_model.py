"""A committed entity is in its list at every instant, in every interleaving; versions are needed for that."""

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored, Write
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.entries import NO_INTENT, Entry, digest
from lazulite_patterns.indexes.lists import Change, Item
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Conflict, Policy
from lazulite_patterns_simulation import Crash, FaultAt, Faults, InvariantError, Simulation, World, every_fault, explore

from .numbering import Numbering, of_process

ANN, BOB = EntityKey("p", "ann"), EntityKey("p", "bob")
UNMARKED = Policy(marks=0)


ROWS, BLOBS = "", "c"
"""The containers of lists."""
PLACES = pytest.mark.parametrize("container", [ROWS, BLOBS])


def entry(name: object, key: EntityKey, container: str = ROWS) -> Entry:
    return Entry("names", EntityKey(str(name), digest(key)), listed=True, container=container)


def entries_in(container: str) -> Callable[[Properties], frozenset[Entry]]:
    def entries(properties: Properties) -> frozenset[Entry]:
        key = EntityKey(str(properties["PartitionKey"]), str(properties["RowKey"]))
        return frozenset({entry(properties["Name"], key, container)})

    return entries


class Careless(Numbering):
    """Takes an entity out of a list whatever its version is."""

    def _clean(self, left: list[tuple[Entry, Stored]]) -> Protocol[None]:
        for place, stored in left:
            key = EntityKey(str(stored.properties["TargetPartition"]), str(stored.properties["TargetRow"]))
            with suppress(Conflict):
                yield from lists.apply(place, Change(take=((key, None),)), self.policy)


class Sparing(Numbering):
    """Does not put an entity that is in the list."""

    def _put(self, entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[str | None]:
        if (yield from lists.find(entry, self.policy)) is None:
            yield from super()._put(entry, key, intent)
        return None


def setting(
    kind: type[Numbering], process: int, key: EntityKey, name: str | None, container: str, attempts: int = 2
) -> Callable[[], Protocol[object]]:
    numbered = of_process(kind, process)
    properties = None if name is None else {"Name": name}
    return lambda: numbered("t", entries_in(container), UNMARKED).change(key, lambda _: properties, attempts)


def start(container: str) -> World:
    simulation = Simulation()
    simulation.run(setting(Numbering, 0, ANN, "a", container)())
    return simulation.world


def listed_in(container: str) -> Callable[[World], None]:
    def listed(world: World) -> None:
        simulation = Simulation()
        simulation.world = world
        for stored in world.entities("t"):
            rows = simulation.run(lists.rows(entry(stored.properties["Name"], ANN, container), UNMARKED))
            assert stored.key in {item.key for row in rows for item in lists.items(row)}, f"{stored.key} is in no list"

    return listed


WRITERS: list[list[tuple[EntityKey, str | None]]] = [
    [(ANN, "b"), (ANN, "a")],
    [(ANN, "b"), (BOB, "a")],
    [(ANN, None), (BOB, "a")],
]


@PLACES
@pytest.mark.parametrize("writers", WRITERS)
def test_an_entity_is_in_its_list_at_every_instant(writers: list[tuple[EntityKey, str | None]], container: str) -> None:
    processes = [setting(Numbering, number, *each, container) for number, each in enumerate(writers, 1)]
    assert explore(start(container), processes, listed_in(container)).states_count > 10


@pytest.mark.skipif("PATTERNS_CAMPAIGN" not in os.environ, reason="it takes minutes; set PATTERNS_CAMPAIGN")
@PLACES
def test_four_writers(container: str) -> None:
    names = ["b", "a", "b", None]
    writers = [setting(Numbering, number, ANN, name, container, 1) for number, name in enumerate(names, 1)]
    explored = explore(start(container), writers, listed_in(container), faults=Faults(), states_max=3_000_000)
    assert explored.states_count > 100_000


@PLACES
@pytest.mark.parametrize("mutation", [Careless, Sparing])
def test_each_rule_of_lists_is_needed(mutation: type[Numbering], container: str) -> None:
    writers = [(ANN, "b"), (ANN, "a"), (ANN, "b")]
    processes = [setting(mutation, number, *each, container) for number, each in enumerate(writers, 1)]
    with pytest.raises(InvariantError):
        explore(start(container), processes, listed_in(container))


@PLACES
def test_every_fault_leaves_an_entity_in_its_list(container: str) -> None:
    index = PointerIndex("t", entries_in(container))
    simulations: list[Simulation] = []

    def rival() -> None:
        other = Simulation(seed=len(simulations))
        other.world = simulations[-1].world
        other.run(lists.put(entry("b", BOB, container), BOB, Policy()))
        simulations[-1].world = other.world

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        simulations.append(simulation)
        simulation.run(index.change(ANN, lambda _: {"Name": "a"}))
        simulation.runtime.failpoints = fault
        with suppress(Crash):
            simulation.run(index.change(ANN, lambda _: {"Name": "b"}))
            assert simulation.run(index.find(entry("b", ANN, container))) is not None
            assert simulation.run(lists.rows(entry("a", ANN, container), UNMARKED)) == []
        listed_in(container)(simulation.world)

    assert sum(1 for _ in every_fault(attempt, rival)) > 6 * 5


def test_a_list_goes_on_in_another_row() -> None:
    """Items of 40 KB fill rows of 1 MB; a gap is closed when the last row has room."""
    simulation = Simulation()
    keys = [EntityKey("p", f"{number:02d}{'x' * 7000}") for number in range(200)]
    for key in keys:
        simulation.run(lists.put(entry("a", key), key, UNMARKED))
    rows = simulation.world.entities("names")
    assert [each.key.row_key for each in rows] == ["0000", "0001", "0002"]
    assert [item.key for row in rows for item in lists.items(row)] == keys
    for key in keys:
        found = simulation.run(lists.find(entry("a", key), UNMARKED))
        assert found is not None
        simulation.run(lists.take(entry("a", key), found, UNMARKED))
    assert simulation.world.entities("names") == []


def test_an_entity_is_once_in_a_list_and_taken_by_its_version_only() -> None:
    simulation = Simulation()
    place = entry("a", ANN)
    simulation.run(lists.put(place, ANN, UNMARKED))
    before = simulation.run(lists.find(place, UNMARKED))
    simulation.run(lists.put(place, ANN, UNMARKED))
    (row,) = simulation.world.entities("names")
    assert len(lists.items(row)) == 1
    assert before is not None
    simulation.run(lists.take(place, before, UNMARKED))
    assert simulation.world.entities("names") != []
    doubled = lists.properties([Item(*ANN, "1.a")])
    simulation.world, _ = simulation.world.perform(
        Write("names", Operation(Kind.INSERT, EntityKey("a", "0001"), doubled))
    )
    both = simulation.run(lists.find(place, UNMARKED))
    assert both is not None
    simulation.run(lists.take(place, both, UNMARKED))
    assert simulation.world.entities("names") == [], "two rows had it"
