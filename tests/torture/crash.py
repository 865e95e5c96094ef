"""kill -9, over and over: under load, while starting, while draining; and backups while all this goes on.

Each cycle begins with a start on what the last kill left behind, and a look at all of it. A third of the servers have
small write buffers, so that tables are written and compacted when the kill comes. Another third logs and counts each
request, and publishes this many times a second.
"""

import asyncio
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from subprocess import DEVNULL

from tests.sdk.ledger import Key, Store, Stored
from tests.server_process import LAZULITE, Program, ServerProcess, starting

from .campaign import Budget, Campaign, Report
from .clients import Clients
from .expected import LoggedJournal
from .http_client import Connection, LostConnectionError
from .kills import Fuse, kill_in_start
from .observation import read_store
from .workload import SHARED

CLIENTS = 12
LOAD_SECONDS = (0.02, 0.5)
DRAIN_SECONDS = (0.0, 0.06)
BACKUP_SECONDS = 0.7
"""How much longer the load lasts in a cycle with a backup: the command takes about that long."""
IN_START, IN_DRAIN, WITH_BACKUP = 0.15, 0.15, 0.03
"""How many of the kills come then, and how many cycles have a backup."""
SMALL_BUFFERS: Program = ("tests.torture.variants", "small_buffers")
ANALYTICS: Program = ("tests.torture.variants", "analytics")
PROGRAMS = (LAZULITE, SMALL_BUFFERS, ANALYTICS)
_EVENTS = {b"flush": "tables flushed", b"compaction": "compactions"}
_EVENT = re.compile(rb'"event": "(flush|compaction)_started"')


def background_work(location: Path) -> Counter[str]:
    """Count what RocksDB did beside the writes since a store was last opened."""
    log = location / "store" / "LOG"
    return Counter(_EVENTS[found] for found in _EVENT.findall(log.read_bytes()))


