"""The power is cut under blobs: the disk forgets what was not synced, rows and contents alike.

As in all campaigns of power (`tests.torture.power.cuts`), with the clients of the campaign `blobs`. A start compares
each blob with what its client knows: an acknowledged change is there, whole; another one is there whole, or not at all.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lazulite.settings.config import account_file
from tests.server_process import Account
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.power.cuts import PowerCuts, cut_power
from tests.torture.power.disk import Disk
from tests.torture.power.hindsight import Answered
from tests.torture.power.life import Life, Mix
from tests.torture.power.processes import Processes
from tests.torture.power.recorder import Record, Recorder

from .clients import Clients
from .keeping import add_accounts
from .wire import Wire

CLIENTS = 4
CUTS_OF_DISK = 6
FLAGS = ("--services", "table,blob")
MIX = Mix(fresh=0, accounts=0, backups=0, long=0.2)
RISKIEST = 0.5
"""The share of cuts in hindsight that follow the change with the fewest syncs of a log behind it, not just any."""


class BlobCuts(PowerCuts):
    """Cut after cut, and what clients know."""

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        super().__init__(seed, directory, mutation, mix)
        self.variants = ("in_workers",) if mutation else ()

    def epoch(self, chance: random.Random, budget: Budget) -> list[str]:
        """Begin with an empty disk, and cut the power a few times."""
        self.empty_disk()
        add_accounts(account_file(self.location))
        self._clients = Clients(CLIENTS, self.now, keeping=True)
        try:
            for _ in range(CUTS_OF_DISK):
                if problems := self.live(self.draw(chance), chance):
                    return problems
                if not budget.more(self.counts["power cuts"]):
                    break
        finally:
            self.counts += Counter(self._clients.counts())
        return []

    def serve_until_cut(
        self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random
    ) -> Sequence[str]:
        """See `PowerCuts`: no clients work in a start that is cut."""
        return asyncio.run(self._worked(processes, recorder, life, chance))

    async def _worked(self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random) -> list[str]:
        load: asyncio.Task[list[str]] | None = None
        account = await asyncio.to_thread(processes.serve, self.location, life.workers, *FLAGS)
        problems = [] if account or recorder.off else [f"the server did not start: {processes.said()}"]
        verification = asyncio.create_task(self._verified(account, recorder))
        off = asyncio.create_task(self.until_off(recorder))
        await asyncio.wait([verification, off], return_when=asyncio.FIRST_COMPLETED)
        if account and not recorder.off and not verification.result():
            if not life.early:
                self.start_calls = recorder.calls
                self.cut_within(life.calls, life, recorder, chance)
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

    def answered(self) -> Sequence[Answered]:
        """See `PowerCuts`."""
        changes = (change for account in self._clients.accounts for change in account.changes)
        return [(change.sent, change.came) for change in changes if change.came]

    def may_go_back(self, life: Life) -> bool:
        """See `PowerCuts`: after an early cut, the changes are of an earlier life."""
        return life.hindsight and not life.early

    def go_back(self, moment: int) -> None:
        """See `PowerCuts`."""
        for account in self._clients.accounts:
            account.go_back(moment)

    def moment(self, disk: Disk, records: Sequence[Record], answered: Sequence[Answered], chance: random.Random) -> int:
        """See `PowerCuts`: the riskiest moment, or that of any change."""
        if chance.random() < RISKIEST:
            return super().moment(disk, records, answered, chance)
        return chance.choice(answered)[1]


def run(budget: Budget, seed: int, directory: Path, mutation: str = "", mix: Mix = MIX) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` and `mix` are those of `PowerCuts`."""
    return cut_power(BlobCuts, budget, seed, directory, mutation, mix)


BLOB_POWER = Campaign(
    "an acknowledged blob is whole after a power cut, and any other is the old or the new one", "power cuts", 2, run
)
