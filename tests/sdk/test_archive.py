"""The design guide's archive example: a worker that is killed after any step leaves an entity that is moved in the end.

The program is `examples/archive_employee.py`. Each worker is a process, and its death is a SIGKILL. The server's clock
passes the time until a message is visible again.
"""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import lazulite.testing

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS_MAX = 60
WORKER = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import archive_employee

def after(step):
    if step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

archive = archive_employee.Archive(sys.argv[2], after)
while archive.work():
    pass
archive.close()
"""
STEPS = ["get", "copy", "delete", "done"]


class World:
    """An account of its own, and a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(EXAMPLES))
        self.ahead = timedelta()
        self.account: Any = None
        self.archive: Any = None

    def now(self) -> datetime:
        """Return the server's time."""
        return datetime.now(UTC) + self.ahead

    def pass_visibility(self) -> None:
        """Let the time pass after which a message is visible again."""
        self.ahead += timedelta(seconds=61)

    def work(self, killed_after: str = "") -> None:
        """Run a worker until no message is visible, or a process that does until it is killed."""
        if not killed_after:
            while self.archive.work():
                pass
            return
        done = subprocess.run(
            [sys.executable, "-c", WORKER, str(EXAMPLES), self.account.connection_string, killed_after],
            check=False,
            timeout=SECONDS_MAX,
            capture_output=True,
            text=True,
        )
        assert done.returncode == -9, done.stderr

    def places(self, number: str) -> list[str]:
        """Return the tables that have an employee."""
        tables = (self.archive.current, self.archive.archive)
        return [table.table_name for table in tables if list(table.query_entities(f"RowKey eq '{number}'"))]

    def counts(self) -> tuple[int, int]:
        """Return the numbers of messages and of poison messages."""
        queues = (self.archive.queue, self.archive.poison)
        one, other = (queue.get_queue_properties().approximate_message_count for queue in queues)
        return one, other


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(monkeypatch)
    with lazulite.testing.server(clock=world.now) as storage:
        archive_employee = import_module("archive_employee")
        world.account = storage.account(f"a{uuid4().hex[:20]}")
        world.archive = archive_employee.Archive(world.account.connection_string)
        world.archive.add("Sales", "0042", "Ada")
        world.archive.add("Sales", "0043", "Grace")
        yield world
        world.archive.close()


def test_an_employee_is_archived(world: World) -> None:
    world.archive.request("Sales", "0042")
    world.work()
    assert (world.places("0042"), world.places("0043"), world.counts()) == (["Archive"], ["Current"], (0, 0))


@pytest.mark.parametrize(("step", "places"), [("get", 1), ("copy", 2), ("delete", 1), ("done", 1)])
def test_a_worker_killed_after_a_step(world: World, step: str, places: int) -> None:
    world.archive.request("Sales", "0042")
    world.work(killed_after=step)
    assert len(world.places("0042")) == places
    world.work()
    assert world.counts() == ((0, 0) if step == "done" else (1, 0))  # It is invisible still.
    world.pass_visibility()
    world.work()
    assert (world.places("0042"), world.counts()) == (["Archive"], (0, 0))
    assert world.archive.archive.get_entity("Sales", "0042")["Name"] == "Ada"


def test_workers_killed_after_each_step_in_turn(world: World) -> None:
    world.archive.request("Sales", "0042")
    for step in STEPS[:3]:
        world.work(killed_after=step)
        world.pass_visibility()
    world.work()
    assert (world.places("0042"), world.counts()) == (["Archive"], (0, 0))


def test_a_message_that_came_twice(world: World) -> None:
    for _ in range(2):
        world.archive.request("Sales", "0042")
    world.work()
    assert (world.places("0042"), world.counts()) == (["Archive"], (0, 0))


def test_an_entity_that_changed_after_its_copy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(step: str) -> None:
        if step == "copy":
            monkeypatch.setattr(world.archive, "_after", lambda _: None)
            world.archive.add("Sales", "0042", "Ada Lovelace")

    world.archive.request("Sales", "0042")
    monkeypatch.setattr(world.archive, "_after", change)
    assert world.archive.work()
    assert world.places("0042") == ["Current", "Archive"]
    world.pass_visibility()
    world.work()
    assert (world.places("0042"), world.counts()) == (["Archive"], (0, 0))
    assert world.archive.archive.get_entity("Sales", "0042")["Name"] == "Ada Lovelace"


@pytest.mark.parametrize("killed_after", ["", "set aside"])
def test_a_poison_message(world: World, killed_after: str) -> None:
    world.archive.queue.send_message("no JSON", time_to_live=-1)
    world.archive.request("Sales", "0042")
    for _ in range(4):
        world.work()
        assert (world.places("0042"), world.counts()) == (["Archive"], (1, 0))
        world.pass_visibility()
    world.work(killed_after)
    if killed_after:  # A message may be set aside twice, never lost.
        assert world.counts() == (1, 1)
        world.pass_visibility()
        world.work()
    contents = [message.content for message in world.archive.poison.peek_messages(5)]
    assert (world.counts()[0], set(contents)) == (0, {"no JSON"})
