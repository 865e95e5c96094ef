"""The order of steps keeps the invariant in every interleaving, with crashes; each of its three rules is needed."""

import os
from collections.abc import Callable

import pytest

from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored, Write
from lazulite_patterns.indexes.entries import NO_INTENT, Entry
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Conflict, Policy, Unavailable
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns_simulation import Crash, FaultAt, Faults, InvariantError, Simulation, World, every_fault, explore

KEY = EntityKey("p", "jones")
UNMARKED = Policy(marks=0)


def entry(mail: object) -> Entry:
    return Entry("mails", EntityKey(str(mail), ""))


def entries(properties: Properties) -> frozenset[Entry]:
    return frozenset({entry(properties["Mail"])})


class Careless(PointerIndex):
    """Deletes what it leaves behind whatever its ETag is."""

    def _clean(self, left: list[tuple[Entry, Stored]]) -> Protocol[None]:
        for place, _ in left:
            try:
                yield from write(place.table, [Planned(Operation(Kind.DELETE, place.key))], self.policy)
            except Conflict:
                continue


class Sparing(PointerIndex):
    """Does not put an entry that is there."""

    def _put(self, place: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[None]:
        if (yield from self._read(place)) is None:
            yield from super()._put(place, key, intent)


class Tidy(PointerIndex):
    """Removes what it put if it loses."""

    def change(
        self, key: EntityKey, change: Callable[[Stored | None], Properties | None], attempts: int = 8
    ) -> Protocol[None]:
        put: list[Entry] = []

        def watched(base: Stored | None) -> Properties | None:
            properties = change(base)
            old = frozenset[Entry]() if base is None else self.entries(base.properties)
            put[:] = [] if properties is None else sorted(self.entries(properties) - old)
            return properties

        for _ in range(attempts):
            try:
                yield from super().change(key, watched, 1)
            except Conflict:
                left = yield from self._etags(frozenset(put))
                yield from self._clean(left)
            else:
                return


def start() -> World:
    simulation = Simulation()
    index = PointerIndex("t", entries, UNMARKED)
    simulation.run(index.change(KEY, lambda _: {"Mail": "a"}))
    return simulation.world


def setting(
    kind: type[PointerIndex], mail: str | None, attempts: int, policy: Policy = UNMARKED
) -> Callable[[], Protocol[object]]:
    index = kind("t", entries, policy)
    return lambda: index.change(KEY, lambda _: None if mail is None else {"Mail": mail}, attempts)


def indexed(world: World) -> None:
    for stored in world.entities("t"):
        assert world.entity(*entry(stored.properties["Mail"])[:2]) is not None, (
            f"{stored.properties['Mail']} has no entry"
        )


# Mails that writers set, None to delete the entity; and how often each of them tries.
WRITERS: list[tuple[list[str | None], int]] = [
    (["b", "a"], 3),
    (["b", "a", "b"], 3),
    (["b", "a", None], 3),
    (["b", "c", "a"], 2),
    (["b", "c", "b"], 3),
]


@pytest.mark.parametrize(("mails", "attempts"), WRITERS)
def test_a_committed_entity_has_its_entry_at_every_instant(mails: list[str | None], attempts: int) -> None:
    writers = [setting(PointerIndex, mail, attempts) for mail in mails]
    explored = explore(start(), writers, indexed)
    assert explored.states_count > 20


# An insert, its entity's end, and one process more. Ids in the entity tell whether an insert was done.
INSERTS: list[tuple[list[str | None], Faults]] = [
    (["a", None], Faults(losses=2)),
    (["a", None], Faults(losses=1)),
    (["a", None, "b"], Faults(losses=1)),
]


@pytest.mark.parametrize(("mails", "faults"), INSERTS)
def test_an_insert_whose_answer_is_lost_keeps_its_entry(mails: list[str | None], faults: Faults) -> None:
    writers = [setting(PointerIndex, mail, 3, Policy()) for mail in mails]
    assert explore(World(), writers, indexed, faults=faults).complete


@pytest.mark.parametrize("mutation", [Careless, Sparing, Tidy])
def test_each_rule_is_needed(mutation: type[PointerIndex]) -> None:
    def broken(mails: list[str | None], attempts: int) -> bool:
        try:
            explore(start(), [setting(mutation, mail, attempts) for mail in mails], indexed)
        except InvariantError:
            return True
        return False

    assert any(broken(mails, max(attempts, 2)) for mails, attempts in WRITERS)


@pytest.mark.skipif("PATTERNS_CAMPAIGN" not in os.environ, reason="it takes minutes; set PATTERNS_CAMPAIGN")
def test_four_writers() -> None:
    writers = [setting(PointerIndex, mail, 2) for mail in ("b", "c", "b", "a")]
    assert explore(start(), writers, indexed, states_max=10_000_000).states_count > 10_000


def test_an_entry_leads_to_its_entity_or_to_none() -> None:
    simulation = Simulation()
    index = PointerIndex("t", entries)
    simulation.run(index.change(KEY, lambda _: {"Mail": "a"}))
    found = simulation.run(index.find(entry("a")))
    assert found is not None
    assert found.key == KEY
    assert simulation.run(index.find(entry("b"))) is None
    simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.REPLACE, KEY, {"Mail": "b"})))
    assert simulation.run(index.find(entry("a"))) is None, "the entry is superfluous"
    simulation.run(index.change(KEY, lambda _: None))
    assert simulation.world.entities("t") == []


