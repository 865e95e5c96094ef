"""A repair takes an entity out of a list only if no writer put it there since, in rows and in blobs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lazulite_patterns import Listing
from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.auditing.walk import Walk
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import EntityKey, Read, Stored
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.check import IndexCheck
from lazulite_patterns.indexes.entries import Entry
from lazulite_patterns.indexes.list_blobs import BlobLists
from lazulite_patterns.indexes.lists import Change, Item
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes import Policy
from lazulite_patterns_simulation import InvariantError, Simulation, World, explore

from .numbering import Numbering
from .test_lists_model import ANN, BOB, PLACES, UNMARKED, entries_in, entry, listed_in, setting

OLD = "1.old"
"""A version that was put long ago."""


class Careless(IndexCheck):
    """Takes an entity out whatever its version is now."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        found = yield from super().examine(table, row, now)

        def repair(policy: Policy) -> Protocol[bool]:
            yield from lists.apply(self.indexes[0].at(row.key), Change(take=((ANN, None),)), policy)
            return True

        return [replace(each, repair=repair) if each.key == row.key else each for each in found]


def auditor(kind: type[IndexCheck], grace: float, container: str) -> Callable[[], Protocol[object]]:
    """Examine the list of the name `b`, then the entity."""
    index: Any = SimpleNamespace(
        index=Listing("name", "Name", place="table"),
        source=BlobLists("names", container) if container else "names",
        entry=lambda *_: None,
        has=lambda _: True,
        at=lambda key: Entry("names", key, listed=True, container=container),
    )
    check = kind(PointerIndex("t", entries_in(container), UNMARKED), (index,))
    walk = Walk([check], repair=True, grace_seconds=grace, policy=UNMARKED)

    def run() -> Protocol[object]:
        for row in (yield from lists.rows(entry("b", ANN, container), UNMARKED)):
            yield from walk.look(check, index.source, row)
        entity = yield from perform(Read("t", ANN))
        if entity is not None:
            yield from walk.look(check, "t", entity)
        return None

    return run


def start(container: str) -> World:
    """Return a world in which Ann is in the list of her name, and was left behind in another one."""
    simulation = Simulation()
    simulation.run(setting(Numbering, 0, ANN, "a", container)())
    simulation.run(lists.apply(entry("b", ANN, container), Change(put=(Item(*ANN, OLD),)), UNMARKED))
    return simulation.world


SCENARIOS: list[list[tuple[EntityKey, str | None]]] = [
    [(ANN, "b")],
    [(ANN, "b"), (ANN, "a")],
    [(ANN, None), (BOB, "b")],
]


@PLACES
@pytest.mark.parametrize("writers", SCENARIOS)
def test_a_repair_takes_no_entity_from_its_list(writers: list[tuple[EntityKey, str | None]], container: str) -> None:
    processes = [setting(Numbering, number, *each, container) for number, each in enumerate(writers, 1)]
    processes.append(auditor(IndexCheck, 600, container))
    assert explore(start(container), processes, listed_in(container)).states_count > 10


@PLACES
@pytest.mark.parametrize(("kind", "grace"), [(IndexCheck, -1), (Careless, 600)])
def test_each_rule_of_a_repair_is_needed(kind: type[IndexCheck], grace: float, container: str) -> None:
    processes = [setting(Numbering, 1, ANN, "b", container), auditor(kind, grace, container)]
    with pytest.raises(InvariantError):
        explore(start(container), processes, listed_in(container))


@PLACES
def test_what_was_left_behind_is_taken_out(container: str) -> None:
    simulation = Simulation()
    simulation.world = start(container)
    simulation.run(auditor(IndexCheck, 600, container)())
    assert simulation.run(lists.find(entry("b", ANN, container), UNMARKED)) is None
    listed_in(container)(simulation.world)
