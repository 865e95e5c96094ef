"""A repair makes no damage while writers run, in every interleaving; each of its rules is needed.

Time is a number in the model. A tick is a grace: no writer commits after a tick since it began, and an entry that was
put before the tick is old.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns.indexes.check import IndexCheck
from lazulite_patterns.indexes.entries import Entry, passing, pointing_to, target, targets
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy, WriteIds
from lazulite_patterns.outcomes.retries import Attempts
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Identity, Written, write
from lazulite_patterns_simulation import InvariantError, Simulation, World, explore
from lazulite_patterns_simulation.world import Request

from .test_unique import ANN, BOB, entries, entry, unique

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = ("clock", EntityKey("now", ""))
UNMARKED = Policy(marks=0)


def ticks(stored: Stored | None) -> int:
    return 0 if stored is None else int(str(stored.properties["Ticks"]))


class Timed(World):
    """Adds a time to entries, and rejects a commit that began before the last tick."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        time = ticks(super().entity(*CLOCK))
        if isinstance(effect, Write | Batch) and effect.table == "t":
            operations = (effect.operation,) if isinstance(effect, Write) else effect.operations
            if any(each.properties.get("Began", time) != time for each in operations):
                raise Rejected(400, "TooLate")
        if isinstance(effect, Write):
            operation = effect.operation
            if effect.table == "mails":
                timed = replace(operation, properties={**operation.properties, "Ticks": time})
                effect = Write(effect.table, timed)
        after, answer = super().perform(effect, now_seconds)
        if isinstance(effect, Read) and isinstance(answer, Stored):
            answer = self.entity(*effect_place(effect))
        return Timed(after._rows), answer

    def entity(self, table: str, key: EntityKey) -> Stored | None:
        found = super().entity(table, key)
        if found is None or table != "mails":
            return found
        old = ticks(found) < ticks(super().entity(*CLOCK))
        return found._replace(timestamp=NOW - timedelta(seconds=601 if old else 0))


def effect_place(effect: Read) -> tuple[str, EntityKey]:
    return effect.table, effect.key


@dataclass(frozen=True)
class Writer(PointerIndex):
    """Says at the commit when it began."""

    began: list[int] = field(default_factory=list)

    def _etags(self, entries: frozenset[Entry]) -> Protocol[list[tuple[Entry, Stored]]]:
        found = yield from super()._etags(entries)
        self.began[:] = [ticks((yield from perform(Read(*CLOCK))))]
        return found

    def _commit(
        self, changes: list[Any], inside: list[Planned], started: Attempts, identity: Identity | None
    ) -> Protocol[Written | None]:
        timed = [
            each if each.properties is None else each._replace(properties={**each.properties, "Began": self.began[0]})
            for each in changes
        ]
        return (yield from super()._commit(timed, inside, started, identity))


INDEX: Any = SimpleNamespace(
    index=None,
    source="mails",
    entry=lambda *_: None,
    has=lambda _: True,
    at=lambda key: Entry("mails", key, unique=True),
)


class Careless(IndexCheck):
    """Deletes and replaces whatever the ETag is now."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        found = yield from super().examine(table, row, now)

        def repair(policy: Policy) -> Protocol[bool]:
            yield from write("mails", [Planned(Operation(Kind.DELETE, row.key), WriteIds())], policy)
            return True

        return [replace(each, repair=repair) if each.key == row.key and table == "mails" else each for each in found]


class Impatient(IndexCheck):
    """Takes unique entries from their writers at once."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        found = yield from super().examine(table, row, now)
        return [replace(each, deletes=each.deletes and table == "mails") for each in found]


def auditor(kind: type[IndexCheck], grace: float, *mails: str) -> Callable[[], Protocol[object]]:
    """Examine an entity, then some entries."""

    def run() -> Protocol[object]:
        check = kind(PointerIndex("t", entries, UNMARKED), (INDEX,))
        walk = Walk([check], repair=True, grace_seconds=grace, policy=UNMARKED)
        for table, key in (("t", ANN), *(("mails", entry(mail).key) for mail in mails)):
            row = yield from perform(Read(table, key))
            if row is not None:
                yield from walk.look(check, table, row)
        return None

    return run


def setting(key: EntityKey, mail: str | None) -> Callable[[], Protocol[object]]:
    return lambda: Writer("t", entries, UNMARKED).change(key, lambda _: None if mail is None else {"Mail": mail}, 2)


def swap() -> Protocol[object]:
    mails = {ANN: "b", BOB: "a"}
    changes: dict[EntityKey, Any] = {key: lambda _, mail=mail: {"Mail": mail} for key, mail in mails.items()}
    return Writer("t", entries, UNMARKED).change_all(changes, 2)


