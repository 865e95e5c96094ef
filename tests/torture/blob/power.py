"""The power is cut under blobs: the disk forgets what was not synced, rows and contents alike.

As the campaign `power`, whose disks and lives these are, with the clients of the campaign `blobs`. A start compares
each blob with what its client knows: an acknowledged change is there, whole; another one is there whole, or not at all.
"""

import asyncio
import random
import shutil
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path

from lazulite.cli.check import verify_location
from lazulite.cli.errors import CommandError
from lazulite.settings.config import account_file
from tests.server_process import LAZULITE, Account, Program
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.power.disk import Disk, read_tree, write_tree
from tests.torture.power.hindsight import Answered, riskiest
from tests.torture.power.life import Life, Mix, drawn
from tests.torture.power.processes import Processes
from tests.torture.power.recorder import COMPILER, Record, Recorder, compiled, compiler_missing

from .clients import Clients
from .keeping import add_accounts
from .wire import Wire

CLIENTS = 4
CUTS_OF_DISK = 6
DISKS = 2
"""So many disks that a cut may leave are made and checked; the service goes on with the last."""
SYNC_SECONDS, LAST_SYNC_SECONDS = 0.002, 0.3
LOAD_SECONDS_MAX = 60.0
FLAGS = ("--services", "table,blob")
MIX = Mix(fresh=0, accounts=0, backups=0, long=0.2)
RISKIEST = 0.5
"""The share of cuts in hindsight that follow the change with the fewest syncs of a log behind it, not just any."""


class BlobCuts:
    """Cut after cut, and what clients know.

    Args:
        seed: of all choices.
        directory: to work in, empty.
        mutation: names what the server breaks; "": nothing.
        mix: what the lives are like.
    """

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        self.counts = Counter[str]()
        self._seed = seed
        self._directory = directory
        self._mutation = mutation
        self._mix = mix
        self._library = compiled(directory)
        self._root = directory / "disk"
        self._start_calls = 100
        self._recorder: Recorder | None = None

    def epoch(self, number: int, budget: Budget) -> list[str]:
        """Begin with an empty disk, and cut the power a few times."""
        chance = random.Random(f"{self._seed}/{number}")
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir()
        add_accounts(account_file(self._root / "data"))
        self._clients = Clients(CLIENTS, self._now, keeping=True)
        try:
            for _ in range(CUTS_OF_DISK):
                if problems := self._life(chance):
                    return [f"disk {number}: {problem}" for problem in problems]
                if not budget.more(self.counts["power cuts"]):
                    break
        finally:
            self.counts += Counter(self._clients.counts())
        return []

    def _now(self) -> int:
        return 0 if self._recorder is None else self._recorder.calls

    def _life(self, chance: random.Random) -> list[str]:
        """Serve, work and cut; then go on with a disk that the cut may have left."""
        life = drawn(self._mix, chance, self.counts["power cuts"])
        place = self._directory / "cycle"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        disk = Disk(self._root, life.strict)
        recorder = self._recorder = Recorder(self._library, self._root, place, SYNC_SECONDS)
        processes = Processes(self._program(life), recorder, place / "said")
        if life.early:
            self._cut_within(range(self._start_calls), life, recorder, chance)
        try:
            problems = asyncio.run(self._worked(processes, recorder, life, chance))
            self.counts["power cuts"] += 1
            return problems or self._cut(disk, recorder, chance, life)
        finally:
            processes.join()
            self._recorder = None
            recorder.close()

    def _program(self, life: Life) -> Program:
        names = [name for name in (self._mutation, "small_buffers" if life.small else "") if name]
        if self._mutation:
            names.append("in_workers")
        return ("tests.torture.mutations", "+".join(names)) if names else LAZULITE

    def _cut_within(self, calls: range, life: Life, recorder: Recorder, chance: random.Random) -> None:
        recorder.cut_after(chance.choice(calls), LAST_SYNC_SECONDS if life.in_sync else 0.0)

    async def _worked(self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random) -> list[str]:
        """Serve until the power is cut, under load unless it is cut in the start."""
        load: asyncio.Task[list[str]] | None = None
        account = await asyncio.to_thread(processes.serve, self._root / "data", life.workers, *FLAGS)
        problems = [] if account or recorder.off else [f"the server did not start: {processes.said()}"]
        verification = asyncio.create_task(self._verified(account, recorder))
        off = asyncio.create_task(_off(recorder))
        await asyncio.wait([verification, off], return_when=asyncio.FIRST_COMPLETED)
        if account and not recorder.off and not verification.result():
            if not life.early:
                self._start_calls = recorder.calls
                self._cut_within(life.calls, life, recorder, chance)
            load = asyncio.create_task(self._clients.load([Wire(account)], lambda: recorder.off))
            await off
        off.cancel()
        self.counts["in a start"] += load is None
        with recorder.cutting():
            processes.off()
        return problems + await verification + (await load if load else [])

    async def _verified(self, account: Account | None, recorder: Recorder) -> list[str]:
        problems = await self._clients.verify(Wire(account)) if account else []
        return [] if recorder.off else problems

    def _cut(self, disk: Disk, recorder: Recorder, chance: random.Random, life: Life) -> list[str]:
        records = list(recorder.records())
        untouched, again = deepcopy(disk), deepcopy(disk)
        disk.replay(records)
        if disk.now() != read_tree(self._root):
            return ["the records are not what the processes did"]
        self.counts["calls to the disk"] += len(records)
        changes = [change for account in self._clients.accounts for change in account.changes]
        answered = [(change.sent, change.came) for change in changes if change.came]
        if life.hindsight and answered and not life.early:  # After an early cut, they are of an earlier life.
            moment = self._moment(again, records, answered, chance)
            disk = untouched
            disk.replay(records[:moment])
            for account in self._clients.accounts:
                account.go_back(moment)
            self.counts["in hindsight"] += 1
        self.counts["in a sync"] += disk.syncing
        for _ in range(DISKS):
            shutil.rmtree(self._root)
            self._root.mkdir()
            write_tree(self._root, deepcopy(disk).after_cut(chance))
            if (self._root / "data").exists():
                try:
                    list(verify_location(self._root / "data", lambda _: None))
                except CommandError as problem:
                    if answered:
                        return [f"check: {problem}"]
            self.counts["disks"] += 1
        return []

    def _moment(self, disk: Disk, records: list[Record], answered: list[Answered], chance: random.Random) -> int:
        if chance.random() < RISKIEST:
            return riskiest(disk, records, answered, chance)
        return chance.choice(answered)[1]


async def _off(recorder: Recorder) -> None:
    """Return when the power is off, or should be."""
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    while not recorder.off and time.monotonic() < deadline:  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(0.005)


def run(budget: Budget, seed: int, directory: Path, mutation: str = "", mix: Mix = MIX) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` and `mix` are those of `BlobCuts`."""
    if compiler_missing():
        return Report({"power cuts": f"none, for there is no {COMPILER}"})
    cuts = BlobCuts(seed, directory, mutation, mix)
    problems: list[str] = []
    epochs = 0
    while not problems and budget.more(cuts.counts["power cuts"]):
        problems = cuts.epoch(epochs, budget)
        epochs += 1
    return Report({"disks from empty": epochs, **dict(sorted(cuts.counts.items()))}, tuple(problems[:20]))


BLOB_POWER = Campaign(
    "an acknowledged blob is whole after a power cut, and any other is the old or the new one", "power cuts", 2, run
)
