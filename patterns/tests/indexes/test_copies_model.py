"""No reader sees a copy that is not committed or is old, in every interleaving; each of four rules is needed."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Write
from lazulite_patterns.indexes.changes import InsertState
from lazulite_patterns.indexes.copies import PendingEntry
from lazulite_patterns.indexes.entries import PENDING, Entry, contents
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy
from lazulite_patterns_simulation import Crash, FaultAt, Faults, InvariantError, Simulation, World, every_fault, explore

KEY = EntityKey("p", "jones")
UNMARKED = Policy(marks=0)
NO_LIVES: Mapping[EntityKey, InsertState] = {}
Values = tuple[str, int] | None
"""Mail and age that a writer sets; None to delete the entity."""


def entry(mail: object) -> Entry:
    return Entry("mails", EntityKey(str(mail), ""), copy=("Age",))


def entries(properties: Properties) -> frozenset[Entry]:
    return frozenset({entry(properties["Mail"])})


class Late(PointerIndex):
    """Marks no entry before the commit, but keeps its ETag."""

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        marks = []
        for place, key in entries:
            found = yield from perform(Read(place.table, place.key))
            if found is None:
                marks += yield from super()._marks([(place, key)], lives)
            else:
                marks.append(PendingEntry(place, key, found.etag, lives[key].birth))
        return marks


class Forgetful(Late):
    """Marks no entry that it leaves behind: here that of the mail `a`."""

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        own = [each for each in entries if each[0] != entry("a")]
        marks = yield from PointerIndex._marks(self, own, lives)
        return marks + (yield from super()._marks([each for each in entries if each[0] == entry("a")], lives))


class Sparing(PointerIndex):
    """Does not mark an entry that is marked."""

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        marks = []
        for place, key in entries:
            found = yield from perform(Read(place.table, place.key))
            if found is not None and found.properties.get(PENDING):
                marks.append(PendingEntry(place, key, found.etag, lives[key].birth))
            else:
                marks += yield from super()._marks([(place, key)], lives)
        return marks


class Blind(PointerIndex):
    """Fills an entry whatever its mark is."""

    def _settled(self, marked: PendingEntry, properties: Properties | None) -> Protocol[None]:
        if properties is None:
            yield from super()._settled(marked, properties)
            return
        filled = contents(marked.entry, marked.key, properties)
        yield from perform(Write(marked.entry.table, Operation(Kind.PUT, marked.entry.key, filled)))


def setting(kind: type[PointerIndex], values: Values, attempts: int = 2) -> Callable[[], Protocol[object]]:
    properties = None if values is None else {"Mail": values[0], "Age": values[1]}
    return lambda: kind("t", entries, UNMARKED).change(KEY, lambda _: properties, attempts)


def start() -> World:
    simulation = Simulation()
    simulation.run(setting(PointerIndex, ("a", 1))())
    return simulation.world


def never_old(world: World) -> None:
    entity = world.entity("t", KEY)
    if entity is not None:
        assert world.entity("mails", entry(entity.properties["Mail"]).key) is not None, "the entity has no entry"
    for found in world.entities("mails"):
        if not found.properties.get(PENDING):
            assert entity is not None, "a copy of an entity that was deleted"
            assert found.key == entry(entity.properties["Mail"]).key, "a copy by a value before"
            assert found.properties["Age"] == entity.properties["Age"], "an old copy, or one that is not committed"


WRITERS: list[list[Values]] = [
    [("a", 2), ("a", 3)],
    [("a", 2), ("a", 3), ("a", 1)],
    [("b", 2), ("a", 3)],
    [("b", 1), ("a", 2), None],
    [None, ("a", 2)],
    [("b", 2), ("b", 3), ("a", 1)],
]


@pytest.mark.parametrize("values", WRITERS)
def test_a_copy_is_that_of_the_entity_or_is_marked(values: Sequence[Values]) -> None:
    writers = [setting(PointerIndex, each) for each in values]
    assert explore(start(), writers, never_old).states_count > 10


@pytest.mark.skipif("PATTERNS_CAMPAIGN" not in os.environ, reason="it takes minutes; set PATTERNS_CAMPAIGN")
@pytest.mark.parametrize(
    ("values", "attempts"),
    [([("a", 2), ("a", 3), ("a", 1), ("a", 2)], 2), ([("b", 2), ("a", 3), None, ("b", 1)], 1)],
)
def test_four_writers(values: Sequence[Values], attempts: int) -> None:
    writers = [setting(PointerIndex, each, attempts) for each in values]
    assert explore(start(), writers, never_old, faults=Faults(), states_max=3_000_000).states_count > 100_000


@pytest.mark.parametrize("mutation", [Late, Forgetful, Sparing, Blind])
def test_each_rule_of_copies_is_needed(mutation: type[PointerIndex]) -> None:
    def broken(values: Sequence[Values]) -> bool:
        try:
            explore(start(), [setting(mutation, each) for each in values], never_old)
        except InvariantError:
            return True
        return False

    assert any(broken(values) for values in WRITERS)


def test_every_fault_leaves_a_copy_that_is_right_or_marked() -> None:
    simulations: list[Simulation] = []

    def rival() -> None:
        simulations[-1].world, _ = simulations[-1].world.perform(
            Write("t", Operation(Kind.MERGE, KEY, {"Other": len(simulations)}))
        )

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        simulations.append(simulation)
        index = PointerIndex("t", entries)
        simulation.run(index.change(KEY, lambda _: {"Mail": "a", "Age": 1}))
        simulation.runtime.failpoints = fault
        with suppress(Crash):
            simulation.run(index.change(KEY, lambda _: {"Mail": "a", "Age": 2}))
            simulation.run(index.change(KEY, lambda _: {"Mail": "b", "Age": 2}))
            found = simulation.world.entity("mails", entry("b").key)
            assert found is not None
            assert not found.properties[PENDING], "nothing crashed"
            assert simulation.world.entity("mails", entry("a").key) is None
        never_old(simulation.world)

    assert sum(1 for _ in every_fault(attempt, rival)) > 9 * 4