def tick() -> Protocol[object]:
    return perform(Write(CLOCK[0], Operation(Kind.PUT, CLOCK[1], {"Ticks": 1})))


def committed(*mails: str) -> World:
    """Return a world in which entities have these mails."""
    simulation = Simulation()
    simulation.world = Timed()
    for key, mail in zip((ANN, BOB), mails, strict=False):
        simulation.run(setting(key, mail)())
    return simulation.world


def without_entry(mail: str, claimed: bool) -> World:
    """Return a world in which the entry of a mail is damaged, and perhaps claimed by another entity."""
    world = committed(mail)
    world, _ = world.perform(Write("mails", Operation(Kind.DELETE, entry(mail).key)))
    if claimed:
        pointing = pointing_to(BOB)
        world, _ = world.perform(Write("mails", Operation(Kind.PUT, entry(mail).key, pointing)))
    return world


def with_superfluous(mail: str) -> World:
    """Return a world in which an old entry of a mail was left behind."""
    world, _ = committed("a").perform(Write("mails", Operation(Kind.PUT, entry(mail).key, pointing_to(ANN))))
    world, _ = world.perform(Write(CLOCK[0], Operation(Kind.PUT, CLOCK[1], {"Ticks": 1})))
    return world


def bob_has_his_entry(world: World) -> None:
    """The entity of a writer that keeps to the protocol has its entry, whatever was damaged before."""
    for stored in world.entities("t"):
        pointer = world.entity("mails", entry(stored.properties["Mail"]).key)
        assert stored.key != BOB or (pointer is not None and target(pointer) == BOB)


Scenario = tuple[World, list[Callable[[], Protocol[object]]], Callable[[World], None]]


def scenarios(kind: type[IndexCheck] = IndexCheck, grace: float = 600) -> list[Scenario]:
    return [
        (committed("a"), [setting(ANN, "b"), auditor(kind, grace, "b", "a"), tick], unique),
        (committed("a"), [setting(ANN, "b"), setting(ANN, "a"), auditor(kind, grace, "b"), tick], unique),
        (with_superfluous("b"), [setting(ANN, "b"), auditor(kind, grace, "b")], unique),
        (Timed(), [setting(ANN, "a"), setting(BOB, "a"), auditor(kind, grace, "a"), tick], unique),
        (committed("a"), [setting(ANN, None), setting(BOB, "a"), auditor(kind, grace, "a"), tick], unique),
        (committed("a", "b"), [swap, auditor(kind, grace, "a", "b"), tick], unique),
        (without_entry("a", claimed=False), [setting(BOB, "a"), auditor(kind, grace), tick], bob_has_his_entry),
    ]


@pytest.mark.parametrize("number", range(7))
def test_a_repair_makes_no_damage(number: int) -> None:
    world, processes, invariant = scenarios()[number]
    assert explore(world, processes, invariant).states_count > 10


@pytest.mark.parametrize(("kind", "grace"), [(IndexCheck, -1), (Careless, 600), (Impatient, 600)])
def test_each_rule_of_a_repair_is_needed(kind: type[IndexCheck], grace: float) -> None:
    def broken(
        world: World, processes: list[Callable[[], Protocol[object]]], invariant: Callable[[World], None]
    ) -> bool:
        try:
            explore(world, processes, invariant)
        except InvariantError:
            return True
        return False

    assert any(broken(*each) for each in reversed(scenarios(kind, grace)))


def test_an_entry_that_names_two_entities_is_corrected_when_no_writer_can_commit_any_more() -> None:
    simulation = Simulation()
    simulation.runtime.utc_now = lambda: NOW
    simulation.world = committed("a", "b")
    place = entry("a").key
    simulation.world, _ = simulation.world.perform(Write("mails", Operation(Kind.PUT, place, passing(ANN, BOB))))
    for named in ((ANN, BOB), (ANN,)):
        simulation.run(auditor(IndexCheck, 600, "a")())
        found = simulation.world.entity("mails", place)
        assert found is not None
        assert targets(found) == named
        simulation.run(tick())
    unique(simulation.world)


def test_a_lost_entry_is_inserted_and_an_old_claim_is_taken() -> None:
    for claimed in (False, True):
        simulation = Simulation()
        simulation.runtime.utc_now = lambda: NOW
        simulation.world = without_entry("a", claimed)
        simulation.run(auditor(IndexCheck, 600)())
        found = simulation.world.entity("mails", entry("a").key)
        assert (found is not None and target(found) == ANN) is not claimed
        simulation.run(tick())
        simulation.run(auditor(IndexCheck, 600)())
        unique(simulation.world)
