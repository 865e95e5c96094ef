"""Every interleaving of writers and readers of wide entities, with crashes; each rule is needed."""

from collections.abc import Callable, Sequence

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes import Inconsistent
from lazulite_patterns.shapes.protocols.wide import VERSION, Sizes, WideProtocol, joined
from lazulite_patterns_simulation import InvariantError, Simulation, World, explore

KEY = EntityKey("p", "e")
SIZES = Sizes(properties=3, page_rows=1)
UNMARKED = Policy(marks=0)
Processes = list[Callable[[], Protocol[object]]]


class Unchecked(WideProtocol):
    """Does not compare versions."""

    def _read(self, key: EntityKey) -> Protocol[list[Stored]]:
        self._check(key)
        return (yield from self._keys(key))


class Counting(WideProtocol):
    """Has numbers that begin again for versions."""

    def _row(self, key: EntityKey, number: int, properties: Properties, base: Sequence[Stored]) -> Planned:
        count = int(str(base[0].properties[VERSION])) if base else 0
        return super()._row(key, number, {**properties, VERSION: str(count + 1)}, base)


class Blind(WideProtocol):
    """Replaces the head whatever it is."""

    def _row(self, key: EntityKey, number: int, properties: Properties, base: Sequence[Stored]) -> Planned:
        planned = super()._row(key, number, properties, base)
        return Planned(Operation(Kind.PUT, planned.operation.key, planned.operation.properties))


class Apart(WideProtocol):
    """Writes one row after the other."""

    def _commit(self, key: EntityKey, base: Sequence[Stored], properties: Properties | None) -> Protocol[None]:
        parts = [] if properties is None else self._divided(key, properties)
        for number, each in enumerate(parts):
            row = {**each, VERSION: "1", **({"_Rows": len(parts)} if not number else {})}
            yield from write(self.table, [self._row(key, number, row, base)], self.policy)


def increment(kind: type[WideProtocol]) -> Callable[[], Protocol[object]]:
    def change(bag: Bag) -> Bag:
        count = bag["A"]
        assert isinstance(count, int)
        assert count == bag["B"], "a torn read"
        return Bag({**bag, "A": count + 1, "B": count + 1})

    def process() -> Protocol[None]:
        yield from kind("t", UNMARKED, SIZES).update(KEY, change, 2)
        yield from perform(Write("done", Operation(Kind.PUT, EntityKey("d", ""))))

    return process


def again(kind: type[WideProtocol]) -> Callable[[], Protocol[object]]:
    """Delete the entity, and insert another one."""

    def process() -> Protocol[None]:
        yield from kind("t", UNMARKED, SIZES).delete(KEY, 2)
        yield from kind("t", UNMARKED, SIZES).insert(KEY, {"A": 9, "B": 9})

    return process


def reading(kind: type[WideProtocol]) -> Callable[[], Protocol[object]]:
    def process() -> Protocol[None]:
        try:
            found = yield from kind("t", UNMARKED, SIZES).get(KEY)
        except Inconsistent as error:
            raise AssertionError("a reader met an entity that is not whole") from error
        assert found is None or found["A"] == found["B"], "a torn read"

    return process


def start(kind: type[WideProtocol]) -> World:
    simulation = Simulation()
    simulation.run(kind("t", UNMARKED, SIZES).upsert(KEY, {"A": 0, "B": 0}))
    return simulation.world


def whole(world: World) -> None:
    rows = world.entities("t")
    if not rows:
        return
    found = joined(KEY, rows)
    assert len(rows) == 2
    assert found["A"] == found["B"], "rows of two writes"
    done = world.entity("done", EntityKey("d", ""))
    assert int(str(found["A"])) >= (0 if done is None else int(done.etag.split('"')[1])), "an increment is lost"


def scenarios(kind: type[WideProtocol]) -> list[Processes]:
    return [
        [increment(kind), increment(kind), increment(kind)],
        [increment(kind), increment(kind), reading(kind)],
        [again(kind), reading(kind)],
        [again(kind), increment(kind), reading(kind)],
    ]


@pytest.mark.parametrize("number", range(4))
def test_an_entity_is_whole_at_every_instant(number: int) -> None:
    explored = explore(start(WideProtocol), scenarios(WideProtocol)[number], whole)
    assert explored.states_count > 5


@pytest.mark.parametrize("mutation", [Unchecked, Counting, Blind, Apart])
def test_each_rule_is_needed(mutation: type[WideProtocol]) -> None:
    def broken(processes: Processes) -> bool:
        try:
            explore(start(mutation), processes, whole)
        except (InvariantError, AssertionError):
            return True
        return False

    assert any(map(broken, scenarios(mutation)))
