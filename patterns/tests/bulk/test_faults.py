"""Loads and deletes on a service that fail anywhere are resumed without loss."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.bulk import Limits, Report, State
from lazulite_patterns.bulk.job import Job
from lazulite_patterns.bulk.load import KINDS, Loading
from lazulite_patterns.effects.failpoints import Failpoints, NoFailpoints
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.indexed import session_of
from lazulite_patterns.table.session import Session
from lazulite_patterns_simulation import Crash, FaultAt, every_fault

from ..faults import FAST, Run
from .test_job import Memory, bag, source

LIMITS = Limits(workers=1, buffer_entities=12)
NOTHING = NoFailpoints()


class Jobs:
    """Runs jobs on a table."""

    def __init__(self, run: Run, client: TableClient) -> None:
        self._run, self.client = run, client
        self.session: Session[Bag] = session_of(client.table_name, Bag, FAST)

    def run(
        self, rows: Iterable[Any], planned: Callable[[Any], Planned], memory: Memory, failpoints: Failpoints
    ) -> Report:
        job: Job[Bag, Any] = Job(self.session, planned, LIMITS, memory, None)
        for each in list(rows)[job.skip :]:
            self._run(job.add(each), failpoints)
        report: Report = self._run(job.end(), failpoints)
        return report

    def load(self, rows: Iterable[Bag], memory: Memory, failpoints: Failpoints, kind: Loading = "upsert") -> Report:
        return self.run(rows, lambda each: self.session.planned(KINDS[kind], each), memory, failpoints)

    def delete(self, rows: Iterable[EntityKey], memory: Memory, failpoints: Failpoints) -> Report:
        return self.run(rows, self.session.deleting, memory, failpoints)

    def numbers(self) -> list[int]:
        return sorted(int(each["N"]) for each in self.client.list_entities())


@pytest.fixture
def jobs(on_service: Run, table_client: TableClient) -> Jobs:
    return Jobs(on_service, table_client)


def keys_of(rows: Iterable[Bag]) -> list[EntityKey]:
    return [EntityKey(str(each["PartitionKey"]), str(each["RowKey"])) for each in rows]


@pytest.mark.parametrize("kind", ["upsert", "insert"])
def test_every_fault_of_a_load(jobs: Jobs, kind: Loading) -> None:
    rows = [*source(16, 5), *source(24, 2)[16:], *(bag(f"late{number}", 0, N=number) for number in range(24, 28))]

    def attempt(fault: FaultAt) -> None:
        memory = Memory()
        try:
            report = jobs.load(rows, memory, fault, kind)
        except Crash:
            report = jobs.load(rows, memory, NOTHING, kind)
        assert report.failures == ()
        assert jobs.numbers() == list(range(28))
        assert memory.state == State(28)
        jobs.delete(keys_of(rows), Memory(), NOTHING)

    assert sum(1 for _ in every_fault(attempt)) > 6 * 3


def test_every_fault_of_a_delete(jobs: Jobs) -> None:
    rows = source(16, 5)

    def attempt(fault: FaultAt) -> None:
        memory = Memory()
        jobs.load([*rows, bag(0, "kept", N=99)], Memory(), NOTHING)
        try:
            report = jobs.delete(keys_of(rows), memory, fault)
        except Crash:
            report = jobs.delete(keys_of(rows), memory, NOTHING)
        assert report.failures == ()
        assert jobs.numbers() == [99]

    assert sum(1 for _ in every_fault(attempt)) > 6 * 3
