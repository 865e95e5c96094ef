"""When no message is left, each entity has its eventual entries, in every interleaving."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import Receive, Remove, Sent
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored, Write
from lazulite_patterns.indexes import deferred
from lazulite_patterns.indexes.changes import Changed, Entries
from lazulite_patterns.indexes.deferred import announce, parsed, reconcile
from lazulite_patterns.indexes.entries import NO_INTENT, Entry, target
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Conflict, Policy, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, begin
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Identity, Written
from lazulite_patterns_simulation import Crash, FaultAt, InvariantError, Simulation, World, every_fault, explore
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "jones")
UNMARKED = Policy(marks=0)
CLOCK = ("clock", EntityKey("now", ""))


def entry(mail: object) -> Entry:
    return Entry("mails", EntityKey(str(mail), ""), eventual=True)


def entries(properties: Properties) -> frozenset[Entry]:
    return frozenset({entry(properties["Mail"])})


def ticks(stored: Stored | None) -> int:
    return 0 if stored is None else int(str(stored.properties["Ticks"]))


class Timed(World):
    """After a tick, hidden messages are visible, and no writer commits that began before."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        time = ticks(super().entity(*CLOCK))
        if isinstance(effect, Write) and effect.operation.properties.get("Began", time) != time:
            raise Rejected(400, "TooLate")
        after, answer = super().perform(effect, time * 1000.0)
        return Timed(after._rows, after._queues), answer


@dataclass(frozen=True)
class Writer(PointerIndex):
    """Says at the commit when it began."""

    began: list[int] = field(default_factory=list)

    def _etags(self, entries: frozenset[Entry]) -> Protocol[list[tuple[Entry, Stored]]]:
        found = yield from super()._etags(entries)
        self.began[:] = [ticks((yield from perform(Read(*CLOCK))))]
        return found

    def _commit(
        self, changes: list[Changed], inside: list[Planned], started: Attempts, identity: Identity | None
    ) -> Protocol[Written | None]:
        planned = changes[0].planned("" if identity is None else identity.operation_id)
        if planned is None:
            return None
        timed = replace(planned.operation, properties={**planned.operation.properties, "Began": self.began[0]})
        try:
            yield from perform(Write("t", timed))
        except Rejected as rejected:
            raise Conflict if rejected.code != "TooLate" else rejected from None
        return Written(("",), "")


class Forgetful(Writer):
    """Sends the message after the commit."""

    def _changed(self, changes: list[Changed], entries: Entries, *joined: object) -> Protocol[Written | None]:
        yield from self._etags(frozenset())
        written = yield from self._commit(changes, [], (yield from begin(self.policy)), None)
        later = [(each.key, each.deferred) for each in changes if each.deferred]
        yield from announce(self.queue, self.table, later, self.policy, (yield from begin(self.policy)))
        return written


