"""Copies agree at every instant, in every interleaving, with crashes; each rule is needed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.shapes import Ref
from lazulite_patterns.shapes.protocols.copies import AnyCopied, CopiesProtocol
from lazulite_patterns.table.session import Session, kinds_of
from lazulite_patterns_simulation import InvariantError, Simulation, World, explore

from .staff import COPIED, Department, Employee, manages

Both = Employee | Department
ANN, BOB = Employee("p", 1, "Ann"), Employee("p", 2, "Bob")
SALES, IT = Department("p", "Sales", 1), Department("p", "IT", 1)
MOVED = EntityKey("moved", "")
"""Where it stands that Bob became the manager of Sales."""
Processes = list[Callable[[], Protocol[object]]]


class Untouched(CopiesProtocol[Both]):
    """Does not check that the target is still the same."""

    def target(self, ref: Ref[Any, Any], holder: object, key: EntityKey) -> Protocol[Stored | None]:
        found = yield from super().target(ref, holder, key)
        return None if found is None else found._replace(etag=None)  # type: ignore[arg-type] # no condition


class Blind(CopiesProtocol[Both]):
    """Replaces holders whatever they are."""

    def _filled(self, known: Planned | None, row: Stored, copied: AnyCopied, source: Any) -> Planned:
        planned = super()._filled(known, row, copied, source)
        return Planned(Operation(Kind.PUT, planned.operation.key, planned.operation.properties))


class Forgetful(CopiesProtocol[Both]):
    """Deletes an entity whatever refers to it."""

    def holders(self, ref: Ref[Any, Any], target: object, key: EntityKey) -> Protocol[list[Stored]]:
        return []
        yield


def protocol_of(kind: type[CopiesProtocol[Both]]) -> CopiesProtocol[Both]:
    session: Session[Both] = Session("t", kinds_of(Both), Policy(marks=0))
    return kind(session, tuple(COPIED[:1]))


def start() -> World:
    simulation = Simulation()
    for each in (ANN, BOB, SALES):
        simulation.run(protocol_of(CopiesProtocol).insert(each))
    return simulation.world


def agreeing(world: World) -> None:
    protocol = protocol_of(CopiesProtocol)
    entities = {each.key: protocol.session.decode(each) for each in world.entities("t")}
    for each in entities.values():
        if isinstance(each, Department):
            key = manages.key(each)
            target = None if key is None else entities.get(key)
            assert key is None or isinstance(target, Employee), "a link leads to an absent entity"
            moved = each.name == "Sales" and world.entity("done", MOVED) is not None
            assert not moved or each.manager == 2, "an update is lost"
            name = target.name if isinstance(target, Employee) else None
            assert each.manager_name == name, "a copy differs"


def moved(number: int | None) -> Callable[[Both], Both]:
    def change(each: Both) -> Both:
        assert isinstance(each, Department)
        return replace(each, manager=number)

    return change


def scenarios(kind: type[CopiesProtocol[Both]]) -> list[Processes]:
    protocol = protocol_of(kind)

    def renaming(name: str) -> Callable[[], Protocol[object]]:
        return lambda: protocol.update(ANN, lambda each: replace(each, name=name), 2)

    def managing(number: int | None) -> Callable[[], Protocol[object]]:
        return lambda: protocol.update(SALES, moved(number), 2)

    def managing_alone() -> Protocol[None]:
        yield from managing(2)()
        yield from perform(Write("done", Operation(Kind.PUT, MOVED)))

    return [
        [renaming("Anna"), managing_alone, renaming("Eve")],
        [renaming("Anna"), lambda: protocol.insert(IT), renaming("Eve")],
        [managing(2), managing(1), renaming("Anna")],
        [managing(2), lambda: protocol.delete(BOB, 2), lambda: protocol.delete(ANN, 2)],
        [managing(None), lambda: protocol.delete(ANN, 2), lambda: protocol.insert(IT)],
    ]


@pytest.mark.parametrize("number", range(5))
def test_copies_agree_at_every_instant(number: int) -> None:
    explored = explore(start(), scenarios(CopiesProtocol)[number], agreeing)
    assert explored.states_count > 10


@pytest.mark.parametrize("mutation", [Untouched, Blind, Forgetful])
def test_each_rule_is_needed(mutation: type[CopiesProtocol[Both]]) -> None:
    def broken(processes: Processes) -> bool:
        try:
            explore(start(), processes, agreeing)
        except InvariantError:
            return True
        return False

    assert any(map(broken, scenarios(mutation)))
