"""Metrics of all workers, gathered by the primary.

The primary asks each worker that accepts requests, and waits for the answers no longer than `seconds`. Of a worker that
does not answer in time, its last answer counts.

Invariants: no sum of counters ever decreases. The counters and histograms of a worker that ended stay in the sums, as
of its last answer; requests that it answered after that are not counted. A worker has at most one question unanswered,
so that a hung one holds no memory of the primary.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from lazulite.server.observability.families import Families, Family, Samples, cumulative, loaded, total

ANSWER_SECONDS_MAX = 1.0
"""How long a scrape waits for workers. Prometheus itself waits 10 seconds by default."""

UP = Family("gauge", "1 if the worker answered this scrape, else 0.", {})
RESTARTS = Family("counter", "Workers that replaced one that ended.", {})


class GatheredMetrics(NamedTuple):
    """Answers of workers, as they sent them."""

    last: tuple[bytes, ...]
    """The last answer of each worker that has ever answered and still runs."""
    ended: tuple[bytes, ...]
    """The last answers of workers that ended since the previous gathering."""
    up: tuple[bool, ...]
    """By worker: whether it answered in time."""
    restarts: int


class WorkerMetrics:
    """The answers of the workers; the supervisor reports them. See `WorkerListener`.

    Args:
        count: of the workers, which are numbered from 0.
        seconds: how long one gathering waits.
    """

    def __init__(self, count: int, seconds: float = ANSWER_SECONDS_MAX) -> None:
        self._count = count
        self._seconds = seconds
        self._asks: dict[int, Callable[[], None]] = {}
        self._unanswered: dict[int, asyncio.Future[None]] = {}
        self._last: dict[int, bytes] = {}
        self._ended: list[bytes] = []
        self._retained: Families = {}
        self._started: set[int] = set()
        self._restarts = 0

    def on_ready(self, worker: int, ask: Callable[[], None]) -> None:
        """See `WorkerListener`."""
        self._asks[worker] = ask
        if worker in self._started:
            self._restarts += 1
        self._started.add(worker)

    def on_line(self, worker: int, line: bytes) -> None:
        """See `WorkerListener`."""
        self._last[worker] = line
        self._settle(worker)

    def on_end(self, worker: int) -> None:
        """See `WorkerListener`."""
        self._asks.pop(worker, None)
        last = self._last.pop(worker, None)
        if last is not None:
            self._ended.append(last)
        self._settle(worker)

    async def families(self, primary: Families) -> Families:
        """Return the sums over the primary and all workers, and a record of the answers; one call at a time.

        Args:
            primary: the primary's own families.
        """
        gathered = await self._gather()
        # In a thread, because parsing and summing the answers of many workers takes milliseconds.
        return await asyncio.to_thread(self._summed, primary, gathered)

    async def _gather(self) -> GatheredMetrics:
        loop = asyncio.get_running_loop()
        for worker, ask in self._asks.items():
            if worker not in self._unanswered:
                self._unanswered[worker] = loop.create_future()
                ask()
        if self._unanswered:
            await asyncio.wait(list(self._unanswered.values()), timeout=self._seconds)
        up = tuple(worker in self._asks and worker not in self._unanswered for worker in range(self._count))
        ended, self._ended = self._ended, []
        return GatheredMetrics(tuple(self._last.values()), tuple(ended), up, self._restarts)

    def _summed(self, primary: Families, gathered: GatheredMetrics) -> Families:
        self._retained = total(self._retained, (cumulative(loaded(line)) for line in gathered.ended))
        sums = total(primary, [self._retained, *map(loaded, gathered.last)])
        up: Samples = {
            ("lazulite_worker_up", (("worker", str(number)),)): is_up for number, is_up in enumerate(gathered.up, 1)
        }
        restarts: Samples = {("lazulite_worker_restarts_total", ()): gathered.restarts}
        return {
            **sums,
            "lazulite_worker_up": UP._replace(samples=up),
            "lazulite_worker_restarts": RESTARTS._replace(samples=restarts),
        }

    def _settle(self, worker: int) -> None:
        answer = self._unanswered.pop(worker, None)
        if answer is not None and not answer.done():
            answer.set_result(None)