class Slow:
    """Moves the clock of a simulation by a minute at writes to a table."""

    def __init__(self, simulation: Simulation, table: str, times: int = 1) -> None:
        self.simulation, self.table, self.times = simulation, table, times
        self.requests: list[tuple[str, str]] = []

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write):
            self.requests.append((effect.table, effect.operation.kind.value))

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write) and effect.table == self.table and self.times:
            self.times -= 1
            self.simulation.now_seconds += 61


@pytest.mark.parametrize("times", [1, 2])
def test_a_commit_is_not_sent_after_the_deadline(times: int) -> None:
    simulation = Simulation()
    slow = Slow(simulation, "mails", times)
    simulation.runtime.failpoints = slow
    change = PointerIndex("t", entries).change(KEY, lambda _: {"Mail": "a"}, attempts=2)
    if times == 1:
        simulation.run(change)
        assert slow.requests == [("mails", "put_merge"), ("mails", "put_merge"), ("t", "insert")]
    else:
        with pytest.raises(Unavailable):
            simulation.run(change)
        assert simulation.world.entities("t") == []


def test_entries_of_a_commit_that_is_answered_late_are_put_again() -> None:
    simulation = Simulation()
    slow = Slow(simulation, "t")
    simulation.runtime.failpoints = slow
    simulation.run(PointerIndex("t", entries).change(KEY, lambda _: {"Mail": "a"}))
    assert slow.requests == [("mails", "put_merge"), ("t", "insert"), ("mails", "put_merge")]


def test_every_fault_leaves_an_entity_with_its_entry() -> None:
    index = PointerIndex("t", entries)

    def rival() -> None:
        simulations[-1].world, _ = simulations[-1].world.perform(
            Write("t", Operation(Kind.MERGE, KEY, {"Other": len(simulations)}))
        )

    simulations: list[Simulation] = []

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        simulations.append(simulation)
        simulation.run(index.change(KEY, lambda _: {"Mail": "a"}))
        simulation.runtime.failpoints = fault
        try:
            simulation.run(index.change(KEY, lambda _: {"Mail": "b"}))
        except Crash:
            indexed(simulation.world)
            return
        indexed(simulation.world)
        assert simulation.world.entity(*entry("b")[:2]) is not None
        assert simulation.world.entity(*entry("a")[:2]) is None, "what is left behind is removed if nothing crashed"

    assert sum(1 for _ in every_fault(attempt, rival)) > 7 * 4
