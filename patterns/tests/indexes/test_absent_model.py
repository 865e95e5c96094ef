"""Inserts of one absent entity, which no ETag guards, keep its entries in every interleaving; each rule is needed."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.failpoints import Crash, NoFailpoints
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored, Write
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.changes import Changed, InsertState
from lazulite_patterns.indexes.copies import PendingEntry
from lazulite_patterns.indexes.entries import (
    NO_INTENT,
    PENDING,
    EntriesOf,
    Entry,
    digest,
    intents,
    pointing_to,
    targets,
)
from lazulite_patterns.indexes.lists import Change
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.grace import GRACE_SECONDS
from lazulite_patterns.outcomes.writes import Identity
from lazulite_patterns_simulation import Faults, InvariantError, Simulation, World, explore

from .numbering import Numbering, of_process

ANN, BOB = EntityKey("p", "ann"), EntityKey("p", "bob")
POLICY = Policy(marks=2)
NO_LIVES: Mapping[EntityKey, InsertState] = {}
KINDS: dict[str, Callable[[str, EntityKey], Entry]] = {
    "pointer": lambda mail, key: Entry("mails", EntityKey(mail, digest(key))),
    "unique": lambda mail, key: Entry("mails", EntityKey(mail, ""), unique=True),
    "copy": lambda mail, key: Entry("mails", EntityKey(mail, digest(key)), copy=("Age",)),
    "list": lambda mail, key: Entry("mails", EntityKey(mail, digest(key)), listed=True),
    "blob": lambda mail, key: Entry("mails", EntityKey(mail, digest(key)), listed=True, container="c"),
}
Process = Callable[[], Protocol[object]]


def entries_of(kind: str) -> EntriesOf:
    def entries(properties: Properties) -> frozenset[Entry]:
        key = EntityKey(str(properties["PartitionKey"]), str(properties["RowKey"]))
        return frozenset({KINDS[kind](str(properties["Mail"]), key)})

    return entries


def setting(
    kind: str, number: int, mail: str | None, key: EntityKey = ANN, attempts: int = 2, by: type[Numbering] = Numbering
) -> Process:
    numbered = of_process(by, number)
    properties = None if mail is None else {"Mail": mail[:1], "Age": len(mail)}
    return lambda: numbered("t", entries_of(kind), POLICY).change(key, lambda _: properties, attempts)


def found(kind: str) -> Callable[[World], None]:
    """Return the invariant: each entity has its entry, a unique value one entity, and copies are right or marked."""

    def invariant(world: World) -> None:
        simulation = Simulation()
        simulation.world = world
        entities = world.entities("t")
        for each in entities:
            (entry,) = entries_of(kind)(each.properties)
            pointer = simulation.run(PointerIndex("t", entries_of(kind), POLICY).read(entry))
            assert pointer is not None, f"{each.properties} has no entry"
            assert each.key in targets(pointer), f"{each.properties} has the entry of another entity"
            if entry.copy and not pointer.properties.get(PENDING):
                assert pointer.properties["Age"] == each.properties["Age"], "an old copy"
        if kind == "unique":
            assert len({each.properties["Mail"] for each in entities}) == len(entities), "two entities have one mail"
        if kind == "copy" and not entities:
            assert all(each.properties.get(PENDING) for each in world.entities("mails")), "a copy of nothing"

    return invariant


SCENARIOS: list[tuple[Sequence[tuple[str | None, EntityKey]], Faults]] = [
    ([("a", ANN), ("a", ANN), (None, ANN)], Faults()),
    ([("a", ANN), ("aa", ANN), (None, ANN)], Faults()),
    ([("a", ANN), ("a", ANN), (None, ANN)], Faults(losses=1)),
    ([("a", ANN), (None, ANN)], Faults(lates=1, losses=1)),
    ([("a", ANN), ("a", ANN), ("b", ANN)], Faults()),
    ([("a", ANN), (None, ANN), ("a", BOB)], Faults(lates=1)),
]


LONG = {("unique", 2), ("copy", 2), *((kind, number) for kind in ("list", "blob") for number in (2, 4, 5))}
"""What takes a minute and more: each writer begins once there."""
LARGEST = {("list", 2), ("blob", 2), ("blob", 4)}
"""What has hundreds of thousands of states if each writer begins twice: one of them does, and each in its turn."""


def attempts_of(kind: str, number: int) -> list[list[int]]:
    """Return how often each writer may begin, for each exploration of a scenario."""
    writers = range(len(SCENARIOS[number][0]))
    if (kind, number) in LONG and "PATTERNS_CAMPAIGN" not in os.environ:
        return [[1 for _ in writers]]
    if (kind, number) in LARGEST:
        return [[2 if each == again else 1 for each in writers] for again in writers]
    return [[2 for _ in writers]]


@pytest.mark.parametrize("number", range(len(SCENARIOS)))
@pytest.mark.parametrize("kind", KINDS)
def test_an_entity_that_is_inserted_by_two_has_its_entry_at_every_instant(kind: str, number: int) -> None:
    writers, faults = SCENARIOS[number]
    for attempts in attempts_of(kind, number):
        numbered = enumerate(zip(writers, attempts, strict=True), 1)
        processes = [setting(kind, each, *writer, most) for each, (writer, most) in numbered]
        assert explore(World(), processes, found(kind), faults=faults).complete


class Silent(Numbering):
    """Puts no intents."""

    def _lives(self, changes: list[Changed], own: Identity | None) -> Protocol[dict[EntityKey, InsertState]]:
        lives = yield from super()._lives(changes, own)
        return {key: life._replace(intent=NO_INTENT) for key, life in lives.items()}


class Hasty(Numbering):
    """Removes what it leaves behind whatever intents it has."""

    def _pending(self, pointer: Stored, birth: str) -> Protocol[frozenset[str]]:
        return frozenset()
        yield

    def _settled(self, marked: PendingEntry, properties: Properties | None) -> Protocol[None]:
        if properties is None and marked.etag is not None:
            operation = Operation(Kind.DELETE, marked.entry.key, etag=marked.etag)
            with suppress(Rejected):
                yield from perform(Write(marked.entry.table, operation))
        else:
            yield from super()._settled(marked, properties)


class Alike(Numbering):
    """Puts the same intent before each of its inserts."""

    def _lives(self, changes: list[Changed], own: Identity | None) -> Protocol[dict[EntityKey, InsertState]]:
        sure = None if own is None else Identity(own.operation_id)
        return (yield from super()._lives(changes, sure))


class Overwriting(Numbering):
    """Drops the intents of others."""

    def _put(self, entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[str | None]:
        if entry.listed:
            yield from lists.apply(entry, Change(take=((key, None),)), self.policy)
            return (yield from super()._put(entry, key, intent))
        put = Operation(Kind.PUT, entry.key, {**pointing_to(key), **intent})
        yield from perform(Write(entry.table, put))
        return None

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        for entry, key in entries:
            yield from perform(Write(entry.table, Operation(Kind.PUT, entry.key, pointing_to(key))))
        return (yield from super()._marks(entries, lives))


class Settling(Numbering):
    """Fills copies after a commit that may be that of an earlier request."""

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        marks = yield from super()._marks(entries, lives)
        if any("_again" in name for life in lives.values() for name in life.intent):
            for each in marks:
                row = yield from self._read(Entry(self.table, each.key))
                if row is not None:
                    yield from self._settled(each, row.properties)
        return marks


@pytest.mark.parametrize("kind", ["pointer", "unique", "copy", "list"])
@pytest.mark.parametrize("mutation", [Silent, Hasty, Alike, Overwriting, Settling])
def test_each_rule_of_inserts_is_needed(mutation: type[Numbering], kind: str) -> None:
    if mutation is Overwriting and kind == "unique":
        pytest.skip("a unique entry is never put unconditionally")
    if mutation is Settling and kind != "copy":
        pytest.skip("only copies are settled")

    def broken(number: int) -> bool:
        writers, faults = SCENARIOS[number]
        processes = [setting(kind, each, *writer, by=mutation) for each, writer in enumerate(writers, 1)]
        try:
            explore(World(), processes, found(kind), faults=faults)
        except InvariantError:
            return True
        return False

    assert any(broken(number) for number in (0, 3, 5))


class CrashBefore:
    """Crashes before a write to a table."""

    def __init__(self, table: str) -> None:
        self.table = table

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write) and effect.table == self.table:
            raise Crash

    def after(self, effect: Effect[object]) -> None:
        """Let it pass."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_no_insert_needs_is_removed_and_another_one_after_the_grace(kind: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    simulation = Simulation()
    simulation.runtime.utc_now = lambda: now
    index = PointerIndex("t", entries_of(kind), POLICY)
    place = KINDS[kind]("a", ANN)

    def insert_and_delete() -> Stored | None:
        simulation.run(index.change(ANN, lambda _: {"Mail": "a", "Age": 1}))
        for _ in range(3):
            simulation.run(index.change(ANN, lambda _: {"Mail": "a", "Age": 2}))
        simulation.run(index.change(ANN, lambda _: None))
        return simulation.run(index.read(place))

    assert insert_and_delete() is None
    simulation.runtime.failpoints = CrashBefore("t")
    with pytest.raises(Crash):
        simulation.run(index.change(ANN, lambda _: {"Mail": "a", "Age": 1}))
    simulation.runtime.failpoints = NoFailpoints()
    left = insert_and_delete()
    assert left is not None, "the insert that crashed may arrive yet"
    assert len(intents(left)) == 1, "the intents of inserts that are done are withdrawn"
    for _ in range(300):
        insert_and_delete()
    left = simulation.run(index.read(place))
    assert left is not None
    assert len(intents(left)) == 1
    now += timedelta(seconds=GRACE_SECONDS + 1)
    assert insert_and_delete() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_whose_insert_is_rejected_withdraws_its_intent(kind: str) -> None:
    simulation = Simulation()
    index = PointerIndex("t", entries_of(kind), POLICY)

    class Rival:
        """Inserts the entity before the first insert arrives."""

        def before(self, effect: Effect[object]) -> None:
            if isinstance(effect, Write) and effect.table == "t":
                simulation.runtime.failpoints = NoFailpoints()
                simulation.run(index.change(ANN, lambda _: {"Mail": "a", "Age": 1}))

        def after(self, effect: Effect[object]) -> None:
            """Let it pass."""

    simulation.runtime.failpoints = Rival()
    simulation.run(index.change(ANN, lambda _: {"Mail": "a", "Age": 2}))
    pointer = simulation.run(index.read(KINDS[kind]("a", ANN)))
    assert pointer is not None
    assert len(intents(pointer)) == 1, "that of the insert that was done"
    simulation.run(index.change(ANN, lambda _: None))
    assert simulation.run(index.read(KINDS[kind]("a", ANN))) is None
