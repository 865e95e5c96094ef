"""Metrics gathered from workers that answer, answer late, hang or end."""

import asyncio

import pytest

from lazulite.server.observability.families import Families, Family, dumped
from lazulite.server.workers.metrics import WorkerMetrics

NEVER_SECONDS = 30.0
"""A wait that ends earlier, because all workers answered or ended."""


def families(requests: float, connections: float) -> Families:
    return {
        "requests": Family("counter", "", {("requests_total", ()): requests}),
        "connections": Family("gauge", "", {("connections", ()): connections}),
    }


class Worker:
    """A worker that answers at once unless it hangs."""

    def __init__(self, gatherer: WorkerMetrics, number: int, requests: float = 0, connections: float = 0) -> None:
        self._gatherer, self._number = gatherer, number
        self.requests, self.connections, self.hangs, self.asked = requests, connections, False, 0
        self.was_asked = asyncio.Event()
        gatherer.on_ready(number, self._ask)

    def _ask(self) -> None:
        self.asked += 1
        self.was_asked.set()
        if not self.hangs:
            asyncio.get_running_loop().call_soon(self.answer)

    def answer(self) -> None:
        self._gatherer.on_line(self._number, dumped(families(self.requests, self.connections)))

    def end(self) -> None:
        self._gatherer.on_end(self._number)


async def gathered(gatherer: WorkerMetrics, primary: Families | None = None) -> dict[str, float]:
    """Return all values, those of `up` as `up 1`."""
    found = await gatherer.families(primary or {})
    return {
        " ".join((sample, *(value for _, value in labels))).removeprefix("lazulite_worker_"): value
        for family in found.values()
        for (sample, labels), value in family.samples.items()
    }


async def test_the_primary_and_all_workers_are_summed() -> None:
    gatherer = WorkerMetrics(2, NEVER_SECONDS)
    Worker(gatherer, 0, 1, 10)
    Worker(gatherer, 1, 2, 20)
    assert await gathered(gatherer, families(4, 40)) == {
        "requests_total": 7,
        "connections": 70,
        "up 1": 1,
        "up 2": 1,
        "restarts_total": 0,
    }


async def test_a_worker_that_hangs_counts_as_of_its_last_answer() -> None:
    gatherer = WorkerMetrics(2, 0)
    quick, hung = Worker(gatherer, 0, 1), Worker(gatherer, 1, 2, 20)
    for worker in (quick, hung):
        worker.hangs = True
    await gathered(gatherer)
    for worker in (quick, hung):
        worker.answer()
    quick.requests = 5
    for _ in range(3):
        await gathered(gatherer)
        quick.answer()
    found = await gathered(gatherer)
    assert (found["requests_total"], found["connections"], found["up 2"]) == (7, 20, 0)
    assert hung.asked == 2, "a question is pending"
    hung.requests = 3
    hung.answer()
    hung.hangs = False
    await gathered(gatherer)
    assert hung.asked == 3


async def test_the_counters_of_a_worker_that_ended_stay_and_its_gauges_go() -> None:
    gatherer = WorkerMetrics(1, NEVER_SECONDS)
    for number in range(3):
        worker = Worker(gatherer, 0, 100, 5)
        found = await gathered(gatherer)
        assert (found["requests_total"], found["connections"]) == (100 * (number + 1), 5)
        assert (found["up 1"], found["restarts_total"]) == (1, number)
        worker.end()
        for _ in range(2):
            found = await gathered(gatherer)
            assert (found["requests_total"], found["up 1"]) == (100 * (number + 1), 0)
            assert "connections" not in found


@pytest.mark.parametrize("answered", [True, False])
async def test_a_worker_that_ends_when_asked_is_not_waited_for(answered: bool) -> None:
    gatherer = WorkerMetrics(1, NEVER_SECONDS)
    worker = Worker(gatherer, 0, 9)
    if answered:
        await gathered(gatherer)
    worker.hangs = True
    worker.was_asked.clear()
    asking = asyncio.create_task(gathered(gatherer))
    await worker.was_asked.wait()
    worker.end()
    found = await asking
    assert (found.get("requests_total"), found["up 1"]) == (9 if answered else None, 0)


async def test_a_worker_that_has_not_started_is_not_waited_for() -> None:
    assert await gathered(WorkerMetrics(2, NEVER_SECONDS)) == {"up 1": 0, "up 2": 0, "restarts_total": 0}
