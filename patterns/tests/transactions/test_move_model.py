"""A moved entity is never lost, doubled or brought back, in every interleaving; each rule is needed."""

import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.queues import Send
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Page, Properties, Read, Stored, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.table.session import Session
from lazulite_patterns.transactions.checks import MoveCheck
from lazulite_patterns.transactions.move import Move
from lazulite_patterns.transactions.moving import Inbox, PendingMove
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns_simulation import Explored, Faults, InvariantError, Simulation, World, explore
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "jones")
WRITTEN, REMOVED = EntityKey("written", ""), EntityKey("removed", "")
"""Where the model keeps the last version that a program wrote, and the last one that a reader deleted."""
BY_READER = {"By": "a reader"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLDER, FIRST, SECOND = 0, 1, 2
"""Three entities with the same keys, in the property `Life`: in the target before, moved, and in the source after."""
NO_FAULTS, A_LOSS, LATE = Faults(), Faults(losses=1), Faults(lates=1)


class Tables:
    """What a move knows of a table in memory."""

    def __init__(self, name: str) -> None:
        self.session: Session[Bag] = Session(name, Bags(), Policy())
        self.clients: Mapping[str, object] = {}
        self.containers: Mapping[str, object] = {}


class Watched(World):
    """Keeps what the invariant compares. All rows are of one time."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        before = moved(self)
        after, answer = super().perform(effect, now_seconds)
        for key, version in self._kept(effect, before):
            after, _ = after.perform(Write("model", Operation(Kind.PUT, key, {"Version": version})))
        answer = answer._replace(timestamp=NOW) if isinstance(answer, Stored) else answer
        return Watched(after._rows, after._queues), answer

    @staticmethod
    def _kept(effect: Request, before: Mapping[EntityKey, object]) -> list[tuple[EntityKey, object]]:
        if not isinstance(effect, Write):
            return []
        operation = effect.operation
        if operation.properties == BY_READER:
            return [(REMOVED, before[operation.key])] if operation.key in before else []
        wrote = effect.table == "source" and operation.properties.get("Life") == FIRST
        return [(WRITTEN, operation.properties["Version"])] if wrote else []


def moved(world: World) -> dict[EntityKey, object]:
    """Return the versions of the entity in the target."""
    rows = (each.properties for each in world.entities("target"))
    return {
        EntityKey(str(each["PartitionKey"]), str(each["RowKey"])): each["Version"] for each in rows if _is_first(each)
    }


def _is_first(properties: Properties) -> bool:
    return properties.get("Life") == FIRST


def kept(world: World, key: EntityKey) -> object:
    found = world.entity("model", key)
    return None if found is None else found.properties["Version"]


def holds(world: World) -> None:
    """The last version is somewhere, unless a reader deleted it; what it deleted is not there again; no copy is old."""
    source, written, removed = world.entity("source", KEY), kept(world, WRITTEN), kept(world, REMOVED)
    versions = list(moved(world).values())
    assert not any(each.properties.get("Life") == SECOND for each in world.entities("target")), "a new entity was moved"
    if source is not None and _is_first(source.properties):
        assert source.properties["Version"] == written
        assert removed is None or not versions, "what was deleted is there again"
        return
    assert removed in {None, written}, "an update is lost"
    expected = [] if removed is not None else [written]
    assert versions == expected, f"{versions} in place of {expected}"


def renamed(key: str) -> Callable[[Bag], Bag]:
    """Return a conversion to a key with the version."""
    return lambda bag: Bag({**bag, key: f"{bag[key]} {bag['Version']}"})


CONVERSIONS = {"same": None, "row": renamed("RowKey"), "partition": renamed("PartitionKey")}
PLACES = {
    "same": [KEY],
    "row": [EntityKey("p", "jones 1"), EntityKey("p", "jones 2")],
    "partition": [EntityKey("p 1", "jones"), EntityKey("p 2", "jones")],
}


class Setting:
    """A world with an entity whose move was started, and the processes of a model."""

    def __init__(self, kind: type[Move[Bag]] = Move, conversion: str = "same", there: bool = False) -> None:
        self.kind: Callable[..., Move[Bag]] = kind
        self.conversion = conversion
        simulation = Simulation()
        simulation.world = Watched()
        first = {"Life": FIRST, "Version": 1}
        simulation.run(perform(Write("source", Operation(Kind.INSERT, KEY, first))))
        if there:
            older = Operation(Kind.INSERT, KEY, {"Life": OLDER, "Version": 0})
            simulation.run(perform(Write("target", older)))
        self.message = simulation.run(self.move().begin(KEY))
        simulation.run(perform(Send("tasks", self.message.text)))
        self.world = simulation.world

    def move(self) -> Move[Bag]:
        tables = {"source": Tables("source"), "target": Tables("target")}
        return self.kind("archive", **tables, convert=CONVERSIONS[self.conversion])

    def worker(self) -> Protocol[None]:
        """Handle the message; again after a conflict, as a queue delivers it again."""
        with suppress(Conflict):
            yield from self.move().handle(self.message)
            return
        yield from self.move().handle(self.message)

    def queued(self) -> Protocol[object]:
        """Receive the message, and handle it."""
        return TaskQueue("tasks", "poison", {"archive": self.move()}).handle_next(30)

    def reader(self) -> Protocol[None]:
        """Delete what is in the target."""
        for key in PLACES[self.conversion]:
            row = yield from perform(Read("target", key))
            if row is not None:
                yield from perform(Write("target", Operation(Kind.DELETE, key, BY_READER, row.etag)))
                return

    def writer(self) -> Protocol[object]:
        """Write the next version into the source, as `Table.update` does."""
        change: Callable[[Bag], Bag] = lambda bag: Bag({**bag, "Version": 2})  # noqa: E731
        return Tables("source").session.update(KEY, change, 2, "rebase")

    def successor(self) -> Protocol[object]:
        """Insert a new entity with the same keys, once the first one is moved."""
        new = {"Life": SECOND, "Version": 1, RING: WriteIds.born("successor").text}
        return (yield from perform(Write("source", Operation(Kind.INSERT, KEY, new))))

    def auditor(self) -> Protocol[None]:
        """Examine the rows of both tables once, and repair what is found, however young it is."""
        check = MoveCheck(self.move())
        for table in ("target", "source"):
            page = yield from perform(Page(table))
            for row in page.entities:
                yield from Walk([check], True, -1).look(check, table, row._replace(timestamp=NOW))

    def explored(self, names: str, faults: Faults = NO_FAULTS, seen: Callable[[World], None] = holds) -> Explored:
        processes = [getattr(self, name) for name in names.split()]
        return explore(self.world, processes, seen, faults=faults, states_max=2_000_000)


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize(
    ("names", "faults"),
    [
        ("worker worker reader", NO_FAULTS),
        ("worker reader writer", Faults(losses=1, lates=1)),
        ("worker auditor reader", NO_FAULTS),
        ("queued writer", A_LOSS),
    ],
)
def test_a_moved_entity_is_neither_lost_nor_doubled_nor_brought_back(
    conversion: str, names: str, faults: Faults
) -> None:
    assert Setting(conversion=conversion).explored(names, faults).complete


def test_a_moved_entity_is_kept_by_two_workers_and_a_writer() -> None:
    assert Setting().explored("worker worker writer").complete


@pytest.mark.skipif("PATTERNS_CAMPAIGN" not in os.environ, reason="it takes minutes; set PATTERNS_CAMPAIGN")
@pytest.mark.parametrize(
    ("conversion", "names", "faults"),
    [
        *((each, "worker worker reader", LATE) for each in CONVERSIONS),
        ("row", "worker worker writer", NO_FAULTS),
        ("same", "worker worker writer", A_LOSS),
        ("same", "worker worker writer reader", NO_FAULTS),
        ("same", "queued queued writer", NO_FAULTS),
    ],
)
def test_a_moved_entity_in_larger_models(conversion: str, names: str, faults: Faults) -> None:
    found = Setting(conversion=conversion).explored(names, faults)
    print(conversion, names, faults, found)
    assert found.complete


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("names", ["worker worker successor", "worker writer successor", "queued auditor successor"])
def test_no_new_entity_is_moved(names: str, there: bool) -> None:
    states = set()

    def seen(world: World) -> None:
        if moved(world) or not there:
            holds(world)
        source = world.entity("source", KEY)
        states.add((source and source.properties["Life"], *moved(world).values()))

    assert Setting(there=there).explored(names, NO_FAULTS, seen).complete
    assert {(FIRST,), (FIRST, 1), (SECOND, 1)} <= states, "what the invariant is about was not reached"


class Unfenced(Move[Bag]):
    """Writes the copy without its inbox row, as a move without one does."""

    def _put(self, inbox: Inbox, mark: PendingMove, source: Stored, copy: Properties) -> Protocol[Inbox]:
        there = yield from self._target.stored(EntityKey(str(copy["PartitionKey"]), str(copy["RowKey"])))
        kind, etag = (Kind.INSERT, None) if there is None else (Kind.REPLACE, there.etag)
        key = EntityKey(str(copy["PartitionKey"]), str(copy["RowKey"]))
        yield from self._target.write([Planned(Operation(kind, key, copy, etag))])
        return inbox


class Unchecked(Move[Bag]):
    """Copies an update again, whatever became of the copy."""

    def _check_made(self, inbox: Inbox, copy: Stored | None) -> None:
        """Take it for the one that was made."""


class SourceFirst(Move[Bag]):
    """Reads the source before the inbox row."""

    def _opened(self, key: EntityKey, home: str) -> Protocol[Inbox]:
        self.source_first = yield from self._source.stored(key)
        return (yield from super()._opened(key, home))

    def _read(self, key: EntityKey) -> Protocol[Stored | None]:
        return self.source_first
        yield


class BlindDelete(Move[Bag]):
    """Deletes the source whatever its ETag is, as the guide's example does."""

    def _delete(self, source: Stored) -> Protocol[None]:
        yield from self._source.write([Planned(Operation(Kind.DELETE, source.key))])


class DeleteFirst(Move[Bag]):
    """Deletes the source before it is copied."""

    def _put(self, inbox: Inbox, mark: PendingMove, source: Stored, copy: Properties) -> Protocol[Inbox]:
        yield from super()._delete(source)
        return (yield from super()._put(inbox, mark, source, copy))

    def _delete(self, source: Stored) -> Protocol[None]:
        return
        yield


class ForgetFirst(Move[Bag]):
    """Deletes the inbox row before the source."""

    def _put(self, inbox: Inbox, mark: PendingMove, source: Stored, copy: Properties) -> Protocol[Inbox]:
        made = yield from super()._put(inbox, mark, source, copy)
        yield from self._forget(made)
        return made


class Unmarked(Move[Bag]):
    """Moves any entity that has the keys."""

    def _read(self, key: EntityKey) -> Protocol[Stored | None]:
        found = yield from super()._read(key)
        mark = PendingMove("archive", "0000000000000001", key.partition_key)
        return None if found is None else found._replace(properties={**found.properties, "_Moving": mark.text})


class Littering(Move[Bag]):
    """Leaves its copy in the home before."""

    def _leave(self, inbox: Inbox, mark: PendingMove) -> Protocol[None]:
        yield from self._forget(inbox)


class Hasty(Move[Bag]):
    """Leaves a home though another worker is about to copy there."""

    def _leave(self, inbox: Inbox, mark: PendingMove) -> Protocol[None]:
        if inbox.has(mark):
            yield from super()._leave(inbox, mark)
        else:
            yield from self._forget(inbox)


@pytest.mark.parametrize(
    ("mutation", "conversion", "names"),
    [
        (Unfenced, "same", "worker worker reader"),
        (Unchecked, "same", "worker writer reader"),
        (SourceFirst, "same", "worker worker reader"),
        (BlindDelete, "same", "worker writer"),
        (DeleteFirst, "same", "worker"),
        (ForgetFirst, "same", "worker worker reader"),
        (Unmarked, "same", "worker worker successor"),
        (Littering, "partition", "worker worker writer"),
        (Hasty, "partition", "writer worker worker"),
    ],
)
def test_each_rule_is_needed(mutation: type[Move[Bag]], conversion: str, names: str) -> None:
    with pytest.raises(InvariantError):
        Setting(mutation, conversion).explored(names)


class Careless(MoveCheck):
    """Deletes the source whatever its ETag is."""

    def _again(self, key: EntityKey, mark: PendingMove) -> Protocol[bool]:
        yield from self.move.source.write([Planned(Operation(Kind.DELETE, key))])
        return True


class Incurious(MoveCheck):
    """Takes every inbox row for one that is left."""

    def _inbox(self, inbox: Inbox, table: str, now: datetime) -> Protocol[list[object]]:  # type: ignore[override]
        yield from write(table, [inbox.planned(Kind.DELETE)], self.move.target.policy)
        return []


@pytest.mark.parametrize(("check", "names"), [(Careless, "auditor writer"), (Incurious, "worker auditor reader")])
def test_each_rule_of_a_repair_is_needed(check: type[MoveCheck], names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "MoveCheck", check)
    with pytest.raises(InvariantError):
        Setting().explored(names)


class LostMeanwhile:
    """Failpoints: after the first write to a table, other work is done, and then the answer is lost."""

    def __init__(self, simulation: Simulation, table: str, work: Callable[[], Protocol[object]]) -> None:
        self._simulation, self._table, self._work, self._done = simulation, table, work, False

    def before(self, effect: Effect[object]) -> None: ...

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Write) and effect.table == self._table and not self._done:
            self._done = True
            self._simulation.run(self._work())
            raise ResultUnknown("lost")