class Crash:
    """The campaign at work in a directory."""

    def __init__(self, seed: int, directory: Path, programs: Sequence[Program], with_backup: float) -> None:
        self.problems: list[str] = []
        self.kills: Counter[str] = Counter()
        self._random = Random(seed)
        self._clients = Clients(CLIENTS, self._random, directory)
        self._done: Counter[str] = Counter()
        self._location = directory / "data"
        self._programs = programs
        self._with_backup = with_backup
        self._start_seconds = 1.0

    def work(self, budget: Budget) -> Report:
        """Kill until the budget is spent or something is wrong; end with an orderly stop and a check of the store."""
        with asyncio.Runner() as runner:
            while not self.problems and budget.more(self.kills.total()):
                if self.kills and self._random.random() < IN_START:
                    self._kill_in_start()
                else:
                    runner.run(self._cycle())
            if not self.problems:
                runner.run(self._end())
        self._clients.log.close()
        counts = {"kills": self.kills.total(), **self.kills, **self._clients.counts(), **self._done}
        return Report(counts, tuple(self.problems))

    def _start(self) -> ServerProcess | None:
        began = time.monotonic()
        try:
            server = ServerProcess.start(self._location, program=self._random.choice(self._programs))
        except AssertionError as error:
            self.problems.append(str(error))
            return None
        self._start_seconds = time.monotonic() - began
        return server

    async def _cycle(self) -> None:
        """Start, look, let the clients work, kill at any moment."""
        server = self._start()
        if server is None:
            return
        drains = self._random.random() < IN_DRAIN
        try:
            self.problems += await self._clients.verify(server.account.host)
            if not self.problems:
                await self._load_and_kill(server, drains)
        finally:
            server.kill()
            code = server.join()
        if code not in ((-signal.SIGKILL, 0) if drains else (-signal.SIGKILL,)):
            self.problems.append(f"the server exited by itself, with {code}")
        self.kills["in drain" if drains else "under load"] += 1
        self._done += background_work(self._location)

    async def _load_and_kill(self, server: ServerProcess, drains: bool) -> None:
        backup = self._random.random() < self._with_backup
        load_seconds = self._random.uniform(*LOAD_SECONDS) + BACKUP_SECONDS * backup
        drain_seconds = self._random.uniform(*DRAIN_SECONDS)
        fuse = Fuse(server, load_seconds, drain_seconds if drains else None)
        with fuse:
            if backup:
                self.problems += await self._load_beside_backup(server.account.host, fuse.gone)
            else:
                self.problems += await self._clients.load(server.account.host, fuse.gone.is_set)

    def _kill_in_start(self) -> None:
        """Kill a server when it is about to open its store, has opened it in part, or is just ready."""
        started = starting(self._location, program=self._random.choice(self._programs))
        self.problems += kill_in_start(started, self._random.uniform(0.3, 1.1) * self._start_seconds)
        self.kills["in start"] += 1

    async def _end(self) -> None:
        server = self._start()
        if server is None:
            return
        try:
            self.problems += await self._clients.verify(server.account.host)
        finally:
            code = server.terminate()
        if code != 0:
            self.problems.append(f"the server answered SIGTERM with exit code {code}")
        self._run("check")

    def _run(self, command: str, *arguments: str | Path, location: Path | None = None) -> bool:
        """Run a command that must succeed; say whether it did."""
        done = subprocess.run(
            _command(command, *arguments, location=location or self._location),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            self.problems.append(f"lazulite {command} exited with {done.returncode}: {done.stderr}")
        return done.returncode == 0

    # --- backups

    async def _load_beside_backup(self, host: str, gone: threading.Event) -> list[str]:
        """Begin a backup under load. A complete one has all acknowledged before, and a state of each client."""
        target = self._location.with_name("backup")
        load = asyncio.create_task(self._clients.load(host, gone.is_set))
        await asyncio.sleep(self._random.uniform(0, LOAD_SECONDS[1]))
        before = [(dict(journal.acknowledged), len(journal.changes)) for journal in self._clients.journals]
        command = _command("backup", target, location=self._location)
        process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        problems = await load
        # When the server is gone, the command goes on by itself, or says that it cannot.
        if await process.wait() != 0:
            self._done["backups broken off"] += 1
            return problems
        restored = self._location.with_name("restored")
        if not problems and self._run("restore", target, location=restored):
            try:
                store = await _served(restored)
            except (AssertionError, LostConnectionError) as error:
                return [f"the restored backup cannot be read: {error}"]
            for journal, (known, count) in zip(self._clients.journals, before, strict=True):
                if not explains(journal, known, journal.changes[count:], store):
                    problems.append(f"the backup has no state that client {journal.number} had: {target}")
        if not problems:
            shutil.rmtree(target)
            shutil.rmtree(restored)
            self._done["backups verified"] += 1
        return problems


def explains(
    journal: LoggedJournal, known: Mapping[Key, Stored], changes: Sequence[Mapping[Key, Stored | None]], store: Store
) -> bool:
    """Say whether a client's part of a store is what it knew, or that after some of its later changes, in order."""
    found = {key: stored for key, stored in store.items() if journal.owns(key)}
    state = dict(known)
    for change in [{}, *changes]:
        state |= {key: stored for key, stored in change.items() if stored is not None}
        for key in [key for key, stored in change.items() if stored is None]:
            state.pop(key, None)
        if state == found:
            return True
    return not journal.problems(store)  # It may have what was in flight at the end.


async def _served(location: Path) -> Store:
    server = ServerProcess.start(location)
    try:
        connection = await Connection.open(server.account.host)
        try:
            return await read_store(connection, SHARED)
        finally:
            await connection.close()
    finally:
        server.kill()
        server.join()


def _command(command: str, *arguments: str | Path, location: Path) -> list[str]:
    return [sys.executable, "-m", "lazulite", command, *map(str, arguments), "--location", str(location)]


def run(
    budget: Budget,
    seed: int,
    directory: Path,
    programs: Sequence[Program] = PROGRAMS,
    with_backup: float = WITH_BACKUP,
) -> Report:
    """Run the campaign; `programs` are what serves, and `with_backup` how many cycles have a backup."""
    return Crash(seed, directory, programs, with_backup).work(budget)


CRASH = Campaign(
    "what was acknowledged survives kill -9, each commit whole, and no ETag comes twice or late", "kills", 4, run
)
