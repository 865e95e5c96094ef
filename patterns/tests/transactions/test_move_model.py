"""A moved entity is never in neither table, and no new one is moved, in every interleaving; each rule is needed."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import pytest

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.queues import Send
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Conflict, OutcomeUnknown, Policy
from lazulite_patterns.outcomes.ring import RING, Ring
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.session import Session
from lazulite_patterns.transactions.checks import MoveCheck
from lazulite_patterns.transactions.messages import TaskMessage
from lazulite_patterns.transactions.move import Move, Seen
from lazulite_patterns.transactions.task_queue import TaskQueue
from lazulite_patterns_simulation import Faults, InvariantError, Simulation, World, explore
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "jones")
LATEST = ("model", EntityKey("latest", ""))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = 1, 2
"""Two entities that have the same keys one after the other, in the property `Life`."""


class Tables:
    """What a move knows of a table in memory."""

    def __init__(self, name: str) -> None:
        self.session: Session[Bag] = Session(name, Bags(), Policy())
        self.clients: Mapping[str, object] = {}
        self.containers: Mapping[str, object] = {}


class Watched(World):
    """Keeps the latest version of the first entity that a program wrote: what the invariant compares."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        after, answer = super().perform(effect, now_seconds)
        if isinstance(effect, Write) and effect.table == "source" and "Version" in effect.operation.properties:
            version = {"Version": effect.operation.properties["Version"]}
            if effect.operation.properties["Life"] == FIRST:
                after, _ = after.perform(Write(LATEST[0], Operation(Kind.PUT, LATEST[1], version)))
        return Watched(after._rows, after._queues), answer


def start(there: bool) -> World:
    """Return a world with an entity that is marked, and the message of its move; `there` with an older one, too."""
    ring = Ring.born("move").text
    first = {"Life": FIRST, "Version": 1, RING: ring}
    effects: list[Request] = [
        Write("source", Operation(Kind.INSERT, KEY, first)),
        Send("tasks", TaskMessage("archive", "move", list(KEY)).text),
    ]
    if there:
        effects.append(Write("target", Operation(Kind.INSERT, KEY, {"Life": 0, "Version": 0})))
    world: World = Watched()
    for effect in effects:
        world, _ = world.perform(effect)
    return world


def kept(world: World) -> None:
    latest = world.entity(*LATEST)
    assert latest is not None
    found = [world.entity(table, KEY) for table in ("source", "target")]
    lives = [(each.properties["Life"], each.properties["Version"]) for each in found if each is not None]
    assert (FIRST, latest.properties["Version"]) in lives, f"version {latest.properties['Version']} is in neither table"
    assert found[1] is None or found[1].properties["Life"] != SECOND, "a new entity was moved"


def worker(kind: Callable[..., Move[Bag]]) -> Callable[[], Protocol[object]]:
    move = kind("archive", source=Tables("source"), target=Tables("target"))
    return lambda: TaskQueue("tasks", "poison", {"archive": move}).handle_next(30)


def writer() -> Protocol[object]:
    """Write the next version, as `Table.update` does."""
    session = Tables("source").session
    change: Callable[[Bag], Bag] = lambda bag: Bag({**bag, "Version": int(str(bag["Version"])) + 1})  # noqa: E731
    return session.update(KEY, change, 2, "rebase")


def successor() -> Protocol[object]:
    """Insert a new entity with the same keys, once the first one is moved."""
    new = {"Life": SECOND, "Version": 1, RING: Ring.born("successor").text}
    return (yield from perform(Write("source", Operation(Kind.INSERT, KEY, new))))


def explored(
    kind: type[Move[Bag]],
    processes: list[Callable[[], Protocol[object]]],
    there: bool,
    seen: Callable[[World], None] = kept,
) -> int:
    workers = [worker(kind), worker(kind)]
    return explore(
        start(there), [*workers, *processes], seen, states_max=3_000_000
    ).states_count


