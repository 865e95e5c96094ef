"""A unique value that passes between entities in one transaction keeps its entry, in every interleaving."""

import math
from collections.abc import Callable, Mapping

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Properties, Read, Stored, Write
from lazulite_patterns.indexes.entries import Entry, pointing_to, targets
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy
from lazulite_patterns_simulation import Crash, FaultAt, Faults, InvariantError, Simulation, World, every_fault, explore
from lazulite_patterns_simulation.world import Request

UNMARKED = Policy(marks=0)
ANN, BOB, CAT = (EntityKey("p", name) for name in ("ann", "bob", "cat"))
OVER = ("clock", EntityKey("over", ""))
PLACES: dict[str, Callable[[object], Entry]] = {
    "elsewhere": lambda mail: Entry("mails", EntityKey(str(mail), ""), unique=True),
    "inside": lambda mail: Entry("t", EntityKey("p", f"_{mail}"), unique=True),
}

Mails = Mapping[EntityKey, str | None]
Process = Callable[[], Protocol[object]]


class Timed(World):
    """No commit is sent after the grace: what the protocol assumes of time."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        if isinstance(effect, Write | Batch) and effect.table == "t" and self.entity(*OVER) is not None:
            raise Rejected(400, "TooLate")
        after, answer = super().perform(effect, now_seconds)
        return Timed(after._rows), answer


class Modelled(PointerIndex):
    """Asks the model whether the grace is over, instead of a clock."""

    def _abandoned(self, pointer: Stored) -> Protocol[bool]:
        return (yield from perform(Read(*OVER))) is not None


def entries_at(place: str) -> Callable[[Properties], frozenset[Entry]]:
    return lambda properties: frozenset({PLACES[place](properties["Mail"])} if "Mail" in properties else ())


def setting(place: str, mails: Mails, kind: type[PointerIndex] = Modelled, attempts: int = 2) -> Process:
    index = kind("t", entries_at(place), UNMARKED)

    def change(mail: str | None) -> Callable[[Stored | None], Properties | None]:
        return lambda _: None if mail is None else {"Mail": mail}

    return lambda: index.change_all({key: change(mail) for key, mail in mails.items()}, attempts)


def over() -> Protocol[object]:
    return perform(Write(OVER[0], Operation(Kind.PUT, OVER[1])))


def found(place: str) -> Callable[[World], None]:
    """Return the invariant: each entity is named by the entry of its value, and has it alone."""

    def invariant(world: World) -> None:
        mails = [each for each in world.entities("t") if "Mail" in each.properties]
        assert len({each.properties["Mail"] for each in mails}) == len(mails), "two entities have one mail"
        for stored in mails:
            pointer = world.entity(*PLACES[place](stored.properties["Mail"])[:2])
            assert pointer is not None, f"{stored.properties} has no entry"
            assert stored.key in targets(pointer), f"{stored.properties} has the entry of {targets(pointer)}"

    return invariant


def start(place: str, mails: Mails) -> World:
    simulation = Simulation()
    simulation.world = Timed()
    simulation.run(setting(place, mails)())
    return simulation.world


def scenarios(place: str, kind: type[PointerIndex] = Modelled) -> list[tuple[World, list[Process]]]:
    def changing(mails: Mails) -> Process:
        return setting(place, mails, kind)

    one, two = start(place, {ANN: "1"}), start(place, {ANN: "1", BOB: "2"})
    three = start(place, {ANN: "1", BOB: "2", CAT: "3"})
    swap, hand = changing({ANN: "2", BOB: "1"}), changing({ANN: "3", BOB: "1"})
    return [
        (one, [changing({ANN: None, BOB: "1"}), changing({CAT: "1"}), over]),
        (one, [changing({ANN: None, BOB: "1"}), changing({ANN: "2"}), over]),
        (two, [swap, changing({CAT: "1"}), over]),
        (two, [swap, swap]),
        (two, [swap, hand]),
        (two, [hand, changing({ANN: None}), over]),
        (two, [swap, changing({BOB: "9"}), changing({CAT: "2"})]),
        (three, [changing({ANN: "2", BOB: "3", CAT: "1"}), changing({BOB: None})]),
    ]


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("place", PLACES)
def test_a_value_that_passes_keeps_its_entry(place: str, number: int) -> None:
    world, processes = scenarios(place)[number]
    explored = explore(world, processes, found(place), faults=Faults(losses=1))
    assert explored.complete
    assert explored.states_count > 1


class Claiming(Modelled):
    """Gives the entry to the taker before the commit."""

    def _pass(self, entry: Entry, giver: EntityKey, taker: EntityKey, birth: str = "") -> Protocol[str]:
        return (yield from perform(Write(entry.table, Operation(Kind.PUT, entry.key, pointing_to(taker)))))


class Late(Modelled):
    """Lets the entry name its old owner until the commit is done."""

    def _pass(self, entry: Entry, giver: EntityKey, taker: EntityKey, birth: str = "") -> Protocol[str]:
        return (yield from perform(Write(entry.table, Operation(Kind.PUT, entry.key, pointing_to(giver)))))


class Greedy(Modelled):
    """Passes on an entry that is about to pass to another entity."""

    def _must_be_free(
        self, entry: Entry, key: EntityKey, pointer: Stored, giver: EntityKey | None = None
    ) -> Protocol[None]:
        if giver is None:
            yield from super()._must_be_free(entry, key, pointer)


@pytest.mark.parametrize("mutation", [Claiming, Late, Greedy])
def test_each_rule_of_passing_is_needed(mutation: type[PointerIndex]) -> None:
    world = start("elsewhere", {ANN: "1", BOB: "2", CAT: "3"})
    passes: list[Mails] = [{ANN: None, BOB: "1"}, {ANN: "4", CAT: "1"}]

    with pytest.raises(InvariantError):
        explore(world, [setting("elsewhere", each, mutation) for each in passes], found("elsewhere"))


@pytest.mark.parametrize("place", PLACES)
def test_every_fault_of_a_pass_leaves_each_entity_with_its_entry(place: str) -> None:
    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        simulation.world = start(place, {ANN: "1", BOB: "2"})
        simulation.runtime.failpoints = fault
        try:
            simulation.run(setting(place, {ANN: "2", BOB: "1"})())
        except (Crash, Conflict, OutcomeUnknown):
            found(place)(simulation.world)
            return
        found(place)(simulation.world)
        ann = simulation.world.entity("t", ANN)
        assert ann is not None
        assert ann.properties["Mail"] == "2"

    assert sum(1 for _ in every_fault(attempt)) > 3 * 6
