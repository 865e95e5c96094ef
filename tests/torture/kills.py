"""kill -9 of a server at any moment: under load, while it drains, while it starts; and of one of its workers."""

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import IO

from tests.server_process import ServerProcess


class Fuse:
    """Kills a server a while after the block begins, unless that ends before.

    A thread of its own kills, so that it does not wait for the clients to be between two responses.

    Args:
        server: to be killed.
        load_seconds: from the beginning of the block.
        drain_seconds: from a SIGTERM before that; None: there is none.

    Attributes:
        gone: set when the server may be gone.
    """

    def __init__(self, server: ServerProcess, load_seconds: float, drain_seconds: float | None) -> None:
        self.gone = threading.Event()
        self._server = server
        self._drain_seconds = drain_seconds
        self._timer = threading.Timer(load_seconds, self._fire)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._timer.join()

    def _fire(self) -> None:
        self.gone.set()
        if self._drain_seconds is not None:
            self._server.signal(signal.SIGTERM)
            time.sleep(self._drain_seconds)
        self._server.kill()


def kill_in_start(started: tuple["subprocess.Popen[str]", IO[str]], seconds: float) -> list[str]:
    """Kill a server, as `tests.server_process.starting` began it, after a while; return what is wrong."""
    process, log = started
    with process, log:
        try:
            return [f"the server ended at the start, with {process.wait(seconds)}"]
        except subprocess.TimeoutExpired:
            process.kill()
    return []


def workers_of(server: ServerProcess) -> list[int]:
    """Return the processes of a server's workers."""
    return [int(each) for each in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


def kill_worker(server: ServerProcess, random: Random, counts: Counter[str]) -> None:
    """Kill one of a server's workers, if it has any, and count that."""
    if workers := workers_of(server):
        with suppress(ProcessLookupError):
            os.kill(random.choice(workers), signal.SIGKILL)
            counts["kills of workers"] += 1
