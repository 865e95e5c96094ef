"""Celery with its Azure Storage Queues transport, unmodified, in an environment of its own: retries and killed workers.

The tasks tell this process of each step (`celery_worker/tasks.py`), so nothing here waits for a time to pass.
"""

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from azure.storage.queue import QueueClient

import lazulite.testing

from .environment import bare, environment
from .queue_clients import Account, queue_client

HERE = Path(__file__).parent / "celery_worker"
SECONDS_MAX = 60
VISIBILITY_SECONDS = 30
"""Of the transport: the service's default."""


class World:
    """A server whose time the test moves, the events of tasks, and the workers that were started."""

    def __init__(self, directory: Path, storage: lazulite.testing.Storage) -> None:
        self.account: Account = storage.development
        self.port = storage.queue_port
        self.prefix = f"c{uuid4().hex[:8]}-"
        self.events = Listener(str(directory / "events"), authkey=b"test")
        self._directory = directory
        self._python = environment(HERE / "celery-5.7.0.txt")
        self._workers: list[subprocess.Popen[bytes]] = []

    def variables(self, port: int) -> dict[str, str]:
        """Return the environment of Celery, whose broker is at a port."""
        url = f"http://127.0.0.1:{port}/{self.account.name}"
        broker = f"azurestoragequeues://{self.account.key}@{url}"
        names = {"BROKER_URL": broker, "EVENTS": str(self.events.address), "QUEUE_PREFIX": self.prefix}
        return bare() | names | {"NO_PROXY": "*", "PYTHONPATH": str(HERE)}

    def send(self, task: str, *arguments: int) -> None:
        """Send a task, as a program that uses Celery does."""
        command: list[str | Path] = [self._python, HERE / "tasks.py", task, *map(str, arguments)]
        subprocess.run(command, env=self.variables(self.port), check=True, timeout=SECONDS_MAX)

    def worker(self, port: int | None = None) -> "subprocess.Popen[bytes]":
        """Start a worker with one process in its pool."""
        flags = ("--concurrency", "1", "--without-gossip", "--without-mingle", "--loglevel", "warning")
        with (self._directory / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [self._python, "-m", "celery", "--app", "tasks", "worker", *flags],
                env=self.variables(self.port if port is None else port),
                cwd=self._directory,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self._workers.append(process)
        return process

    def event(self) -> tuple[int, tuple[Any, ...], Connection]:
        """Wait for an event; return the process, what it tells, and where it waits for an answer."""
        # The listener has no timeout of its own.
        cast(Any, self.events)._listener._socket.settimeout(SECONDS_MAX)
        connection = self.events.accept()
        process, *reported = connection.recv()
        return process, tuple(reported), connection

    def reported(self) -> tuple[Any, ...]:
        """Wait for an event and let the task go on; return what it tells."""
        _, reported, connection = self.event()
        with connection:
            connection.send(None)
        return reported

    @property
    def queue(self) -> QueueClient:
        """The queue of tasks."""
        return queue_client(self.account, f"{self.prefix}celery")

    def count(self) -> int:
        """Return how many messages the queue of tasks has."""
        with self.queue as queue:
            return queue.get_queue_properties().approximate_message_count or 0

    def close(self) -> None:
        """End the workers with all their processes."""
        for process in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.events.close()


class Clock:
    """The machine's time and what a test adds."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(tmp_path: Path, clock: Clock) -> Iterator[World]:
    with lazulite.testing.server(clock=clock) as storage:
        world = World(tmp_path, storage)
        try:
            yield world
        finally:
            world.close()


@contextlib.contextmanager
def broker_until_a_delete(port: int, on_delete: Callable[[], object]) -> Iterator[int]:
    """Forward connections to a port until a request that deletes, which is not forwarded; yield the port to use."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, target: socket.socket, watches: bool) -> None:
        with contextlib.suppress(OSError), source, target:
            while data := source.recv(65_536):
                if watches and data.startswith(b"DELETE "):
                    on_delete()
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                for arguments in ((client, server, True), (server.dup(), client.dup(), False)):
                    threading.Thread(target=forward, args=arguments, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_tasks_are_done_and_retried(world: World) -> None:
    for number in range(3):
        world.send("add", number, 10)
    world.send("flaky", 2)
    world.worker()
    reported = [world.reported() for _ in range(6)]
    assert sorted(event for event in reported if event[0] == "sum") == [("sum", 10), ("sum", 11), ("sum", 12)]
    assert [event for event in reported if event[0] == "try"] == [("try", 0), ("try", 1), ("try", 2)]


def test_the_task_of_a_killed_process_of_the_pool_is_done_by_another(world: World) -> None:
    world.send("stubborn", 1)
    world.worker()
    killed, reported, connection = world.event()
    assert reported == ("begin", 1)
    os.kill(killed, signal.SIGKILL)
    connection.close()
    process, reported, connection = world.event()
    assert (reported, process != killed) == (("begin", 1), True)
    with connection:
        connection.send(None)
    assert world.reported() == ("end", 1)


def test_a_worker_killed_before_it_deletes_its_message(world: World, clock: Clock) -> None:
    world.send("stubborn", 1)
    killed = threading.Event()

    def kill() -> None:
        os.killpg(worker.pid, signal.SIGKILL)
        killed.set()

    with broker_until_a_delete(world.port, kill) as port:
        worker = world.worker(port)
        assert killed.wait(SECONDS_MAX)
        worker.wait(SECONDS_MAX)
    with world.queue as queue:
        assert queue.peek_messages() == []
        clock.ahead += timedelta(seconds=VISIBILITY_SECONDS + 1)
        [message] = queue.peek_messages()
        assert message.dequeue_count == 1
    world.worker()
    assert [world.reported() for _ in range(2)] == [("begin", 1), ("end", 1)]
    assert world.count() == 0


def test_the_transport_deletes_a_message_before_its_task_begins(world: World) -> None:
    """A defect of the transport, whatever the server: a worker killed in its task loses the task."""
    world.send("stubborn", 1)
    worker = world.worker()
    _, reported, connection = world.event()
    assert (reported, world.count()) == (("begin", 1), 0)
    os.killpg(worker.pid, signal.SIGKILL)
    connection.close()
