"""Loads under every fault, in memory: what is left after a crash and a new start is what the source has."""

from collections.abc import Iterable
from random import Random

import pytest

from lazulite_patterns.bulk import Failure, Limits, Progress, Report, State, TooManyFailures
from lazulite_patterns.bulk.job import Job
from lazulite_patterns.bulk.load import KINDS, Loading
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation, Page, Read, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import OutcomeUnknown, Policy
from lazulite_patterns.outcomes.ring import same
from lazulite_patterns.table.indexed import session_of
from lazulite_patterns.table.session import Session
from lazulite_patterns_simulation import Crash, FaultAt, Simulation, every_fault

SMALL = Limits(workers=1, buffer_entities=4)


class Memory:
    """A checkpoint that survives the simulated process."""

    def __init__(self) -> None:
        self.state = State()

    def load(self) -> str:
        return self.state.text()

    def save(self, text: str | None) -> None:
        state = State.of(text)
        assert state.rows_done >= self.state.rows_done, "a load never goes back"
        self.state = state


def session() -> Session[Bag]:
    return session_of("t", Bag, Policy())


def bag(partition: object, key: object, **properties: object) -> Bag:
    return Bag(PartitionKey=f"p{partition}", RowKey=f"{key}", **properties)


def source(count: int, partitions: int) -> list[Bag]:
    return [bag(number % partitions, number // partitions, N=number) for number in range(count)]


def load(
    simulation: Simulation,
    rows: Iterable[Bag],
    kind: Loading = "upsert",
    memory: Memory | None = None,
    limits: Limits = SMALL,
    seen: list[Progress] | None = None,
) -> Report:
    own = session()
    job: Job[Bag, Bag] = Job(
        own, lambda each: own.planned(KINDS[kind], each), limits, memory, None if seen is None else seen.append
    )
    for each in list(rows)[job.skip :]:
        simulation.run(job.add(each))
    return simulation.run(job.end())


def delete(simulation: Simulation, keys: Iterable[Bag | EntityKey], memory: Memory | None = None) -> Report:
    own = session()
    job: Job[Bag, Bag | EntityKey] = Job(own, own.deleting, SMALL, memory, None)
    for each in list(keys)[job.skip :]:
        simulation.run(job.add(each))
    return simulation.run(job.end())


def numbers(simulation: Simulation) -> list[int]:
    return sorted(int(str(each.properties["N"])) for each in simulation.world.entities("t"))


@pytest.mark.parametrize("kind", ["upsert", "insert"])
def test_a_load_that_crashes_anywhere_is_resumed_without_loss(kind: Loading) -> None:
    rows = [*source(16, 5), *source(24, 2)[16:], *(bag(f"late{number}", 0, N=number) for number in range(24, 36))]

    limits = Limits(workers=1, buffer_entities=12)

    def attempt(fault: FaultAt) -> None:
        simulation, memory = Simulation(failpoints=fault), Memory()
        try:
            report = load(simulation, rows, kind, memory, limits)
        except Crash:
            report = load(simulation, rows, kind, memory, limits)
        assert report.failures == ()
        assert (report.progress.rows_read, report.progress.failed) == (36, 0)
        assert numbers(simulation) == list(range(36))
        assert memory.state == State(36)
        again = load(simulation, rows, kind, memory)
        assert again.progress.transactions == 0

    assert sum(1 for _ in every_fault(attempt)) > 6 * 3


def test_a_delete_that_crashes_anywhere_is_resumed() -> None:
    rows = source(16, 5)

    def attempt(fault: FaultAt) -> None:
        simulation, memory = Simulation(), Memory()
        load(simulation, [*rows, bag(0, "kept", N=99)])
        simulation.runtime.failpoints = fault
        keys = [EntityKey(each["PartitionKey"], each["RowKey"]) for each in rows]  # type: ignore[arg-type]
        try:
            report = delete(simulation, keys, memory)
        except Crash:
            report = delete(simulation, keys, memory)
        assert report.failures == ()
        assert numbers(simulation) == [99]

    assert sum(1 for _ in every_fault(attempt)) > 6 * 3


def test_a_row_that_the_service_rejects_is_left_out_by_its_number() -> None:
    simulation = Simulation()
    load(simulation, [bag(0, 3, N=-1), bag(0, 4, N=4)])
    rows = [*(bag(0, number, N=number) for number in range(9)), bag(0, "wrong", N="x" * 40_000)]
    report = load(simulation, rows, "insert", limits=Limits())
    assert [each.number for each in report.failures] == [3, 9]
    assert report.failures[0].key == EntityKey("p0", "3")
    assert "wrong" in report.failures[1].reason
    assert report.failures[1].key is None
    assert report.progress.rows_done == 8, "row 4 was there, and is equal"
    assert numbers(simulation) == [-1, 0, 1, 2, 4, 5, 6, 7, 8]


class Rejecting:
    """Failpoints: rejects rows, by an error that names the row or by one that does not."""

    def __init__(self, wrong: set[str], status: int, named: bool) -> None:
        self.wrong, self.status, self.named = wrong, status, named

    def before(self, effect: Effect[object]) -> None:
        if not isinstance(effect, Batch | Write):
            return
        operations = effect.operations if isinstance(effect, Batch) else (effect.operation,)
        for index, each in enumerate(operations):
            if each.key.row_key in self.wrong:
                raise Rejected(self.status, "PropertyValueTooLarge", index=index if self.named else None)

    def after(self, effect: Effect[object]) -> None: ...


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("wrong", [set(), {"0"}, {"8"}, {"2", "3", "7"}, {str(number) for number in range(9)}])
def test_only_the_rejected_rows_fail(wrong: set[str], named: bool) -> None:
    simulation = Simulation(failpoints=Rejecting(wrong, 400, named))
    report = load(simulation, source(9, 1), limits=Limits())
    assert {str(each.number) for each in report.failures} == wrong
    assert numbers(simulation) == [number for number in range(9) if str(number) not in wrong]
    assert report.progress.rows_done == 9 - len(wrong)


def test_what_is_about_the_table_ends_the_load() -> None:
    with pytest.raises(Rejected):
        load(Simulation(failpoints=Rejecting({"2"}, 403, True)), source(9, 1), limits=Limits())


def test_too_many_failures_end_the_load_and_failures_outlive_a_crash() -> None:
    rows = source(12, 1)
    wrong = {"1", "2", "3"}
    simulation = Simulation(failpoints=Rejecting(wrong, 400, True))
    with pytest.raises(TooManyFailures) as found:
        load(simulation, rows, limits=Limits(failures=2))
    assert [each.number for each in found.value.report.failures] == [1, 2, 3]
    memory = Memory()
    memory.state = State(4, (Failure(1, None, "bad"), Failure(2, None, "bad"), Failure(9, None, "bad")))
    report = load(simulation, rows, memory=memory)
    assert [each.number for each in report.failures] == [1, 2, 9]
    assert report.progress.rows_done == 2 + 8


def test_the_last_row_with_a_key_wins() -> None:
    for seed in range(20):
        random = Random(seed)
        rows = [bag(random.randrange(3), random.randrange(4), N=number) for number in range(60)]
        simulation = Simulation()
        load(simulation, rows, limits=Limits(workers=3, buffer_entities=random.choice([4, 100])))
        latest = {(each["PartitionKey"], each["RowKey"]): each["N"] for each in rows}
        assert {each.key: each.properties["N"] for each in simulation.world.entities("t")} == latest


def test_a_wave_never_has_a_key_twice() -> None:
    own = session()
    job: Job[Bag, Bag] = Job(own, lambda each: own.planned(Kind.PUT, each), Limits(), None, None)
    simulation = Simulation()
    for number in range(3):
        simulation.run(job.add(bag(0, "same", N=number)))
    job._closed += job._groups.close()
    waves = []
    while wave := job._next_wave():
        waves.append([each.number for group in wave for each in group.rows.values()])
    assert waves == [[0], [1], [2]]


class Busy:
    """Failpoints: answers 503 to every other one of the first writes."""

    def __init__(self, until: int) -> None:
        self.until, self.count = until, 0

    def before(self, effect: Effect[object]) -> None:
        self.count += isinstance(effect, Batch | Write)
        if self.count <= self.until and self.count % 2 and isinstance(effect, Batch | Write):
            raise ResultUnknown("503", retry_after_seconds=1)

    def after(self, effect: Effect[object]) -> None: ...


def test_workers_follow_the_service() -> None:
    seen: list[Progress] = []
    load(Simulation(failpoints=Busy(80)), source(800, 200), limits=Limits(workers=8, buffer_entities=4), seen=seen)
    workers = [each.workers for each in seen]
    assert workers[0] == 4
    assert workers[-1] == 8, "they come back"
    for before, after in zip([8, *workers], workers, strict=False):
        assert after in {max(1, before // 2), min(8, before + 1)}
    assert [each.rows_read for each in seen] == sorted(each.rows_read for each in seen)


def test_a_few_waits_do_not_slow_a_load_down() -> None:
    seen: list[Progress] = []
    load(Simulation(failpoints=Busy(16)), source(400, 100), limits=Limits(workers=8, buffer_entities=4), seen=seen)
    assert {each.workers for each in seen} == {8}
    assert len(seen) < 400 / 8 / 8, "a wave that waits for its last transaction has many"


def test_a_wave_has_bounded_octets() -> None:
    own = session()
    job: Job[Bag, Bag] = Job(own, lambda each: own.planned(Kind.PUT, each), Limits(workers=2), None, None)
    simulation, octets = Simulation(), bytes(60_000)
    for number in range(60):
        names = (f"B{column}" for column in range(12))
        simulation.run(job.add(bag(number, "r", **dict.fromkeys(names, octets))))
    job._closed += job._groups.close()
    counts = []
    while wave := job._next_wave():
        counts.append(len(wave))
    assert sum(counts) == 60
    assert max(counts) * 12 * 80_000 < 2 * 4 * 4 * 1024 * 1024 + 12 * 80_000 + 60 * 4096


class Away:
    """Failpoints: answers 503 to every write."""

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Batch | Write):
            raise ResultUnknown("503", retry_after_seconds=1)

    def after(self, effect: Effect[object]) -> None: ...


def test_a_service_that_stays_away_ends_the_load() -> None:
    with pytest.raises(OutcomeUnknown):
        load(Simulation(failpoints=Away()), source(4, 1))


class Counting:
    """Failpoints: counts the requests by their kinds."""

    def __init__(self) -> None:
        self.requests: list[type] = []

    def before(self, effect: Effect[object]) -> None:
        self.requests.append(type(effect))

    def after(self, effect: Effect[object]) -> None: ...


@pytest.mark.parametrize("kind", ["insert", "delete"])
def test_a_resumed_transaction_costs_two_requests_more(kind: str) -> None:
    simulation, counting = Simulation(), Counting()
    rows = source(100, 1)
    load(simulation, rows[50:] if kind == "delete" else rows[:50])
    simulation.runtime.failpoints = counting
    if kind == "insert":
        load(simulation, rows, "insert", limits=Limits())
    else:
        own = session()
        job: Job[Bag, Bag | EntityKey] = Job(own, own.deleting, Limits(), None, None)
        for each in rows:
            simulation.run(job.add(EntityKey(str(each["PartitionKey"]), str(each["RowKey"]))))
        simulation.run(job.end())
    requests = counting.requests
    assert (requests.count(Batch), requests.count(Read), requests.count(Page)) == (2, 100, 0)


def test_a_row_that_was_changed_since_it_was_read_is_not_deleted() -> None:
    simulation = Simulation()
    load(simulation, source(3, 1))
    read = [own for each in simulation.world.entities("t") if (own := session().decode(each)) is not None]
    changed = Operation(Kind.MERGE, EntityKey("p0", "1"), {"N": 11})
    simulation.world, _ = simulation.world.perform(Write("t", changed))
    report = delete(simulation, read)
    assert [each.number for each in report.failures] == [1]
    assert numbers(simulation) == [11]


def test_rows_are_compared_by_types_and_values() -> None:
    assert same({"A": 1, "B": None, "_Op": "x", "RowKey": "r"}, {"A": 1, "_Op": "y"})
    assert not same({"A": 1}, {"A": "1"})
    assert not same({"A": 1}, {"A": True})
    assert not same({"A": 1}, {})
