"""Every interleaving of writers, a reader and a collection, with crashes; each rule is needed."""

from collections.abc import Callable, Sequence

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Conflict, Policy, Unavailable
from lazulite_patterns.outcomes.retries import Attempts
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Identity, write
from lazulite_patterns.shapes import Inconsistent
from lazulite_patterns.shapes.protocols.chunks import Content, Sizes, owner_of
from lazulite_patterns.shapes.protocols.fat import FatProtocol
from lazulite_patterns.shapes.protocols.groups import remove
from lazulite_patterns.shapes.protocols.rests import collect
from lazulite_patterns_simulation import Faults, InvariantError, Simulation, World, explore

from .model_time import Timed, is_over, passing

KEY = EntityKey("p", "e")
SIZES = Sizes(value_bytes=50, row_bytes=50, head_bytes=0, batch_bytes=0, page_rows=1)
UNMARKED = Policy(marks=0)


class Repeating(FatProtocol):
    """Has one name for all generations."""

    def _planned(
        self, key: EntityKey, base: Stored | None, properties: Properties | None, generation: str
    ) -> tuple[Planned, list[Planned]]:
        return super()._planned(key, base, properties, "0" * 16)


class Hasty(FatProtocol):
    """Removes the old rows before the head is flipped."""

    def _flip(self, head: Planned, rows: Sequence[Planned], started: Attempts, own: Identity) -> Protocol[None]:
        base = yield from perform(Read(self.table, head.operation.key))
        content = None if base is None else Content.of(base.properties)
        if content is not None:
            yield from remove(self.table, content.keys(head.operation.key), self.policy)
        yield from super()._flip(head, rows, started, own)


class Blind(FatProtocol):
    """Flips the head whatever it is."""

    def _flip(self, head: Planned, rows: Sequence[Planned], started: Attempts, own: Identity) -> Protocol[None]:
        if head.operation.kind is Kind.REPLACE:
            head = Planned(Operation(Kind.PUT, head.operation.key, head.operation.properties))
        yield from super()._flip(head, rows, started, own)


class HeadFirst(FatProtocol):
    """Flips the head before its rows are written."""

    def _flip(self, head: Planned, rows: Sequence[Planned], started: Attempts, own: Identity) -> Protocol[None]:
        yield from write(self.table, [head], self.policy)
        for each in rows:
            yield from write(self.table, [each], self.policy)


class Impatient(FatProtocol):
    """Its collection removes rows that no head names at once."""


class Stubborn(FatProtocol):
    """Does not read the head again."""

    def _stream(self, head: Stored, content: Content | None, attempts: Attempts) -> Protocol[bytes | None]:
        found = yield from super()._stream(head, content, attempts)
        if found is None:
            raise Inconsistent
        return found


def text(count: int) -> str:
    return chr(ord("a") + count) * 60


def increment(kind: type[FatProtocol]) -> Callable[[], Protocol[object]]:
    protocol = kind("t", UNMARKED, sizes=SIZES)

    def change(bag: Bag) -> Bag:
        count = bag["Count"]
        assert isinstance(count, int)
        assert bag["Text"] == text(count), "a torn read"
        return Bag({**bag, "Count": count + 1, "Text": text(count + 1)})

    def process() -> Protocol[None]:
        yield from protocol.update(KEY, change, 2)
        yield from perform(Write("done", Operation(Kind.PUT_MERGE, EntityKey("d", ""), {})))

    return process


def deletion(kind: type[FatProtocol]) -> Callable[[], Protocol[object]]:
    return lambda: kind("t", UNMARKED, sizes=SIZES).delete(KEY, 2)


def reading(kind: type[FatProtocol]) -> Callable[[], Protocol[object]]:
    def process() -> Protocol[None]:
        try:
            found = yield from kind("t", UNMARKED, sizes=SIZES).get(KEY)
        except (Inconsistent, Unavailable) as error:
            raise AssertionError("a reader met an entity that is not whole") from error
        assert found is None or found["Text"] == text(int(str(found["Count"]))), "a torn read"

    return process


