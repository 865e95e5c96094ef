"""The programs of the page of workers run as processes, and lose nothing on SIGTERM."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from azure.storage.queue import QueueClient

from lazulite_patterns.transactions.tasks import Tasks

from .test_docs import fences

PROGRAMS = [text for language, text in fences("docs/workers.md") if "__main__" in text]
PROCESSES, FURTHER_MESSAGES = 2, 40
WAIT_SECONDS = 900

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process of Windows gets no SIGTERM")


class Worker:
    """A process, and the lines that it prints."""

    def __init__(self, program: Path, connection_string: str) -> None:
        environment = {**os.environ, "STORAGE_CONNECTION_STRING": connection_string}
        command = [sys.executable, str(program)]
        self.lines: list[str] = []
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            self.lines.extend(self.process.stdout)

    def ended(self) -> int:
        """Wait for the end, and return the status."""
        status = self.process.wait(WAIT_SECONDS)
        self._reader.join()
        return status


@pytest.fixture
def workers(connection_string: str) -> Iterator[Callable[[Path], list[Worker]]]:
    """Yield what starts workers; at the end the fixture kills them."""
    started: list[Worker] = []

    def start(program: Path) -> list[Worker]:
        started.extend(Worker(program, connection_string) for _ in range(PROCESSES))
        return started

    yield start
    for each in started:
        each.process.kill()
        each.ended()


@pytest.mark.parametrize("program", PROGRAMS, ids=["sync", "async"])
def test_workers_finish_their_messages_after_the_signal(
    program: str, queue_client: QueueClient, workers: Callable[[Path], list[Worker]], tmp_path: Path
) -> None:
    path, handled, numbers = tmp_path / "mails.py", list[str](), count()
    path.write_text(program.replace('"mails"', f'"{queue_client.queue_name}"'), encoding="utf-8")
    with Tasks(queue_client) as tasks:

        @tasks.task("mail")
        def collect(mail: dict[str, str]) -> None:
            handled.append(mail["to"])

        started = workers(path)
        while not all(each.lines for each in started):
            assert {each.process.poll() for each in started} == {None}, "a worker ended"
            tasks.start(collect, {"to": str(next(numbers)), "text": ""})
        for _ in range(FURTHER_MESSAGES):
            tasks.start(collect, {"to": str(next(numbers)), "text": ""})
        for each in started:
            each.process.send_signal(signal.SIGTERM)
        assert [each.ended() for each in started] == [0] * PROCESSES
        tasks.drain()
    handled += [line.removeprefix("to ") for each in started for line in each.lines]
    assert sorted(map(int, handled)) == list(range(next(numbers)))
    assert queue_client.get_queue_properties().approximate_message_count == 0, "a worker left a message hidden"
