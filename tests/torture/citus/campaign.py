"""Tables, queues and blobs on a Citus cluster, whose workers are killed, fall silent, and hand shards to each other.

Each part is a campaign on one database, with the faults of a cluster: its clients and its checker are the same. Workers
fail while clients work, and processes are killed as there. All nodes run again when a process starts, or when a
part looks at what is stored.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tests.torture.blob.campaign import FLAGS
from tests.torture.blob.on_postgres import leases_on_database
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.linearizability.campaign import Run, linearizability
from tests.torture.linearizability.on_postgres import PROCESSES as TABLE_PROCESSES
from tests.torture.linearizability.on_postgres import Starts
from tests.torture.queue.campaign import QueueRun
from tests.torture.queue.on_postgres import QueuesOnDatabase

from .cluster import Cluster, is_installed

ROUND_OPERATIONS = 2000
PAUSE_SECONDS = 1.0
"""After a 5xx: each write whose outcome is unknown doubles the orders to be tried."""
BETWEEN_SECONDS = (0.5, 2.0)

Fault = Callable[[], Awaitable[None]]


class Faults:
    """The faults of a cluster, counted.

    Args:
        cluster: what fails.
        random: the source of all choices.
        counts: counts them.
    """

    def __init__(self, cluster: Cluster, random: Random, counts: Counter[str]) -> None:
        kinds = {
            "kills of workers": cluster.kill_worker,
            "silent workers": cluster.silence_worker,
            "moves of shards": cluster.move_shard,
            "failovers of workers": cluster.fail_over,
            "kills of the coordinator": cluster.kill_coordinator,
        }
        self.all: Sequence[Fault] = [partial(self._one, name, fault) for name, fault in kinds.items()]
        self._random = random
        self._counts = counts

    async def any(self) -> None:
        """Let one of them happen."""
        await self._random.choice(self.all)()

    async def _one(self, name: str, fault: Callable[[Random], Awaitable[None]]) -> None:
        await fault(self._random)
        self._counts[name] += 1


class TablesRun(Run):
    """A run of linearizability whose cluster fails beside the operations."""

    clients = 24
    pause_seconds = PAUSE_SECONDS

    def __init__(self, faults: Faults, seed: int, directory: Path) -> None:
        super().__init__(seed, directory)
        self._faults = faults
        self._failing = False

    async def beside(self, host: str) -> None:
        """Let the cluster fail until the round ends; one process of several does so."""
        if self._failing:
            return
        self._failing = True
        while not self._ending:
            await asyncio.sleep(self._random.uniform(*BETWEEN_SECONDS))
            await self._faults.any()
        self._failing = False


class ClusterStarts(Starts):
    """Starts processes on a cluster, when nothing of the last ones is in flight."""

    def __init__(self, cluster: Cluster, random: Random, mutation: str) -> None:
        processes = {
            seconds: ("tests.torture.mutations", "+".join(filter(None, (mutation, variant))))
            for seconds, (_, variant) in TABLE_PROCESSES.items()
        }
        super().__init__(cluster.coordinator, random, processes)
        self._cluster = cluster

    def _settled(self) -> bool:
        return self._cluster.settled()


class Servers(QueuesOnDatabase):
    """Processes that serve queues and blobs on a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        faults: Faults,
        directory: Path,
        random: Random,
        counts: Counter[str],
        mutation: str,
    ) -> None:
        super().__init__(cluster.coordinator, directory, random, counts, mutation=mutation, flags=FLAGS)
        self._cluster = cluster
        self._faults = faults

    def faults(self) -> Sequence[Fault]:
        """See `OnDatabase`."""
        return *self._faults.all, self._kill, self._replace, self._disconnect

    def _settled(self) -> bool:
        return self._cluster.settled()


def tables(cluster: Cluster, budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the part of tables; `mutation` names what the processes break."""
    counts = Counter[str]()
    faults = Faults(cluster, Random(seed), counts)
    report = linearizability(
        budget,
        seed,
        directory,
        ClusterStarts(cluster, Random(seed), mutation),
        ROUND_OPERATIONS,
        partial(TablesRun, faults),
    )
    return Report({**report.counts, **counts}, report.problems)


def queues(cluster: Cluster, budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the part of queues; `mutation` names what the processes break."""
    counts, random = Counter[str](), Random(seed)
    servers = Servers(cluster, Faults(cluster, random, counts), directory, random, counts, mutation)
    return asyncio.run(QueueRun(seed, servers, counts, directory).work(budget, "silent workers"))


def blobs(cluster: Cluster, budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the part of blobs; `mutation` names what the processes break."""
    counts, random = Counter[str](), Random(seed)
    servers = Servers(cluster, Faults(cluster, random, counts), directory, random, counts, mutation)
    problems = asyncio.run(leases_on_database(servers, random, counts, PAUSE_SECONDS).work(budget))
    return Report(dict(sorted(counts.items())), tuple(problems))


PARTS = {"tables": tables, "queues": queues, "blobs": blobs}


def run(budget: Budget, seed: int, directory: Path) -> Report:
    """Run each part on a cluster of its own, one after the other."""
    if not is_installed():
        return Report({"not run:": "PostgreSQL has no Citus here"})
    counts: dict[str, int | str] = {}
    problems: tuple[str, ...] = ()
    for (name, part), share in zip(PARTS.items(), budget.shares(len(PARTS)), strict=True):
        place = directory / name
        place.mkdir()
        with Cluster() as cluster:
            report = part(cluster, share, seed, place)
        counts |= {f"{name}: {what}": count for what, count in report.counts.items()}
        problems += report.problems
    return Report(counts, problems)


CITUS = Campaign(
    "tables, queues and blobs on a cluster keep their promises while workers die, hang, and hand over shards",
    "operations, silent workers, rounds",
    2,
    run,
)
