"""A short form of the crash campaign, and what it must find: servers that break a promise at a kill."""

import asyncio
import threading
from pathlib import Path
from random import Random

import pytest

from tests.sdk.ledger import Journal, Store, Stored
from tests.server_process import ServerProcess

from .campaign import Budget, mutation_cases
from .clients import Clients
from .crash import explains, run
from .expected import LoggedJournal, replay

SECONDS_MAX = 300
A, B = ("load", "p", "a"), ("load", "p", "b")


def test_acknowledged_writes_survive_kills(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 4), 3, tmp_path, with_backup=0)
    assert report.problems == ()
    assert report.counts["kills"] == 4
    assert report.counts["batch"] != 0


@pytest.mark.parametrize(
    "mutation", mutation_cases("write_halves", ["answer_from_memory", "write_halves", "forget_drops", "write_no_log"])
)
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 100), 1, tmp_path, [("tests.torture.mutations", mutation)], with_backup=0)
    assert report.problems != ()


def test_expected_state_survives_the_clients_in_a_file(tmp_path: Path) -> None:
    clients = Clients(6, Random(1), tmp_path)
    server = ServerProcess.start(tmp_path / "data")
    gone = threading.Event()

    async def work() -> list[str]:
        problems = await clients.verify(server.account.host)
        fuse.start()
        return problems + await clients.load(server.account.host, gone.is_set)

    def fire() -> None:
        gone.set()
        server.kill()

    fuse = threading.Timer(0.3, fire)
    try:
        assert asyncio.run(work()) == []
    finally:
        fuse.cancel()
        server.kill()
        server.join()
        clients.log.close()
    with clients.log.path.open("ab") as file:
        file.write(b'[0,"inte')  # The client died while it wrote a line.
    read = [Journal(journal.owns) for journal in clients.journals]
    replay(clients.log.path, read)
    for journal, again in zip(clients.journals, read, strict=True):
        assert again.acknowledged == journal.acknowledged
        assert again.took_effect({}) == journal.took_effect({}), "the operation in flight is another"


def stored(second: int) -> Stored:
    return Stored(f"W/\"datetime'2024-01-01T00%3A00%3A{second:02}.5Z'\"", {"N": second})


@pytest.mark.parametrize(
    ("store", "holds"),
    [
        pytest.param({A: stored(1)}, True, id="as it was at the beginning"),
        pytest.param({A: stored(1), B: stored(2)}, True, id="as it was in between"),
        pytest.param({B: stored(2)}, True, id="as it was at the end"),
        pytest.param({}, False, id="something acknowledged before is missing"),
        pytest.param({A: stored(3), B: stored(2)}, False, id="a row without a write is there"),
    ],
)
def test_backup_is_a_state_between_acknowledgements(store: dict[tuple[str, ...], Stored], holds: bool) -> None:
    journal = LoggedJournal(0, lambda _: True, {}, None)
    for key, etag in ((A, stored(1)), (B, stored(2))):
        journal.intend({key: etag.content})
        journal.acknowledge({key: etag.etag})
    journal.intend({A: None})
    journal.acknowledge()
    known: Store = {A: stored(1)}
    assert explains(journal, known, journal.changes[1:], store) is holds
