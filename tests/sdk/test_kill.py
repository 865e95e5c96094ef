"""kill -9 during load: every acknowledged write is there afterwards, and no transaction is half there."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from azure.data.tables import TableServiceClient
from tests.server_process import Account, ServerProcess

from .ledger import TABLE, Key, Store, Stored, strays
from .load import SHARED, Fuse, Worker

CYCLES = 5
ACKNOWLEDGEMENTS = (20, 110)
WORKERS = 6
SIGKILLED = -9


def connect(account: Account) -> TableServiceClient:
    return TableServiceClient.from_connection_string(account.connection_string, retry_total=0)


def observe(service: TableServiceClient) -> Store:
    """Read the whole store, except for the table that all workers share."""
    store: dict[Key, Stored] = {}
    for item in service.list_tables():
        if item.name != SHARED:
            store[(item.name,)] = TABLE
        for entity in service.get_table_client(item.name).list_entities():
            key = (item.name, entity.pop("PartitionKey"), entity.pop("RowKey"))
            store[key] = Stored(str(entity.metadata["etag"]), dict(entity))
    return store


def verify(account: Account, workers: list[Worker]) -> list[str]:
    """Compare the store with all journals; without problems, go on from what it says."""
    with connect(account) as service:
        service.create_table_if_not_exists(SHARED)
        store = observe(service)
    journals = [worker.journal for worker in workers]
    problems = [problem for journal in journals for problem in journal.problems(store)]
    problems += strays(journals, store)
    if not problems:
        for journal in journals:
            journal.settle(store)
    return problems


class Mortal(Protocol):
    """A server, or what dies in its stead."""

    @property
    def account(self) -> Account:
        """How to reach it."""
        ...

    def kill(self) -> bool:
        """Return whether there is no server any more."""
        ...


def load_until_killed(server: Mortal, workers: list[Worker], seed: int) -> None:
    """Let all workers write, and kill the server after as many acknowledgements as the seed says.

    It is this thread that kills, so the worker with the last acknowledgement is on its way to the next operation.
    """
    fuse = Fuse(random.Random(seed).randint(*ACKNOWLEDGEMENTS))
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(workers)))
        services = [stack.enter_context(connect(server.account)) for _ in workers]
        runs = [pool.submit(worker.run, service, seed, fuse) for worker, service in zip(workers, services, strict=True)]
        for run in runs:
            # A worker that ends while the server lives has failed: do not wait for the others.
            run.add_done_callback(lambda _: fuse.blown.set())
        fuse.blown.wait()
        if not server.kill():
            fuse.over.set()
        for run in runs:
            run.result()


def test_acknowledged_writes_survive_a_kill_and_commits_are_whole(tmp_path: Path) -> None:
    workers = [Worker(number) for number in range(WORKERS)]
    for seed in range(CYCLES):
        server = ServerProcess.start(tmp_path / "data")
        try:
            problems = verify(server.account, workers)
            assert problems == [], f"after kill {seed}"
            load_until_killed(server, workers, seed)
        finally:
            server.kill()
            code = server.join()
        assert code == SIGKILLED
    server = ServerProcess.start(tmp_path / "data")
    try:
        problems = verify(server.account, workers)
    finally:
        code = server.terminate()
    assert problems == [], f"after kill {CYCLES}"
    assert code == 0


def test_lost_writes_are_found(tmp_path: Path) -> None:
    """The same run on a store that lives in memory only: the check must not be content with it."""
    workers = [Worker(number) for number in range(WORKERS)]
    acknowledged = 0
    for seed in range(2):
        server = ServerProcess.start(tmp_path / "data", "--in-memory")
        try:
            problems = verify(server.account, workers)
            if seed:
                break
            load_until_killed(server, workers, seed)
        finally:
            server.kill()
            server.join()
        acknowledged = sum(len(worker.journal.acknowledged) for worker in workers)
    assert acknowledged > 0
    assert len(problems) >= acknowledged // 2
