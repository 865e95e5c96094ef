"""Backups while clients write blobs, and table rows that refer to them: what is restored is one moment of all.

After each change of a blob its client writes to a table how many changes the blob has had. A restored copy must have
each blob whole, as of a moment of the backup, and no row may know of a change that its blob has not had.
"""

import asyncio
import itertools
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

from tests.server_process import LAZULITE, Program, ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import Connection, LostConnectionError, Operation, create_table, entity_path, raw, write

from .clients import Clients
from .expected import Account
from .observed import judged, listed
from .wire import Wire

CLIENTS = 4
BEFORE_SECONDS = (0.2, 2.0)
AFTER_SECONDS = 0.3
FLAGS = ("--services", "table,queue,blob")
TABLE = "changes"


def _key(account: Account) -> tuple[str, str, str]:
    return TABLE, "blobs", account.name.replace("/", " ")


class Backups:
    """A campaign at work.

    Args:
        seed: of all choices.
        directory: is empty.
        program: serves, and makes the backups.
    """

    def __init__(self, seed: int, directory: Path, program: Program) -> None:
        self.counts = Counter[str]()
        self._random = Random(seed)
        self._location, self._target = directory / "data", directory / "backup"
        self._restored = directory / "restored"
        self._program = program
        self._now = itertools.count(1).__next__
        self._clients = Clients(CLIENTS, self._now)

    async def work(self, budget: Budget) -> Report:
        """Make backups until the budget is spent or something is wrong."""
        problems: list[str] = []
        while not problems and budget.more(self.counts["backups"]):
            problems = await self._round()
        return Report({**self.counts, **self._clients.counts()}, tuple(problems))

    async def _round(self) -> list[str]:
        workers = self._random.choice(["1", "1", "2"])
        flags = (*FLAGS, "--workers", workers)
        server = await asyncio.to_thread(ServerProcess.start, self._location, *flags, program=self._program)
        try:
            wire = Wire(server.account)
            problems = await self._clients.verify(wire)
            connection = await Connection.open(wire.table_host)
            await connection.ask(create_table(TABLE))
            began, ended = await self._loaded(wire, connection)
            await connection.close()
        finally:
            await asyncio.to_thread(server.terminate)
        problems += await self._load
        return problems or await self._judged(began, ended)

    async def _loaded(self, wire: Wire, connection: Connection) -> tuple[int, int]:
        """Make a backup while clients work; return its first and its last moment."""
        over, alone = asyncio.Event(), asyncio.Lock()

        async def note(account: Account) -> None:
            async with alone:
                answer = await connection.ask(
                    write(Operation("insert or replace", _key(account), {"Changes": account.answered}))
                )
            assert answer.status == 204, answer

        self._clients.tell(note)
        self._load = asyncio.create_task(self._clients.load([wire], over.is_set))
        for account in self._clients.accounts:  # The numbers of the round before are of other changes.
            await note(account)
        await asyncio.sleep(self._random.uniform(*BEFORE_SECONDS))
        began = self._now()
        await self._run(self._program, "backup", self._target, location=self._location)
        ended = self._now()
        await asyncio.sleep(AFTER_SECONDS)
        self._clients.tell(None)
        over.set()
        self.counts["backups"] += 1
        return began, ended

    async def _run(self, program: Program, command: str, *arguments: Path, location: Path) -> None:
        line = [sys.executable, "-m", *program, command, *map(str, arguments), "--location", str(location)]
        done = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"lazulite {command}: {done.stderr}"

    async def _judged(self, began: int, ended: int) -> list[str]:
        """Restore the backup, and read all of it; return what is wrong."""
        await self._run(LAZULITE, "restore", self._target, location=self._restored)
        await self._run(LAZULITE, "check", location=self._restored)
        server = await asyncio.to_thread(ServerProcess.start, self._restored, *FLAGS)
        problems: list[str] = []
        try:
            wire = Wire(server.account)
            blobs, rows = await Connection.open(wire.host), await Connection.open(wire.table_host)
            there = await listed(blobs, wire)
            for account in self._clients.accounts:
                row = await rows.ask(raw("GET", entity_path(_key(account))))
                changes = json.loads(row.body).get("Changes", 0)
                found = ""
                for candidate in account.as_of(began, ended, changes):
                    found = await judged(blobs, wire, candidate, there.get(account.name, []))
                    if not found:
                        break
                if found:
                    problems.append(f"of {changes} changes: {found}")
                self.counts["blobs compared"] += 1
            await blobs.close()
            await rows.close()
        except LostConnectionError as error:
            problems.append(f"the restored copy cannot be read: {error}")
        finally:
            await asyncio.to_thread(server.terminate)
        if not problems:
            shutil.rmtree(self._target)
            shutil.rmtree(self._restored)
        return problems


def run(budget: Budget, seed: int, directory: Path, program: Program = LAZULITE) -> Report:
    """Run the campaign; see `Campaign.run`. `program` serves, and makes the backups."""
    backups = Backups(seed, directory, program)
    try:
        return asyncio.run(backups.work(budget))
    except AssertionError as error:
        return Report(backups.counts, (str(error),))


BLOB_BACKUPS = Campaign(
    "a backup that is made while clients write has each blob whole, and no row ahead of its blob", "backups", 1, run
)