PROCESSES: list[list[Callable[[], Protocol[object]]]] = [[writer], [successor], [writer, successor]]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("processes", PROCESSES[:2], ids=["writer", "successor"])
def test_an_entity_is_never_in_neither_table(processes: list[Callable[[], Protocol[object]]], there: bool) -> None:
    states = set()

    def seen(world: World) -> None:
        kept(world)
        found = [world.entity(table, KEY) for table in ("source", "target")]
        states.add(tuple(each and (each.properties["Life"], each.properties["Version"]) for each in found))

    assert explored(Move, processes, there, seen) > 100
    wanted = [(None, (FIRST, 2)), ((FIRST, 2), (FIRST, 1))] if processes == [writer] else [((SECOND, 1), (FIRST, 1))]
    assert {*wanted, (None, (FIRST, 1))} <= states, "what the invariant is about was not reached"


def test_with_a_writer_and_a_successor() -> None:
    assert explored(Move, [writer, successor], there=False) > 10_000


class SourceFirst(Move[Bag]):
    """Reads the target's row last."""

    def _seen(self, key: EntityKey, mark: str) -> Protocol[Seen | None]:
        source = yield from self._source.stored(key)
        if source is None or not self._is_marked(source, mark):
            return None
        return Seen(source, (yield from self._target.stored(key)), self._copy(source))


class BlindCopy(Move[Bag]):
    """Replaces the target whatever its ETag is."""

    def _put(self, seen: Seen) -> Protocol[None]:
        yield from self._target.write([Planned(Operation(Kind.PUT, KEY, seen.copy))])


class BlindDelete(Move[Bag]):
    """Deletes the source whatever its ETag is, as the guide's example does."""

    def _delete(self, source: Stored) -> Protocol[None]:
        yield from self._source.write([Planned(Operation(Kind.DELETE, source.key))])


class Unmarked(Move[Bag]):
    """Moves any entity that has the keys."""

    def _is_marked(self, source: Stored, mark: str) -> bool:
        return True


class DeleteFirst(Move[Bag]):
    """Deletes the source before it is copied."""

    def _put(self, seen: Seen) -> Protocol[None]:
        yield from super()._delete(seen.source)
        yield from super()._put(seen)

    def _delete(self, source: Stored) -> Protocol[None]:
        return
        yield


class Spared(Move[Bag]):
    """Takes an answer about the target for done: a copy that is there is not written again."""

    def _put(self, seen: Seen) -> Protocol[None]:
        if seen.there is None:
            try:
                yield from super()._put(seen)
            except Conflict:
                return


@pytest.mark.parametrize("mutation", [SourceFirst, BlindCopy, BlindDelete, Unmarked, DeleteFirst, Spared])
def test_each_rule_is_needed(mutation: type[Move[Bag]]) -> None:
    def broken(processes: list[Callable[[], Protocol[object]]], there: bool) -> bool:
        try:
            explored(mutation, processes, there)
        except InvariantError:
            return True
        return False

    assert any(broken(processes, there) for processes in PROCESSES for there in (False, True))


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


class ForgetfulCopy(Move[Bag]):
    """Replaces the target without the ids of the writes before."""

    def _put(self, seen: Seen) -> Protocol[None]:
        assert seen.there is not None
        yield from self._target.write([Planned(Operation(Kind.REPLACE, KEY, seen.copy, seen.there.etag))])


class ForgetfulMark(Move[Bag]):
    """Marks the source without the ids of the writes before."""

    def mark(self, base: Stored) -> Protocol[TaskMessage]:
        written = yield from self._source.write([Planned(Operation(Kind.MERGE, base.key, {}, base.etag))])
        return TaskMessage(self.name, written.operation_id, list(base.key))


def updated_meanwhile(kind: type[Move[Bag]], table: str) -> Bag:
    """Update the row of a table, whose answer is lost, while a move writes the same row; return the row."""
    simulation = Simulation()
    simulation.world = start(there=True)
    made: Callable[..., Move[Bag]] = kind
    move = made("archive", source=Tables("source"), target=Tables("target"))
    steps: dict[str, Callable[[], Protocol[object]]] = {
        "source": lambda: move.begin(KEY),
        "target": lambda: move.handle(TaskMessage("archive", "move", list(KEY))),
    }
    simulation.ambient.failpoints = LostMeanwhile(simulation, table, steps[table])
    change: Callable[[Bag], Bag] = lambda bag: Bag({**bag, "Version": 7})  # noqa: E731
    return simulation.run(Tables(table).session.update(KEY, change, 1, "raise")).entity


