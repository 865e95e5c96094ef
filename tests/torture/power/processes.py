"""The processes of a power cut: a service that may die at any call to the disk, and commands beside it."""

import base64
import os
import signal
import subprocess
import threading
from pathlib import Path

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from tests.server_process import SECONDS_MAX, Account, Program, environment, ports, read_lines, spawn

from .recorder import Recorder

_ACCOUNT = f"{DEVELOPMENT_ACCOUNT.name}:{base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()}"
"""The service has this one whatever accounts are added."""


class Processes:
    """All processes on one disk, from their start to the cut of power."""

    def __init__(self, program: Program, recorder: Recorder, said: Path) -> None:
        """`program` is what `python -m` runs; what is said on standard error goes to the file `said`."""
        self._recorder = recorder
        self._program = program
        self._environment = environment(**recorder.variables, LAZULITE_ACCOUNTS=_ACCOUNT)
        self._said = said
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._off = False

    def serve(self, location: Path, workers: int = 1, *flags: str) -> Account | None:
        """Start the service; return how to reach it, None if it ended, or had to be ended, before it said so."""
        arguments = (*ports(flags), "--location", str(location), "--workers", str(workers), *flags)
        process = self._started("serve", "--silent", *arguments)
        printed = read_lines(process, last="TableEndpoint=", end=_kill)[-1]
        return Account.parse(printed) if printed else None

    def command(self, *arguments: str) -> str | None:
        """Run a command, which must end well; return what it printed, None if it was cut short."""
        process = self._started(*arguments)
        printed, _ = process.communicate()
        if process.returncode == 0:
            return printed
        assert self._recorder.off, f"{arguments} ended with {process.returncode}: {self.said()}"
        return None

    def off(self) -> None:
        """Kill everything, and whatever is started later."""
        with self._lock:
            self._off = True
            for process in self._running:
                _kill(process)

    def join(self) -> None:
        """Wait until all are gone."""
        for process in self._running:
            process.wait(SECONDS_MAX)
            assert process.stdout is not None
            process.stdout.close()

    def said(self) -> str:
        """What was said on standard error."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def _started(self, *arguments: str) -> "subprocess.Popen[str]":
        with self._lock, self._said.open("a", encoding="utf-8") as said:
            process = spawn(*arguments, program=self._program, stderr=said, variables=self._environment, own_group=True)
            self._running.append(process)
            if self._off:
                _kill(process)
            return process


def _kill(process: "subprocess.Popen[str]") -> None:
    """Kill a process and its child processes: the workers of a service."""
    if process.returncode is None:  # So its number is still its own.
        os.killpg(process.pid, signal.SIGKILL)
