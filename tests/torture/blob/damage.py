"""Bytes of stored contents change, in files and in a database: a read fails then, and never returns other bytes.

A server writes blobs of every kind. Then one byte of one content is changed at a time, each blob is read, and the byte
is put back. `lazulite check` must name the content, too, whichever byte of it was changed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from lazulite.app.registry import SPACES
from lazulite.cli.check import verify_location
from lazulite.cli.check_database import verify_database
from lazulite.cli.errors import CommandError
from lazulite.engine.content.linked_file import read_owner
from lazulite.engine.postgres.settings import PostgresSettings
from tests.postgres.engine_under_test import DATABASE
from tests.postgres.server import PostgresServer
from tests.server_process import LAZULITE, Program, ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import Connection, LostConnectionError

from .clients import Clients
from .observed import listed
from .wire import CONTAINER, Wire

CLIENTS = 4
LOAD_SECONDS = 2.0
DAMAGES_MIN = 10
FLAGS = ("--services", "table,blob")
Check = Callable[[Callable[[str], None]], Iterable[object]]
"""Verifies a store as `lazulite check` does. Its argument takes a line for each problem."""
EXCHANGED = 0.25
"""The share of damages of files that are no changed byte."""
FLIPPED = 255
"""Each bit of a byte."""


class InFiles:
    """Contents as files of a location."""

    def __init__(self, location: Path) -> None:
        self._directory = location / "content"

    @contextmanager
    def damaged(self, random: Random) -> Iterator[str]:
        """Change any byte of a file of a content, or exchange the files of contents of two blobs."""
        paths = [path for path in sorted(self._directory.rglob("*")) if path.is_file() and not path.suffix]
        path = random.choice(paths)
        others = [each for each in paths if read_owner(each) != read_owner(path)]
        if others and random.random() < EXCHANGED:
            other = random.choice(others)
            _exchange(path, other)
            try:
                yield f"{path} and {other}, which were exchanged,"
            finally:
                _exchange(path, other)
            return
        at = random.randrange(path.stat().st_size)
        _flip(path, at)
        try:
            yield f"byte {at} of {path}"
        finally:
            _flip(path, at)


def _exchange(path: Path, other: Path) -> None:
    between = path.with_suffix(".exchanged")
    path.rename(between)
    other.rename(path)
    between.rename(other)


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ FLIPPED]))


class InDatabase:
    """Contents as rows."""

    def __init__(self, database: PostgresServer) -> None:
        self._database = database

    @contextmanager
    def damaged(self, random: Random) -> Iterator[str]:
        """Change any byte of a window, or its checksum."""
        rows = self._database.execute(
            "SELECT space, content, number, length(data) FROM lazulite.content_windows ORDER BY 1, 2, 3"
        )
        *key, length = random.choice(rows)
        at = random.randrange(length + 1)
        flipped = f"data = set_byte(data, {at}, get_byte(data, {at}) # {FLIPPED})"
        changed = flipped if at < length else "checksum = checksum # 1"
        statement = f"UPDATE lazulite.content_windows SET {changed} WHERE space = $1 AND content = $2 AND number = $3"
        self._database.execute(statement, *key)
        try:
            yield f"byte {at} of window {key}"
        finally:
            self._database.execute(statement, *key)


class Damages:
    """A campaign at work.

    Args:
        random: the source of all choices.
        start: starts a server.
        contents: what is damaged.
    """

    def __init__(self, random: Random, start: Callable[[], ServerProcess], contents: InFiles | InDatabase) -> None:
        self.counts = Counter[str]()
        self._random = random
        self._start = start
        self._contents = contents
        self._clients = Clients(CLIENTS)

    async def work(self, budget: Budget) -> list[str]:
        """Write blobs, then damage contents until the budget is spent, and ten times at the least."""
        server = await asyncio.to_thread(self._start)
        try:
            wire, over = Wire(server.account), asyncio.Event()
            problems = await self._clients.verify(wire)
            asyncio.get_running_loop().call_later(LOAD_SECONDS, over.set)
            load = asyncio.create_task(self._clients.load([wire], over.is_set))
            await over.wait()
        finally:
            # Ends the clients, too.
            code = await asyncio.to_thread(server.terminate)
        problems += await load
        if code:
            problems.append(f"the server ended with {code}")
        server = await asyncio.to_thread(self._start)
        try:
            wire = Wire(server.account)
            problems += await self._clients.verify(wire)
            while not problems and (self.counts["damages"] < DAMAGES_MIN or budget.more(self.counts["damages"])):
                with self._contents.damaged(self._random) as where:
                    problems += await self._read(wire, where)
                self.counts["damages"] += 1
            problems = problems or await self._clients.verify(wire)
        finally:
            await asyncio.to_thread(server.terminate)
        return problems

    def check(self, check: Check) -> list[str]:
        """Damage a content, and return what is wrong with the verdict of `lazulite check`."""
        with self._contents.damaged(self._random) as where:
            problems = _checked(check, where)
        self.counts["checks"] += 1
        return problems

    async def _read(self, wire: Wire, where: str) -> list[str]:
        """Read each blob and snapshot; return what is wrong."""
        connection = await Connection.open(wire.host)
        noticed = 0
        try:
            known = {account.name: account.known for account in self._clients.accounts}
            for name, queries in (await listed(connection, wire)).items():
                for query in queries:
                    time = query.partition("=")[2]
                    content = known[name].snapshots[time] if time else known[name].content
                    assert content is not None
                    try:
                        answer = await connection.ask(wire.request("GET", f"{CONTAINER}/{name}", {}, query))
                    except LostConnectionError:
                        noticed += 1
                        self.counts["reads broken off"] += 1
                        await connection.close()
                        connection = await Connection.open(wire.host)
                        continue
                    if answer.status == 200 and answer.body != content.read():
                        return [f"{where}: a read of {name} returned other bytes"]
                    if answer.status != 200:
                        noticed += 1
                        self.counts[f"{answer.status} {answer.headers.get('x-ms-error-code', '')}"] += 1
        finally:
            await connection.close()
        self.counts["damages of uncommitted blocks"] += not noticed
        return []


def on_files(budget: Budget, seed: int, directory: Path, program: Program = LAZULITE) -> Report:
    """Damage files; see `Campaign.run`. `program` is what serves."""
    location, random = directory / "data", Random(seed)
    contents = InFiles(location)
    damages = Damages(random, lambda: ServerProcess.start(location, *FLAGS, program=program), contents)
    return _report(budget, damages, partial(verify_location, location))


def on_postgres(budget: Budget, seed: int, directory: Path, program: Program = LAZULITE) -> Report:
    """Damage rows; see `Campaign.run`. `program` is what serves."""
    with PostgresServer.make() as database:
        variables = {DATABASE: database.dsn()}
        damages = Damages(
            Random(seed),
            lambda: ServerProcess.start(directory / "process", *FLAGS, program=program, **variables),
            InDatabase(database),
        )
        settings = PostgresSettings(dsn=database.dsn())
        return _report(budget, damages, lambda report: verify_database(settings, SPACES, report))


def _report(budget: Budget, damages: Damages, check: Check) -> Report:
    """Damage contents for half of the budget while a server reads them, and for the other half before a check."""
    problems: list[str] = []
    for share in budget.shares(2):
        if damages.counts["damages"] == 0:
            problems += asyncio.run(damages.work(share))
            continue
        while not problems and share.more(damages.counts["checks"]):
            problems += damages.check(check)
    return Report(dict(sorted(damages.counts.items())), tuple(problems))


def _checked(check: Check, where: str) -> list[str]:
    """Return what is wrong with the verdict of `lazulite check` on a store with a damage."""
    said: list[str] = []
    try:
        list(check(said.append))
    except CommandError:
        return [] if any("content " in line for line in said) else [f"{where}: lazulite check names no content: {said}"]
    return [f"{where}: lazulite check finds no damage"]


_PROMISE = "a read of damaged content fails, and returns no other bytes; lazulite check names the content"
DAMAGE = Campaign(_PROMISE, "damages", 1, on_files)
DAMAGE_ON_POSTGRES = Campaign(_PROMISE, "damages", 1, on_postgres)
