"""`lazulite serve` in a process of its own: the one helper that starts it. In process, use `lazulite.testing.server`.

Invariant: a started server is ended by `running`, `stop`, `terminate` (which must exit 0) or `kill` and `join`; its
pipes are closed then, so that no warning about a leaked resource can arise.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Self

from azure.core.credentials import AzureNamedKeyCredential

import lazulite.testing
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.settings.addresses import SERVICES
from lazulite.settings.config import ACCOUNT_VARIABLES
from lazulite.settings.database import DATABASE_VARIABLES
from tests.postgres.engine_under_test import DATABASE, Store, in_process, store_at

SECONDS_MAX = 300
"""For a start, and for an end."""
FREE_PORTS = tuple(word for service in SERVICES for word in (f"--{service}-port", "0"))
"""Flags by which each service has any free port."""
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
    def parse(cls, text: str) -> Self:
        """Read a connection string that names its table endpoint, whatever stands before it in its line."""
        connection_string = text[max(text.find("DefaultEndpointsProtocol="), 0) :].strip()
        fields = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
        endpoint = fields["TableEndpoint"].rstrip("/")
        return cls(connection_string, endpoint, fields["AccountName"], fields["AccountKey"])

    @property
    def queue_endpoint(self) -> str:
        """The Queue service's, if the server has one."""
        return self._field("QueueEndpoint")

    @property
    def blob_endpoint(self) -> str:
        """The Blob service's likewise."""
        return self._field("BlobEndpoint")

    def _field(self, name: str) -> str:
        fields = dict(part.split("=", 1) for part in self.connection_string.strip(";").split(";"))
        return fields[name].rstrip("/")

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


def environment(**variables: str) -> dict[str, str]:
    """Return this process's variables without accounts, a database and `PYTHONUNBUFFERED`; with the given ones."""
    dropped = {*ACCOUNT_VARIABLES, *DATABASE_VARIABLES, "PYTHONUNBUFFERED"}
    return {name: text for name, text in os.environ.items() if name not in dropped} | variables