@pytest.mark.parametrize(("table", "mutation"), [("source", ForgetfulMark), ("target", ForgetfulCopy)])
def test_a_writer_whose_answer_is_lost_finds_its_id_after_a_move(table: str, mutation: type[Move[Bag]]) -> None:
    """A move keeps the ids of the writes before its own, in the source and in the target."""
    assert updated_meanwhile(Move, table)["Version"] == 7
    with pytest.raises(OutcomeUnknown):
        updated_meanwhile(mutation, table)


class Dated(Watched):
    """All rows are of one time, so that only their properties tell what a move left."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        after, answer = super().perform(effect, now_seconds)
        answer = answer._replace(timestamp=NOW) if isinstance(answer, Stored) else answer
        return Dated(after._rows, after._queues), answer


def auditor(check: Callable[[Move[Bag]], MoveCheck]) -> Callable[[], Protocol[object]]:
    """Examine the source's row and repair what is found, however young it is."""
    made: Callable[..., Move[Bag]] = Move
    found = check(made("archive", source=Tables("source"), target=Tables("target")))

    def run() -> Protocol[object]:
        row = yield from perform(Read("source", KEY))
        if row is not None:
            yield from Walk([found], True, -1).look(found, "source", row, NOW)
        return None

    return run


def audited(check: Callable[[Move[Bag]], MoveCheck], processes: list[Callable[[], Protocol[object]]]) -> int:
    world = Dated(start(there=False)._rows, start(there=False)._queues)
    repaired = []

    def seen(world: World) -> None:
        kept(world)
        repaired.append(world.entity("source", KEY) is None and bool(world.messages("tasks")))

    states = explore(world, [worker(Move), auditor(check), *processes], seen).states_count
    assert any(repaired), "the auditor repeated no move"
    return states


@pytest.mark.parametrize("processes", PROCESSES[:2], ids=["writer", "successor"])
def test_a_repair_keeps_the_entity_while_workers_and_writers_run(
    processes: list[Callable[[], Protocol[object]]],
) -> None:
    assert audited(MoveCheck, processes) > 500


class Careless(MoveCheck):
    """Deletes the source whatever its ETag is."""

    def _again(self, row: Stored) -> Protocol[bool]:
        yield from self.move.source.write([Planned(Operation(Kind.DELETE, row.key))])
        return True


class Incurious(MoveCheck):
    """Takes every entity that has a copy, whatever the copy is."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        there = yield from self.move.target.stored(row.key)
        return [] if there is None else [Finding("", table, row.key, 0, "", repair=lambda _: self._again(row))]


@pytest.mark.parametrize(("check", "processes"), [(Careless, [writer]), (Incurious, [successor])])
def test_each_rule_of_a_repair_is_needed(
    check: Callable[[Move[Bag]], MoveCheck], processes: list[Callable[[], Protocol[object]]]
) -> None:
    with pytest.raises(InvariantError):
        audited(check, processes)


def renamed(bag: Bag) -> Bag:
    """Return an entity whose key depends on what a writer changes."""
    return Bag({**bag, "PartitionKey": "p", "RowKey": f"jones {bag['Version']}"})


class Littering(Move[Bag]):
    """Leaves its copies with other keys."""

    def _discard(self, place: EntityKey, etag: str) -> Protocol[None]:
        return
        yield


def copied_once(kind: Callable[..., Move[Bag]]) -> int:
    """Explore a worker and a writer that changes the key of the copy; no copy of another version is left."""
    move = kind("archive", source=Tables("source"), target=Tables("target"), convert=renamed)
    ends = 0

    def seen(world: World) -> None:
        nonlocal ends
        latest, copies = world.entity(*LATEST), world.entities("target")
        assert latest is not None
        if world.entity("source", KEY) is None:
            ends += 1
            assert [each.properties["Version"] for each in copies] == [latest.properties["Version"]]

    processes = [lambda: TaskQueue("tasks", "poison", {"archive": move}).handle_next(30), writer]
    explore(start(there=False), processes, seen, faults=Faults())
    return ends


def test_a_key_that_changes_during_the_move_leaves_no_copy() -> None:
    assert copied_once(Move) >= 1
    with pytest.raises(InvariantError):
        copied_once(Littering)
