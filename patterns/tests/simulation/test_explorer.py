"""The model checker finds what it should, and goes through everything."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import Gather, NewId, Now
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored, Write
from lazulite_patterns_simulation import (
    Crash,
    Explored,
    FaultAt,
    Faults,
    InvariantError,
    Simulation,
    World,
    every_fault,
    explore,
)
from lazulite_patterns_simulation.world import Request

KEY = EntityKey("p", "counter")


def increment(conditional: bool) -> Protocol[None]:
    stored = yield from perform(Read("t", KEY))
    assert stored is not None
    count = stored.properties["Count"]
    assert isinstance(count, int)
    etag = stored.etag if conditional else None
    try:
        yield from perform(Write("t", Operation(Kind.REPLACE, KEY, {"Count": count + 1}, etag)))
    except Rejected:
        yield from increment(conditional)


def start() -> World:
    return World().perform(Write("t", Operation(Kind.INSERT, KEY, {"Count": 0})))[0]


def all_counted(world: World) -> None:
    """Each of two writers that ended counted: their second write makes the count two."""
    stored = world.entity("t", KEY)
    assert stored is not None
    assert stored.etag == f'W/"{int(str(stored.properties["Count"])) + 1}"', "an increment is lost"


def test_a_lost_update_is_found() -> None:
    with pytest.raises(InvariantError, match="an increment is lost") as found:
        explore(start(), [lambda: increment(False)] * 2, all_counted)
    assert sorted(each.process for each in found.value.path) == [0, 0, 1, 1]


def test_a_correct_protocol_passes_in_every_interleaving() -> None:
    explored = explore(start(), [lambda: increment(True)] * 3, all_counted)
    assert explored.states_count > 100


def test_every_interleaving_of_independent_processes_is_explored() -> None:
    def write(name: str) -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, EntityKey("p", name))))

    processes = [lambda: write("a"), lambda: write("b")]
    assert explore(World(), processes, lambda _: None, faults=Faults()) == Explored(4, 1)
    with pytest.raises(RuntimeError, match="more than 3 states"):
        explore(World(), processes, lambda _: None, states_max=3)


def test_a_process_that_crashes_is_one_that_takes_no_more_steps() -> None:
    def both() -> Protocol[None]:
        for name in "ab":
            yield from perform(Write("t", Operation(Kind.PUT, EntityKey("p", name))))

    def third() -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, EntityKey("p", "c"))))

    seen = set()
    explore(World(), [both, third], lambda world: seen.add("".join(each.key.row_key for each in world.entities("t"))))
    assert seen == {"", "a", "ab", "c", "ac", "abc"}, "at each step, beside another process"


def test_a_state_is_not_explored_if_another_one_covers_it() -> None:
    def careless(times: int) -> Protocol[None]:
        for _ in range(times):
            with suppress(ResultUnknown, Rejected):
                yield from perform(Write("t", Operation(Kind.DELETE, KEY, etag='W/"1"')))

    def count(times: int, faults: Faults) -> int:
        return explore(start(), [lambda: careless(times)], lambda _: None, faults=faults).states_count

    assert count(1, Faults()) == 2
    assert count(1, Faults(losses=1)) == 2, "how a process ended does not matter, nor that fewer faults are left"
    assert count(1, Faults(lates=1)) == 3, "the late request may arrive or not"
    assert count(2, Faults()) == 3
    assert count(2, Faults(lates=1)) == 5, "a late request is void when its row has another ETag"


def test_a_defect_is_not_taken_for_the_end_of_a_process() -> None:
    def broken() -> Protocol[None]:
        stored = yield from perform(Read("t", KEY))
        assert stored is not None
        stored.missing  # type: ignore[attr-defined]  # noqa: B018 - the defect

    with pytest.raises(AttributeError):
        explore(start(), [broken], lambda _: None)


def test_a_late_request_and_a_lost_answer_are_explored() -> None:
    """A request that is sent again because its answer was lost, or because it is late, is done twice."""

    def repeating() -> Protocol[None]:
        write = Write("t", Operation(Kind.MERGE, KEY, {"Count": 1}))
        try:
            yield from perform(write)
        except ResultUnknown:
            yield from perform(write)

    def once(world: World) -> None:
        stored = world.entity("t", KEY)
        assert stored is not None
        assert stored.etag != 'W/"3"', "it was done twice"

    for faults, what in ((Faults(losses=1), ["loss", "done"]), (Faults(lates=1), ["late", "arrives", "done"])):
        with pytest.raises(InvariantError, match="it was done twice") as found:
            explore(start(), [repeating], once, faults=faults)
        assert sorted(each.what for each in found.value.path) == sorted(what)
    assert explore(start(), [repeating], lambda _: None, faults=Faults()) == Explored(2, 1)
    # At the start, done at once, late; then the second one is done, the first arrives, or both in either order.
    assert explore(start(), [repeating], lambda _: None, faults=Faults(lates=1)) == Explored(6, 2)


def test_a_late_request_arrives_after_other_processes_wrote() -> None:
    def late() -> Protocol[None]:
        with suppress(ResultUnknown):
            yield from perform(Write("t", Operation(Kind.PUT, KEY, {"By": "late"})))

    def other() -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, KEY, {"By": "other"})))

    seen = set()
    explore(start(), [late, other], lambda world: seen.add(str(world.entity("t", KEY))), faults=Faults(lates=1))
    assert len([each for each in seen if "late" in each]) == 2, "before and after the other"


def test_a_deadline_passes_during_a_request() -> None:
    def careful() -> Protocol[None]:
        before = yield from perform(Now())
        yield from perform(Read("t", KEY))
        if (yield from perform(Now())) - before < 60:
            yield from perform(Write("t", Operation(Kind.MERGE, KEY, {"Count": 1})))

    assert explore(start(), [careful], lambda _: None, faults=Faults()).ends_count == 1
    assert explore(start(), [careful], lambda _: None, faults=Faults(pauses=1)).ends_count == 2


def test_histories_that_differ_in_age_or_type_are_not_merged() -> None:
    class Dated(World):
        """Tells by a row of the clock how old an entity is."""

        def perform(self, effect: Request, now_seconds: float = 0.0) -> tuple[World, object]:
            after, answer = super().perform(effect, now_seconds)
            if isinstance(answer, Stored):
                old = self.entity("clock", KEY) is not None
                answer = answer._replace(timestamp=datetime(2025 if old else 2026, 1, 1, tzinfo=UTC))
            return Dated(after._rows), answer

    def reader() -> Protocol[None]:
        yield from perform(Read("t", KEY))
        yield from perform(Read("t", KEY))

    def tick() -> Protocol[None]:
        yield from perform(Write("clock", Operation(Kind.PUT, KEY)))

    world = Dated(start()._rows)
    # The reader is at 0 or 1 reads, before or after the tick, or over. After the tick, its read may be an old one.
    assert explore(world, [reader, tick], lambda _: None, faults=Faults()).states_count == 7

    def number(one: object) -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, KEY, {"Count": one})))

    found = explore(start(), [lambda: number(1), lambda: number(True)], lambda _: None, faults=Faults())
    assert found == Explored(5, 2)


def test_ids_differ_from_those_of_the_start_and_of_other_processes() -> None:
    simulation = Simulation()
    ids = {simulation.run(perform(NewId())) for _ in range(3)}

    def process() -> Protocol[None]:
        for _ in range(2):
            given = yield from perform(NewId())
            yield from perform(Write("t", Operation(Kind.INSERT, EntityKey("ids", given))))

    def unused(world: World) -> None:
        assert ids.isdisjoint(each.key.row_key for each in world.entities("t"))

    explored = explore(simulation.world, [process, process], unused, faults=Faults())
    assert explored == Explored(9, 1)


def test_protocols_together_are_explored() -> None:
    def one(name: str) -> Protocol[None]:
        yield from perform(Write("t", Operation(Kind.PUT, EntityKey("p", name))))

    def both() -> Protocol[None]:
        yield from perform(Gather((one("a"), one("b"))))

    assert explore(World(), [both], lambda _: None, faults=Faults()) == Explored(3, 1)


def test_a_partial_exploration_says_so() -> None:
    processes = [lambda: increment(True)] * 3
    assert explore(start(), processes, all_counted, states_max=10, partial=True) == Explored(10, 1, complete=False)
    with pytest.raises(RuntimeError, match="more than 10 states"):
        explore(start(), processes, all_counted, states_max=10)


def test_every_fault_is_tried_at_every_effect() -> None:
    counts: list[int] = []

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation(failpoints=fault)
        simulation.world = start()
        try:
            simulation.run(increment(True))
        except (Crash, ResultUnknown):
            assert fault.hit
        stored = simulation.world.entity("t", KEY)
        assert stored is not None
        counts.append(int(str(stored.properties["Count"])))

    tried = [(at.fault.name, at.number) for at in every_fault(attempt)]
    assert len(tried) == 6 * 2
    assert len(set(tried)) == 12
    # Three of the faults come after the write; and the last attempt of each of six kinds meets none.
    assert sum(counts) == 3 + 6
