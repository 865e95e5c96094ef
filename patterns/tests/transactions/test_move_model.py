"""A moved entity is never in neither table, and no new one is moved, in every interleaving; each rule is needed."""

import math
from collections.abc import Callable, Mapping

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.queues import Send
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Conflict, Policy
from lazulite_patterns.outcomes.ring import RING, Ring
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.simulation import InvariantError, World, explore
from lazulite_patterns.simulation.world import Request
from lazulite_patterns.table.session import Session
from lazulite_patterns.transactions.letters import Letter
from lazulite_patterns.transactions.move import Move, Seen
from lazulite_patterns.transactions.work import Work

KEY = EntityKey("p", "jones")
LATEST = ("model", EntityKey("latest", ""))
FIRST, SECOND = 1, 2
"""Two entities that have the same keys one after the other, in the property `Life`."""


class Tables:
    """What a move knows of a table in memory."""

    def __init__(self, name: str) -> None:
        self.session: Session[Bag] = Session(name, Bags(), Policy())
        self.clients: Mapping[str, object] = {}


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
        Send("tasks", Letter("archive", "move", list(KEY)).text),
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
    return lambda: Work("tasks", "poison", {"archive": move}).once(30)


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
    return explore(start(there), [*workers, *processes], seen, crashes_max=2, states_max=3_000_000).states_count


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