def spawn(
    *arguments: str,
    program: Program = LAZULITE,
    stderr: IO[str] | int = subprocess.PIPE,
    variables: dict[str, str] | None = None,
    own_group: bool = False,
) -> "subprocess.Popen[str]":
    """Start `python -m PROGRAM ARGUMENTS` and return without waiting.

    Args:
        arguments: the command and its flags.
        program: stands in for `lazulite`.
        stderr: where standard error goes.
        variables: the whole environment; None for `environment()`.
        own_group: whether its workers can be killed with it, by its process group.
    """
    return subprocess.Popen(
        [sys.executable, "-m", *program, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=environment() if variables is None else variables,
        process_group=0 if own_group else None,
    )


def ports(arguments: Sequence[str]) -> Sequence[str]:
    """Return flags for any free ports; the server serves tables only, unless the arguments name services."""
    return (*FREE_PORTS, *(() if "--services" in arguments else ("--services", "table")))


def starting(
    location: Path, *arguments: str, program: Program = LAZULITE, **variables: str
) -> tuple["subprocess.Popen[str]", IO[str]]:
    """Begin to serve on `location`, or the database that stands for it; return the process and its log of stderr."""
    log = (location.parent / f"{location.name}.log").open("a+", encoding="utf-8")
    store = Store((), {}) if DATABASE in variables else store_at(location)
    flags = ("--silent", *ports(arguments), *store.arguments, *arguments)
    process = spawn("serve", *flags, program=program, stderr=log, variables=environment(**store.variables, **variables))
    return process, log


class ServerProcess:
    """One `lazulite serve` process that is ready: `lines` is what it has printed so far."""

    def __init__(self, process: "subprocess.Popen[str]", lines: list[str], log: IO[str]) -> None:
        self.process = process
        self.lines = lines
        self._log = log

    @classmethod
    def start(cls, location: Path, *arguments: str, program: Program = LAZULITE, **variables: str) -> Self:
        """Start a server on `location` and any free port; return once it has printed its connection string.

        `variables` are added to the environment, which tells it of no accounts. `program` stands in for `lazulite`.
        """
        process, log = starting(location, *arguments, program=program, **variables)
        lines = read_lines(process, last="TableEndpoint=")
        if lines and "TableEndpoint=" in lines[-1]:
            return cls(process, lines, log)
        code = _end(process)
        log.seek(0)
        said = log.read()
        log.close()
        raise AssertionError(f"the server printed no connection string and exited with {code}; it said:\n{said}")

    @property
    def account(self) -> Account:
        """How to reach it: the connection string that it printed first."""
        return Account.parse(next(line for line in self.lines if "TableEndpoint=" in line))

    @property
    def url(self) -> str:
        """The first address in the first line, with its final slash."""
        found = re.search(r"http://\S+:\d+/", self.lines[0])
        assert found, self.lines
        return found[0].replace("0.0.0.0", "127.0.0.1")

    @property
    def port(self) -> str:
        """The port of `url`."""
        return self.url.rsplit(":", 1)[1].strip("/")

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> bool:
        """Send SIGKILL; may be called from any thread, and returns without waiting."""
        self.process.kill()
        return True

    def join(self) -> int:
        """Wait until the process is gone and release what it held; return its exit code."""
        try:
            return self.process.wait(SECONDS_MAX)
        finally:
            _end(self.process)
            self._log.close()

    def terminate(self) -> int:
        """Send SIGTERM and wait; return the exit code."""
        self.process.terminate()
        return self.join()

    def stop(self) -> tuple[int, str]:
        """Send SIGTERM; return the exit code and the text on stderr, where that is a pipe."""
        self.process.terminate()
        _, err = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, err


@contextmanager
def serving(location: Path, *arguments: str, **variables: str) -> Iterator[ServerProcess]:
    """Run a server until the block ends; it must come down cleanly."""
    server = ServerProcess.start(location, *arguments, **variables)
    try:
        yield server
    finally:
        code = server.terminate()
    assert code == 0, f"the server answered SIGTERM with exit code {code}"


@contextmanager
def emulator(location: Path, name: str = DEVELOPMENT_ACCOUNT.name) -> Iterator[Account]:
    """Serve an account with all services: in this process and in memory, or as `engine_under_test` says.

    A process serves the development account, too, as it prints the connection string of that one only.
    """
    development = name == DEVELOPMENT_ACCOUNT.name
    if in_process():
        with lazulite.testing.server() as storage:
            account = storage.development if development else storage.account(name)
            yield Account.parse(account.connection_string)
        return
    keys = {name: bytes(64)} | {DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT.keys[0]}
    texts = {each: b64encode(key).decode() for each, key in keys.items()}
    accounts = ";".join(f"{each}:{key}" for each, key in texts.items())
    with serving(location, "--services", ",".join(SERVICES), LAZULITE_ACCOUNTS=accounts) as server:
        printed = server.account
        named = printed.connection_string.replace(printed.key, texts[name]).replace(printed.name, name)
        yield Account.parse(named)


@contextmanager
def running(*arguments: str, lines: int = 2, program: Program = LAZULITE, **variables: str) -> Iterator[ServerProcess]:
    """Run `lazulite serve` with flags of the caller's; the block begins once `lines` lines are printed.

    Its stderr is a pipe, for tests of what it says. It is killed at the end, if the block has not stopped it.
    """
    variables = environment(**variables)
    with spawn("serve", *ports(arguments), *arguments, program=program, variables=variables) as process:
        try:
            assert process.stderr is not None
            yield ServerProcess(process, read_lines(process, lines), process.stderr)
        finally:
            process.kill()


def read_lines(
    process: "subprocess.Popen[str]",
    count: int | None = None,
    last: str | None = None,
    end: Callable[["subprocess.Popen[str]"], object] = subprocess.Popen.kill,
) -> list[str]:
    """Return the first lines that a process prints.

    Args:
        process: it is ended after a minute without those lines.
        count: how many; None for any number.
        last: text of the last one; None for any. Where the process ends before, the last one is empty.
        end: ends the process.
    """
    assert process.stdout is not None
    lines: list[str] = []
    watchdog = threading.Timer(SECONDS_MAX, end, [process])
    watchdog.start()
    try:
        while count is None or len(lines) < count:
            line = process.stdout.readline()
            lines.append(line)
            if not line or (last is not None and last in line):
                break
    finally:
        watchdog.cancel()
    return lines


def _end(process: "subprocess.Popen[str]") -> int:
    process.kill()
    code = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return code
