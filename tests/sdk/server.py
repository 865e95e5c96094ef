"""A Lazulite server process, and the account that it serves.

Invariant: whoever starts a server ends it, by `terminate` (which must exit 0) or by `kill`; the process's pipe is
closed either way, so that no warning about a leaked resource can arise.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Self

from azure.core.credentials import AzureNamedKeyCredential
from tests.postgres.engine_under_test import DATABASE, Store, store_at

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


Program = Sequence[str]
"""The module to run, and what comes before the command."""
LAZULITE: Program = ("lazulite",)


class Account(NamedTuple):
    """What a connection string says."""

    connection_string: str
    endpoint: str
    name: str
    key: str

    @classmethod
    def parse(cls, connection_string: str) -> Self:
        """Read a connection string that names its table endpoint."""
        fields = dict(part.split("=", 1) for part in connection_string.strip().strip(";").split(";"))
        endpoint = fields["TableEndpoint"].rstrip("/")
        return cls(connection_string.strip(), endpoint, fields["AccountName"], fields["AccountKey"])

    @property
    def credential(self) -> AzureNamedKeyCredential:
        """The account's Shared Key."""
        return AzureNamedKeyCredential(self.name, self.key)

    @property
    def secondary(self) -> str:
        """The path-style secondary endpoint."""
        return f"{self.endpoint}-secondary"

    @property
    def host(self) -> str:
        """Host and port, without scheme and account."""
        return self.endpoint.split("/")[2]


def spawn(
    location: Path, *arguments: str, program: Program = LAZULITE, **variables: str
) -> tuple["subprocess.Popen[str]", IO[str]]:
    """Begin to serve on `location`, or what stands for it, on any free port; return the process and its stderr."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_ACCOUNTS")}
    log = (location.parent / f"{location.name}.log").open("a+", encoding="utf-8")
    store = Store((), {}) if DATABASE in variables else store_at(location)
    options = ("--silent", "--table-port", "0", *store.arguments)
    process = subprocess.Popen(
        [sys.executable, "-m", *program, "serve", *options, *arguments],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**inherited, **store.variables, **variables},
    )
    return process, log


class Server:
    """One `lazulite serve` process; `account` is how to reach it."""

    def __init__(self, process: "subprocess.Popen[str]", account: Account, log: IO[str]) -> None:
        self._process = process
        self._log = log
        self.account = account

    @classmethod
    def start(cls, location: Path, *arguments: str, program: Program = LAZULITE, **variables: str) -> Self:
        """Start a server on `location` and any free port; return once it has printed its connection string.

        `variables` are added to the environment, which tells it of no accounts. `program` stands in for `lazulite`.
        """
        process, log = spawn(location, *arguments, program=program, **variables)
        assert process.stdout is not None
        watchdog = threading.Timer(START_SECONDS_MAX, process.kill)
        watchdog.start()
        for line in process.stdout:
            if "TableEndpoint=" in line:
                watchdog.cancel()
                return cls(process, Account.parse(_connection_string(line)), log)
        watchdog.cancel()
        code = process.wait()
        process.stdout.close()
        log.seek(0)
        said = log.read()
        log.close()
        raise AssertionError(f"the server printed no connection string and exited with {code}; it said:\n{said}")

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def line(self) -> str:
        """Return the next line that it prints after its first connection string."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> bool:
        """Send SIGKILL; may be called from any thread, and returns without waiting."""
        self._process.kill()
        return True

    def join(self) -> int:
        """Wait until the process is gone and release what it held; return its exit code."""
        try:
            return self._process.wait(STOP_SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._log.close()

    def terminate(self) -> int:
        """Send SIGTERM and wait; return the exit code."""
        self._process.terminate()
        return self.join()


@contextmanager
def serving(location: Path, *arguments: str, **variables: str) -> Iterator[Server]:
    """Run a server until the block ends; it must come down cleanly."""
    server = Server.start(location, *arguments, **variables)
    try:
        yield server
    finally:
        code = server.terminate()
    assert code == 0, f"the server answered SIGTERM with exit code {code}"


def _connection_string(line: str) -> str:
    """The connection string in a printed line, whatever stands before it."""
    start = line.find("DefaultEndpointsProtocol=")
    return line[max(start, 0) :].strip()
