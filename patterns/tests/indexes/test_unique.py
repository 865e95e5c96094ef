"""A unique value has one entity at most, in every interleaving, with crashes; each of three rules is needed."""

import math
from collections.abc import Callable
from contextlib import suppress

import pytest

from lazulite_patterns import Busy, NotUnique
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored, Write
from lazulite_patterns.indexes.entries import NO_INTENT, Entry, target, targets
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy
from lazulite_patterns_simulation import (
    Crash,
    Fault,
    FaultAt,
    Faults,
    InvariantError,
    Simulation,
    World,
    every_fault,
    explore,
)
from lazulite_patterns_simulation.world import Request

UNMARKED = Policy(marks=0)
ANN, BOB, CAT = (EntityKey("p", name) for name in ("ann", "bob", "cat"))


def entry(mail: object) -> Entry:
    return Entry("mails", EntityKey(str(mail), ""), unique=True)


def entries(properties: Properties) -> frozenset[Entry]:
    return frozenset({entry(properties["Mail"])} if "Mail" in properties else ())


def grace(key: EntityKey) -> tuple[str, EntityKey]:
    """Where it stands that the grace of an entity's writers is over."""
    return "clock", EntityKey("over", key.row_key)


class Timed(World):
    """No writer commits after its grace: what the protocol assumes of time."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        if isinstance(effect, Write) and effect.table == "t" and self.entity(*grace(effect.operation.key)) is not None:
            raise Rejected(400, "TooLate")
        after, answer = super().perform(effect, now_seconds)
        return Timed(after._rows), answer


class Modelled(PointerIndex):
    """Asks the model whether the grace is over, instead of a clock."""

    def _abandoned(self, pointer: Stored) -> Protocol[bool]:
        return (yield from perform(Read(*grace(target(pointer))))) is not None


class Impatient(Modelled):
    """Takes an entry over at once."""

    def _abandoned(self, pointer: Stored) -> Protocol[bool]:
        return True
        yield


class Hasty(Modelled):
    """Reads the entity before it asks whether the grace is over."""

    def _must_be_free(
        self, entry: Entry, key: EntityKey, pointer: Stored, giver: EntityKey | None = None
    ) -> Protocol[None]:
        found = yield from self.follow(entry, pointer)
        if target(pointer) != key and (found is not None or not (yield from self._abandoned(pointer))):
            raise Busy


class Blind(Modelled):
    """Takes an entry over whatever its ETag is."""

    def _taken(self, entry: Entry, key: EntityKey, pointer: Stored, intent: Properties = NO_INTENT) -> Protocol[bool]:
        yield from perform(
            Write(entry.table, Operation(Kind.PUT, entry.key, {"TargetPartition": "p", "TargetRow": key.row_key}))
        )
        return True


def setting(kind: type[PointerIndex], key: EntityKey, mail: str | None) -> Callable[[], Protocol[object]]:
    index = kind("t", entries, UNMARKED)
    return lambda: index.change(key, lambda _: None if mail is None else {"Mail": mail}, 2)


def over(key: EntityKey) -> Callable[[], Protocol[object]]:
    table, place = grace(key)
    return lambda: perform(Write(table, Operation(Kind.PUT, place)))


def unique(world: World) -> None:
    found = [stored.properties["Mail"] for stored in world.entities("t")]
    assert len(set(found)) == len(found), "two entities have one mail"
    for stored in world.entities("t"):
        pointer = world.entity("mails", entry(stored.properties["Mail"]).key)
        assert pointer is not None, "a mail has no entry"
        assert stored.key in targets(pointer), "a mail has the entry of another entity"


def scenarios(kind: type[PointerIndex]) -> list[tuple[World, list[Callable[[], Protocol[object]]]]]:
    simulation = Simulation()
    simulation.world = Timed()
    simulation.run(setting(Modelled, CAT, "a")())
    return [
        (Timed(), [setting(kind, ANN, "a"), setting(kind, BOB, "a"), over(ANN)]),
        (Timed(), [setting(kind, ANN, "a"), setting(kind, BOB, "a"), over(ANN), over(BOB)]),
        (Timed(), [setting(kind, ANN, "a"), setting(kind, BOB, "a"), setting(kind, CAT, "a"), over(ANN)]),
        (simulation.world, [setting(kind, CAT, "b"), setting(kind, BOB, "a"), over(CAT)]),
        (simulation.world, [setting(kind, CAT, None), setting(kind, CAT, "b"), setting(kind, BOB, "a")]),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_value_has_one_entity_at_every_instant(number: int) -> None:
    world, processes = scenarios(Modelled)[number]
    assert explore(world, processes, unique).states_count > 10


@pytest.mark.parametrize("mutation", [Impatient, Hasty, Blind])
def test_each_rule_of_unique_is_needed(mutation: type[PointerIndex]) -> None:
    def broken(world: World, processes: list[Callable[[], Protocol[object]]]) -> bool:
        try:
            explore(world, processes, unique)
        except InvariantError:
            return True
        return False

    assert any(broken(world, processes) for world, processes in scenarios(mutation))


def test_one_of_many_claimants_wins() -> None:
    simulation = Simulation()
    index = PointerIndex("t", entries)
    won = 0
    for number in range(32):
        try:
            simulation.run(index.change(EntityKey("p", str(number)), lambda _: {"Mail": "a"}))
            won += 1
        except NotUnique:
            continue
    assert won == 1
    unique(simulation.world)


def test_what_a_crash_leaves_of_a_claim_is_taken_over_after_the_grace() -> None:
    """After each crash another entity gets the value, or the first one has it."""

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation(failpoints=fault)
        index = Modelled("t", entries)
        with suppress(Crash):
            simulation.run(index.change(ANN, lambda _: {"Mail": "a"}))
        simulation.runtime.failpoints = FaultAt(-1, fault.fault)
        unique(simulation.world)
        committed = simulation.world.entity("t", ANN) is not None
        claimed = simulation.world.entity("mails", entry("a").key) is not None
        claim = index.change(BOB, lambda _: {"Mail": "a"})
        if committed or claimed:
            with pytest.raises(NotUnique if committed else Busy):
                simulation.run(claim)
            simulation.run(over(ANN)())
            claim = index.change(BOB, lambda _: {"Mail": "a"})
        if committed:
            with pytest.raises(NotUnique):
                simulation.run(claim)
        else:
            simulation.run(claim)
        unique(simulation.world)

    assert sum(1 for _ in every_fault(attempt)) > 3 * 4


def test_an_entry_of_another_entity_is_not_removed() -> None:
    simulation = Simulation()
    index = PointerIndex("t", entries)
    simulation.run(index.change(ANN, lambda _: {"Mail": "a"}))
    simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.INSERT, BOB, {"Mail": "a"})))
    simulation.run(index.change(BOB, lambda _: {"Mail": "b"}))
    unique(simulation.world)


def test_a_delete_is_of_the_row_that_was_read() -> None:
    simulation = Simulation()
    index = PointerIndex("t", entries)
    simulation.run(index.change(ANN, lambda _: {"Mail": "a"}))
    seen: list[object] = []

    def change(base: Stored | None) -> None:
        assert base is not None
        seen.append(base.properties["Mail"])

    def rival() -> None:
        simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.MERGE, ANN, {"Mail": "z"})))

    simulation.runtime.failpoints = FaultAt(2, Fault.RIVAL, rival)
    simulation.run(index.change(ANN, change))
    assert seen == ["a", "z"]


def two_values(properties: Properties) -> frozenset[Entry]:
    return frozenset(entry(properties[name]) for name in ("Mail", "Name") if name in properties)


class Grasping(Modelled):
    """Gives back a claim whatever became of it."""

    def _release(self, claims: list[tuple[Entry, str]]) -> Protocol[None]:
        for place, _ in claims:
            with suppress(Rejected):
                yield from perform(Write(place.table, Operation(Kind.DELETE, place.key)))


def registering(kind: type[PointerIndex], key: EntityKey, mail: str, name: str) -> Callable[[], Protocol[object]]:
    return lambda: kind("t", two_values, UNMARKED).change(key, lambda _: {"Mail": mail, "Name": name}, 2)


def both_unique(world: World) -> None:
    values = [
        value for stored in world.entities("t") for value in (stored.properties["Mail"], stored.properties["Name"])
    ]
    assert len(set(values)) == len(values), "two entities have one value"
    for stored in world.entities("t"):
        for name in ("Mail", "Name"):
            pointer = world.entity("mails", entry(stored.properties[name]).key)
            assert pointer is not None, "a value has no entry"
            assert stored.key in targets(pointer), "a value has the entry of another entity"


def registrations(kind: type[PointerIndex]) -> list[Callable[[], Protocol[object]]]:
    return [
        registering(kind, BOB, "b", "z"),
        registering(kind, ANN, "a", "z"),
        registering(kind, ANN, "a", "y"),
    ]


def test_a_claim_that_is_given_back_is_of_no_other_writer() -> None:
    explored = explore(Timed(), registrations(Modelled), both_unique, faults=Faults(losses=1))
    assert explored.complete


def test_a_claim_is_given_back_by_its_etag() -> None:
    with pytest.raises(InvariantError):
        explore(Timed(), registrations(Grasping), both_unique)