class Sparing(Writer):
    """Does not put an entry that is there."""

    def _put(self, entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[None]:
        if (yield from self._read(entry)) is None:
            yield from super()._put(entry, key, intent)


class Careless(Writer):
    """Deletes entries whatever their ETags are."""

    def _clean(self, left: list[tuple[Entry, Stored]]) -> Protocol[None]:
        for place, _ in left:
            with suppress(Rejected):
                yield from perform(Write(place.table, Operation(Kind.DELETE, place.key)))


def setting(kind: type[PointerIndex], mail: str | None) -> Callable[[], Protocol[object]]:
    return lambda: kind("t", entries, UNMARKED, "q").change(KEY, lambda _: None if mail is None else {"Mail": mail}, 1)


def tick() -> Protocol[object]:
    return perform(Write(CLOCK[0], Operation(Kind.PUT, CLOCK[1], {"Ticks": 1})))


def working(kind: type[PointerIndex], *, once: bool = False, messages_max: int = 1) -> Callable[[], Protocol[object]]:
    """Handle messages until there is none, or so many."""
    index = kind("t", entries, UNMARKED, "q")

    def run() -> Protocol[object]:
        for _ in range(messages_max):
            received = yield from perform(Receive("q", 0))
            if not received:
                return None
            (message,) = received
            try:
                yield from (hasty if once else reconcile)(index, *parsed(json.loads(message.text)["body"]))
            except Conflict:
                continue
            with suppress(Rejected):
                yield from perform(Remove("q", message.id, message.receipt))
        return None

    return run


def hasty(index: PointerIndex, key: EntityKey, entries: frozenset[Entry]) -> Protocol[None]:
    """Read the entity before the ETags of entries, and only once."""
    entity = yield from index.read(Entry(index.table, key))
    having = frozenset[Entry]() if entity is None else index.entries(entity.properties)
    found = []
    for each in sorted(entries - having):
        stored = yield from index.read(each)
        if stored is not None:
            found.append((each, stored))
    for each in sorted(having):
        yield from index.put(each, key)
    yield from index.clean(found)


def start() -> World:
    simulation = Simulation()
    simulation.world = Timed()
    simulation.run(setting(Writer, "a")())
    simulation.run(working(Writer)())
    assert [target(each) for each in simulation.world.entities("mails")] == [KEY]
    return simulation.world


def found(world: World) -> None:
    entity = world.entity("t", KEY)
    if entity is not None and not world.messages("q"):
        assert world.entity("mails", entry(entity.properties["Mail"]).key) is not None, "no message is left"


def exact(world: World) -> None:
    entity = world.entity("t", KEY)
    expected = [] if entity is None else [entry(entity.properties["Mail"]).key]
    assert [each.key for each in world.entities("mails")] == expected


def half_done() -> World:
    """Return a world in which the mail was changed from `a` to `b`, and a worker put `b` and crashed."""
    simulation = Simulation()
    simulation.world = start()
    simulation.run(setting(Writer, "b")())
    simulation.run(Writer("t", entries, UNMARKED).put(entry("b"), KEY))
    (message,) = simulation.run(perform(Receive("q", 0)))
    simulation.perform(Remove("q", message.id, message.receipt))
    return simulation.world


def holding(kind: type[PointerIndex], *, once: bool) -> Callable[[], Protocol[object]]:
    """Handle the message of the world whose task is half done: it is delivered again, to this worker."""
    both = frozenset({entry("a"), entry("b")})
    return lambda: (hasty if once else reconcile)(kind("t", entries, UNMARKED), KEY, both)


Scenario = tuple[World, list[Callable[[], Protocol[object]]]]


def scenarios(kind: type[PointerIndex] = Writer, *, once: bool = False) -> list[Scenario]:
    worker = working(kind, once=once)
    return [
        (start(), [setting(kind, "b"), worker, tick]),
        (start(), [setting(kind, None), setting(kind, "b"), working(kind, once=once, messages_max=2)]),
        (start(), [setting(kind, "b"), worker, worker]),
        (half_done(), [setting(kind, "a"), holding(kind, once=once), worker]),
    ]


@pytest.mark.parametrize("number", range(4))
def test_an_entity_has_its_entries_when_no_message_is_left(number: int) -> None:
    world, processes = scenarios()[number]
    assert explore(world, processes, found).states_count > 10


@pytest.mark.parametrize(("kind", "once"), [(Forgetful, False), (Sparing, False), (Careless, False), (Writer, True)])
def test_each_rule_of_eventual_entries_is_needed(kind: type[PointerIndex], once: bool) -> None:
    def broken(world: World, processes: list[Callable[[], Protocol[object]]]) -> bool:
        try:
            explore(world, processes, found)
        except InvariantError:
            return True
        return False

    assert any(broken(*each) for each in scenarios(kind, once=once))


def test_every_fault_of_a_write_ends_with_exact_entries() -> None:
    index = PointerIndex("t", entries, Policy(), "q")

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        simulation.run(index.change(KEY, lambda _: {"Mail": "a"}))
        simulation.run(working(PointerIndex, messages_max=3)())
        simulation.runtime.failpoints = fault
        with suppress(Crash, Unavailable):
            simulation.run(index.change(KEY, lambda _: {"Mail": "b"}))
        simulation.runtime.failpoints = FaultAt(-1, fault.fault)
        simulation.now_seconds += 100
        simulation.run(working(PointerIndex, messages_max=3)())
        exact(simulation.world)
        assert simulation.world.messages("q") == []

    assert sum(1 for _ in every_fault(attempt)) > 4 * 4


def test_the_message_is_shown_after_the_commit() -> None:
    simulation = Simulation()
    simulation.run(PointerIndex("t", entries, Policy(), "q").change(KEY, lambda _: {"Mail": "a"}))
    assert len(simulation.perform(Receive("q", 30))) == 1  # type: ignore[arg-type] # a tuple of messages
    hidden = Simulation()
    later = [(KEY, frozenset({entry("a")}))]
    sent = hidden.run(announce("q", "t", later, Policy(), hidden.run(begin(Policy()))))
    assert hidden.perform(Receive("q", 30)) == ()
    hidden.run(deferred.show("q", [*sent, Sent("no", "no")]))
    assert hidden.perform(Receive("q", 30)) != ()