def collecting(kind: type[FatProtocol]) -> Callable[[], Protocol[object]]:
    def process() -> Protocol[object]:
        """Ask the model whether the grace of all rows so far is over, instead of a clock."""
        over = kind is Impatient or (yield from is_over())
        return (yield from collect("t", "p", UNMARKED, -1 if over else 600))

    return process


def start() -> World:
    simulation = Simulation()
    simulation.world = Timed()
    simulation.run(FatProtocol("t", UNMARKED, sizes=SIZES).upsert(KEY, {"Count": 0, "Text": text(0)}))
    return simulation.world


def whole(world: World) -> None:
    """The head's rows are there, and no increment that was acknowledged is lost."""
    head = world.entity("t", KEY)
    if head is None:
        return
    content = Content.of(head.properties)
    assert content is not None
    assert all(world.entity("t", each) is not None for each in content.keys(KEY)), "a row is absent"
    done = world.entity("done", EntityKey("d", ""))
    count = 0 if done is None else int(done.etag.split('"')[1])
    assert int(str(head.properties["Count"])) >= count, "an increment is lost"


Processes = list[Callable[[], Protocol[object]]]


def scenarios(kind: type[FatProtocol]) -> list[Processes]:
    return [
        [increment(kind), increment(kind)],
        [increment(kind), reading(kind), reading(kind)],
        [increment(kind), deletion(kind), reading(kind)],
        [increment(kind), collecting(kind)],
        [increment(kind), collecting(kind), passing],
    ]


@pytest.mark.parametrize("number", range(5))
def test_an_entity_is_whole_at_every_instant(number: int) -> None:
    explored = explore(start(), scenarios(FatProtocol)[number], whole)
    assert explored.states_count > 20


def test_an_insert_whose_answer_is_lost_begins_again_when_the_entity_is_deleted() -> None:
    def insertion() -> Protocol[None]:
        return FatProtocol("t", sizes=SIZES).insert(KEY, {"Count": 0, "Text": text(0)})

    for faults in (Faults(losses=1), Faults(losses=1), Faults(lates=1)):
        explored = explore(Timed(), [insertion, deletion(FatProtocol), reading(FatProtocol)], whole, faults=faults)
        assert explored.complete


@pytest.mark.parametrize("mutation", [Repeating, Hasty, Blind, HeadFirst, Impatient, Stubborn])
def test_each_rule_is_needed(mutation: type[FatProtocol]) -> None:
    def broken(processes: Processes) -> bool:
        try:
            explore(start(), processes, whole)
        except (InvariantError, AssertionError):
            return True
        return False

    assert any(map(broken, scenarios(mutation)))


def test_without_crashes_nothing_is_left() -> None:
    def tidy(world: World) -> None:
        """At the end of all processes each row is one of the head's."""
        whole(world)
        head = world.entity("t", KEY)
        content = None if head is None else Content.of(head.properties)
        done = world.entity("done", EntityKey("d", ""))
        if done is None or done.etag != 'W/"2"':
            return
        owners = {owner_of(each.key) for each in world.entities("t") if each.key != KEY}
        assert content is not None
        assert owners == {(KEY, content.generation)}, "rows are left"

    processes: Processes = [increment(FatProtocol), increment(FatProtocol)]
    explored = explore(start(), processes, tidy, faults=Faults())
    assert explored.ends_count >= 1


def test_a_flip_is_not_sent_after_its_deadline() -> None:
    simulation = Simulation()
    protocol = FatProtocol("t", sizes=SIZES)

    class Slow:
        def before(self, effect: object) -> None:
            return

        def after(self, effect: object) -> None:
            simulation.now_seconds += 151

    simulation.runtime.failpoints = Slow()
    with pytest.raises(Unavailable, match="300 seconds"):
        simulation.run(protocol.insert(KEY, {"Text": text(0)}))
    assert simulation.world.entities("t") == [], "nothing is left"
    with pytest.raises(Conflict):
        simulation.run(protocol.update(KEY, lambda bag: bag))
