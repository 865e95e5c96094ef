"""kill -9 while blobs are written, and a disk that is full in the middle of a content.

Each round begins with a start on what the last kill left behind, and a look at every blob. At the end of the campaign,
and now and then before, the store is checked, and its files are counted: contents without a row must be gone.
"""

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from lazulite.settings.config import account_file
from tests.server_process import Program, ServerProcess, starting
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.faults.faulty_disk import FaultyDisk, Rule
from tests.torture.kills import Fuse, kill_in_start, kill_worker
from tests.torture.stepping_clock import VARIABLE as CLOCK
from tests.torture.stepping_clock import SteppingClock

from .clients import Clients
from .keeping import add_accounts
from .wire import RETENTION_DAYS, Wire

CLIENTS = 6
LOAD_SECONDS = (0.1, 2.0)
DRAIN_SECONDS = (0.0, 0.06)
IN_START, IN_DRAIN, FULL, COUNTED, WITH_WORKERS = 0.1, 0.15, 0.3, 0.15, 0.5
"""How many of the kills come then, in how many rounds the disk is full, after how many the files are counted, and how
many servers have workers, one of which is killed."""
FULL_SECONDS = 0.3
FLAGS = ("--services", "table,blob", "--accept-clock-jump")
NAMES = ("in_workers", "stepping_clock", "busy_maintenance", "paused_uploads")
"""The variants of each server."""
DAYS = (1, 1, 1, RETENTION_DAYS + 2)
"""By so many days the clock is set ahead between two servers. After one, all that was deleted must be there. After the
most, all must be gone that was deleted and not restored: a day of it is what a removal takes that comes once a day."""
DAY_NS = 86_400 * 10**9
STARTS_MAX = 10
"""After so many orderly starts and ends nothing is left that is to be deleted."""
_CONTENTS = re.compile(r"^contents +([\d,]+)$", re.MULTILINE)


class BlobCrash:
    """The campaign at work.

    Args:
        seed: of all choices.
        directory: is empty.
        mutation: names what the servers break; "": nothing.
    """

    def __init__(self, seed: int, directory: Path, mutation: str) -> None:
        home = directory / "disk"
        home.mkdir()
        self._location = home / "data"
        self._disk = FaultyDisk(directory, home)
        self._random = Random(seed)
        self._mutation = mutation
        self._clock = SteppingClock(directory / "clock")
        add_accounts(account_file(self._location))
        self._clients = Clients(CLIENTS, keeping=True)
        self._start_seconds = 1.0
        self.counts = Counter[str]()
        self.problems: list[str] = []

    async def work(self, budget: Budget) -> Report:
        """Kill until the budget is spent or something is wrong."""
        while not self.problems and budget.more(self.counts["kills"]):
            try:
                await self._round()
            except AssertionError as error:
                self.problems.append(str(error))
        if not self.problems:
            await self._count_files()
        self._clock.close()
        return Report({**self.counts, **self._clients.counts()}, tuple(self.problems))

    async def _round(self) -> None:
        self._pass_days()
        if self.counts["kills"] and self._random.random() < IN_START:
            self._kill_in_start()
        server = self._start()
        try:
            self.problems += await self._clients.verify(self._wire(server))
            if not self.problems:
                await self._load_and_kill(server)
        finally:
            server.kill()
            code = server.join()
        if code not in (0, -signal.SIGKILL):
            self.problems.append(f"the server exited by itself, with {code}")
        if not self.problems and self._random.random() < COUNTED:
            await self._count_files()

    def _pass_days(self) -> None:
        """Set the clock ahead; after a start, all maintenance that is due then is done."""
        days = self._random.choice(DAYS)
        self._clock.step(days * DAY_NS)
        self.counts["days"] += days
        if days > RETENTION_DAYS:
            self._clients.expire()

    def _wire(self, server: ServerProcess) -> Wire:
        return Wire(server.account, lambda: time.time() + self._clock.error_ns / 10**9)

    def _program(self) -> Program:
        small = "small_buffers" if self._random.random() < 0.5 else ""
        return ("tests.torture.mutations", "+".join(filter(None, (self._mutation, *NAMES, small))))

    @property
    def _variables(self) -> dict[str, str]:
        return {**self._disk.variables, CLOCK: str(self._clock.path)}

    def _start(self) -> ServerProcess:
        began = time.monotonic()
        workers = "2" if self._random.random() < WITH_WORKERS else "1"
        flags = (*FLAGS, "--workers", workers)
        server = ServerProcess.start(self._location, *flags, program=self._program(), **self._variables)
        self._start_seconds = time.monotonic() - began
        return server

    def _kill_in_start(self) -> None:
        started = starting(self._location, *FLAGS, program=self._program(), **self._variables)
        self.problems += kill_in_start(started, self._random.uniform(0.3, 1.1) * self._start_seconds)
        self.counts["kills"] += 1
        self.counts["in start"] += 1

    async def _load_and_kill(self, server: ServerProcess) -> None:
        drains, full = self._random.random() < IN_DRAIN, self._random.random() < FULL
        load_seconds, drain_seconds = self._random.uniform(*LOAD_SECONDS), self._random.uniform(*DRAIN_SECONDS)
        fuse = Fuse(server, load_seconds, drain_seconds if drains else None)
        load = asyncio.create_task(self._clients.load([self._wire(server)], fuse.gone.is_set))
        if full:
            await self._fill_disk()
        with fuse:
            await asyncio.sleep(load_seconds / 2)
            kill_worker(server, self._random, self.counts)
            self.problems += await load
        self.counts["kills"] += 1

    async def _fill_disk(self) -> None:
        """Let the disk be full after any byte, for a while; files of contents alone, or all."""
        name = self._random.choice(["/content/", ""])
        rules = {"write": Rule("ENOSPC", self._random.randrange(2_000_000), name=name), "room": Rule("ENOSPC")}
        with self._disk.failing(rules):
            await asyncio.sleep(FULL_SECONDS)
            self.counts["full disks"] += self._disk.failures > 0

    async def _count_files(self) -> None:
        """Start and stop until each file has a row; check the store."""
        for _ in range(STARTS_MAX):
            server = self._start()
            try:
                self.problems += await self._clients.verify(self._wire(server))
            finally:
                code = server.terminate()
            if code != 0:
                self.problems.append(f"the server answered SIGTERM with exit code {code}")
            command = [sys.executable, "-m", "lazulite", "check", "--location", str(self._location)]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.problems.append(f"lazulite check: {done.stderr}")
            found = _CONTENTS.search(done.stdout)
            contents = int(found[1].replace(",", "")) if found else 0
            files = self._files()
            if self.problems or len(files) == contents:
                self.counts["files counted"] += len(files)
                return
        self.problems.append(f"{len(files)} files, but {contents} contents are in use: {sorted(files)[:20]}")

    def _files(self) -> list[Path]:
        """Return the files of contents."""
        paths = (self._location / "content").rglob("*")
        return [path for path in paths if path.is_file() and path.suffix not in (".process", ".owner")]


def run(budget: Budget, seed: int, directory: Path, mutation: str = "") -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` names what the servers break."""
    return asyncio.run(BlobCrash(seed, directory, mutation).work(budget))


BLOBS = Campaign(
    "a blob is the old or the new one through kill -9 and full disks, and each content has a row", "kills", 3, run
)
