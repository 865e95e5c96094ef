"""A short form of the crash campaign, and what it must find: servers that break a promise at a kill."""

import asyncio
import threading
from pathlib import Path
from random import Random

import pytest

from tests.sdk.ledger import Journal, Store, Stored
from tests.sdk.server import Server

from .campaign import Budget
from .crash import explains, run
from .crowd import Crowd
from .expected import LoggedJournal, replay

SECONDS_MAX = 300
A, B = ("load", "p", "a"), ("load", "p", "b")


def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 4), 3, tmp_path, with_backup=0)
    assert report.problems == ()
    assert report.counts["kills"] == 4
    assert report.counts["batch"] != 0


@pytest.mark.parametrize("sabotage", ["answer_from_memory", "write_halves", "forget_drops", "write_no_log"])
def test_a_server_that_breaks_a_promise_is_found(sabotage: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, 100), 1, tmp_path, [("tests.torture.sabotage", sabotage)], with_backup=0)
    assert report.problems != ()


def test_the_expected_state_is_in_a_file_whatever_becomes_of_the_clients(tmp_path: Path) -> None:
    crowd = Crowd(6, Random(1), tmp_path)
    server = Server.start(tmp_path / "data")
    gone = threading.Event()

    async def work() -> list[str]:
        problems = await crowd.verify(server.account.host)
        fuse.start()
        return problems + await crowd.load(server.account.host, gone.is_set)

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
        crowd.log.close()
    with crowd.log.path.open("ab") as file:
        file.write(b'[0,"inte')  # The client died while it wrote a line.
    read = [Journal(journal.owns) for journal in crowd.journals]
    replay(crowd.log.path, read)
    for journal, again in zip(crowd.journals, read, strict=True):
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
        pytest.param({}, False, id="something told before is missing"),
        pytest.param({A: stored(3), B: stored(2)}, False, id="something nobody wrote is there"),
    ],
)
def test_a_backup_has_a_state_that_was(store: dict[tuple[str, ...], Stored], holds: bool) -> None:
    journal = LoggedJournal(0, lambda _: True, {}, None)
    for key, etag in ((A, stored(1)), (B, stored(2))):
        journal.intend({key: etag.content})
        journal.acknowledge({key: etag.etag})
    journal.intend({A: None})
    journal.acknowledge()
    known: Store = {A: stored(1)}
    assert explains(journal, known, journal.changes[1:], store) is holds
