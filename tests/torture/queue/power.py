"""The power is cut under queues: the disk forgets what was not synced.

As the campaign `power`, whose disks and lives these are, with the clients and the checker of queues. An epoch is one
disk through a few cuts. At its end the queue is emptied by a server that nothing happens to, and each message is
accounted for.
"""

import asyncio
import random
import shutil
import signal
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path

from lazulite.cli.check import verify_location
from lazulite.cli.errors import CommandError
from tests.server_process import Account, Program
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.power.disk import Disk, read_tree, write_tree
from tests.torture.power.hindsight import Answered, riskiest
from tests.torture.power.life import Life, Mix, drawn
from tests.torture.power.processes import Processes
from tests.torture.power.recorder import COMPILER, Recorder, compiled, compiler_missing
from tests.torture.stepping_clock import VARIABLE as CLOCK

from .campaign import drained, plainly, working
from .checker import check
from .client import Shared, UnexpectedAnswerError
from .history import History, Kind, Time, true_time
from .servers import SERVICES, SMALL, STEPPING, OneServer
from .wire import Wire

CUTS_OF_DISK = 4
DISKS = 2
"""So many disks that a cut may leave are made and checked; the service goes on with the last."""
SYNC_SECONDS, LAST_SYNC_SECONDS = 0.002, 0.3
LOAD_SECONDS_MAX = 60.0
CHANGES = (Kind.PUT, Kind.UPDATE, Kind.DELETE)
MIX = Mix(fresh=0, accounts=0, backups=0, workers=0)
QUEUE = "jobs"


class QueueCuts:
    """Cut after cut, and the history that is kept elsewhere.

    Args:
        seed: of all choices.
        directory: to work in, empty.
        mutation: names what the server breaks; "": nothing.
        mix: what the lives are like.
    """

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        self.counts = Counter[str]()
        self._mix = mix
        self._seed = seed
        self._directory = directory
        self._mutation = mutation
        self._library = compiled(directory)
        self._root = directory / "disk"
        self._start_calls = 100
        self._recorder: Recorder | None = None
        self._wires: list[Wire] = []

    def epoch(self, number: int, budget: Budget) -> list[str]:
        """Begin with an empty disk, cut the power a few times, and account for each message."""
        chance = random.Random(f"{self._seed}/{number}")
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir()
        self._server = OneServer(
            self._root / "data", chance, self.counts, self._mutation, clock=self._directory / "clock"
        )
        history = History(lambda: 0 if self._recorder is None else self._recorder.calls)
        self._shared = Shared(QUEUE, history, lambda: self._wires, self.counts, chance)
        try:
            return self._lives(chance, budget)
        except (AssertionError, UnexpectedAnswerError) as problem:
            return [f"epoch {number}: {problem}"]
        finally:
            asyncio.run(self._server.close())

    def _lives(self, chance: random.Random, budget: Budget) -> list[str]:
        time_of_servers = asyncio.run(self._begin())
        for _ in range(CUTS_OF_DISK):
            if problems := self._life(chance):
                return problems
            if not budget.more(self.counts["power cuts"]):
                break
        drain = asyncio.run(self._drain(time_of_servers))
        return check(self._shared.history.events, time_of_servers, drain)

    async def _begin(self) -> Time:
        """Create the queue, while the power is on."""
        await self._server.begin_at(0)
        self._wires = list(self._server.wires())
        await plainly(self._shared, "PUT", 201)
        await self._server.end_by(signal.SIGTERM)
        return self._server.time

    async def _drain(self, time_of_servers: Time) -> int:
        await self._server.past_holds()
        self._wires = list(self._server.wires())
        drain = true_time()
        await drained(self._shared)
        await self._server.end_by(signal.SIGTERM)
        assert time_of_servers is self._server.time
        return drain

    def _life(self, chance: random.Random) -> list[str]:
        """Serve, work and cut; then go on with a disk that the cut may have left."""
        life = drawn(self._mix, chance, self.counts["power cuts"])
        place = self._directory / "cycle"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        disk = Disk(self._root, life.strict)
        recorder = self._recorder = Recorder(self._library, self._root, place, SYNC_SECONDS)
        recorder.variables[CLOCK] = str(self._server.clock_path)
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
        names = [name for name in (self._mutation, STEPPING, SMALL if life.small else "") if name]
        return ("tests.torture.mutations", "+".join(names))

    def _cut_within(self, calls: range, life: Life, recorder: Recorder, chance: random.Random) -> None:
        recorder.cut_after(chance.choice(calls), LAST_SYNC_SECONDS if life.in_sync else 0.0)

    async def _worked(self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random) -> list[str]:
        """Serve until the power is cut, under load unless it is cut in the start."""
        flags = (*SERVICES, "--accept-clock-jump")
        account: Account | None = await asyncio.to_thread(processes.serve, self._root / "data", life.workers, *flags)
        problems: list[str] = []
        if account is not None:
            if not life.early:
                self._start_calls = recorder.calls
                self._cut_within(life.calls, life, recorder, chance)
            self._wires = [Wire(account)]
            problems = await working(self._shared, _off(recorder))
        elif not recorder.off:
            problems = [f"the server did not start: {processes.said()}"]
        else:
            self.counts["in a start"] += 1
        with recorder.cutting():
            processes.off()
        self._shared.history.settle()
        return problems

    def _cut(self, disk: Disk, recorder: Recorder, chance: random.Random, life: Life) -> list[str]:
        history = self._shared.history
        records = list(recorder.records())
        untouched, again = deepcopy(disk), deepcopy(disk)
        disk.replay(records)
        if disk.now() != read_tree(self._root):
            return ["the records are not what the processes did"]
        self.counts["calls to the disk"] += len(records)
        answered: list[Answered] = [
            event.moments for event in history.events if event.kind in CHANGES and event.done and event.moments[1]
        ]
        if life.hindsight and answered:
            moment = riskiest(again, records, answered, chance)
            disk = untouched
            disk.replay(records[:moment])
            history.go_back(moment)
            self.counts["in hindsight"] += 1
        history.count_anew()
        self.counts["in a sync"] += disk.syncing
        for _ in range(DISKS):
            shutil.rmtree(self._root)
            self._root.mkdir()
            write_tree(self._root, deepcopy(disk).after_cut(chance))
            try:
                list(verify_location(self._root / "data", lambda _: None))
            except CommandError as problem:
                return [f"check: {problem}"]
            self.counts["disks"] += 1
        return []


async def _off(recorder: Recorder) -> None:
    """Return when the power is off, or should be."""
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    while not recorder.off and time.monotonic() < deadline:  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(0.005)


def run(budget: Budget, seed: int, directory: Path, mutation: str = "", mix: Mix = MIX) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` and `mix` are those of `QueueCuts`."""
    if compiler_missing():
        return Report({"power cuts": f"none, for there is no {COMPILER}"})
    cuts = QueueCuts(seed, directory, mutation, mix)
    problems: list[str] = []
    epochs = 0
    while not problems and budget.more(cuts.counts["power cuts"]):
        problems = cuts.epoch(epochs, budget)
        epochs += 1
    return Report({"disks from empty": epochs, **dict(sorted(cuts.counts.items()))}, tuple(problems[:20]))


QUEUE_POWER = Campaign(
    "no acknowledged change of a queue is lost when the power is cut, and no consumer had seen what was lost",
    "power cuts",
    2,
    run,
)