class ForgetfulMark(Move[Bag]):
    """Marks the source without the ids of the writes before."""

    def _mark(self, base: Stored, mark: PendingMove) -> Protocol[None]:
        operation = Operation(Kind.MERGE, base.key, {"_Moving": mark.text}, base.etag)
        yield from self._source.write([Planned(operation)])


class ForgetfulCopy(Move[Bag]):
    """Replaces the target without the ids of the writes before."""

    def _put(self, inbox: Inbox, mark: PendingMove, source: Stored, copy: Properties) -> Protocol[Inbox]:
        there = yield from self._target.stored(KEY)
        assert there is not None
        yield from self._target.write([Planned(Operation(Kind.REPLACE, KEY, copy, there.etag))])
        return inbox


def updated_meanwhile(kind: type[Move[Bag]], table: str) -> Bag:
    """Update the row of a table, whose answer is lost, while a move writes the same row; return the row."""
    setting = Setting(kind, there=True)
    simulation = Simulation()
    simulation.world = setting.world
    steps: dict[str, Callable[[], Protocol[object]]] = {
        "source": lambda: setting.move().begin(KEY),
        "target": lambda: setting.move().handle(setting.message),
    }
    if table == "source":  # The update is one before the move began.
        simulation.run(Tables("source").session.upsert(Bag(PartitionKey="p", RowKey="jones", Life=FIRST, Version=1)))
    simulation.runtime.failpoints = LostMeanwhile(simulation, table, steps[table])
    change: Callable[[Bag], Bag] = lambda bag: Bag({**bag, "Version": 7})  # noqa: E731
    return simulation.run(Tables(table).session.update(KEY, change, 1, "raise")).entity


@pytest.mark.parametrize(("table", "mutation"), [("source", ForgetfulMark), ("target", ForgetfulCopy)])
def test_a_writer_whose_answer_is_lost_finds_its_id_after_a_move(table: str, mutation: type[Move[Bag]]) -> None:
    """A move keeps the ids of the writes before its own, in the source and in the target."""
    assert updated_meanwhile(Move, table)["Version"] == 7
    with pytest.raises(OutcomeUnknown):
        updated_meanwhile(mutation, table)
