"""Cuts of power, whichever service works on the disk: what campaigns of tables, queues and blobs share.

A life, as `life` draws it: a server starts on what the cut before left, and must start. Clients work until the power is
cut at a call to the disk that the seed chose. Some cuts come while the server starts; some are moved to an earlier
moment (`hindsight`). Then some of the disks are made that the cut may have left (`disk`), and checked; the next life
goes on with the last of them. `PowerCuts` draws and cuts. A subclass has the clients of a service, and what they know.

Invariant: after a life the directory as the processes left it is the replay of their recorded calls, byte for byte. So
nothing was written that the disk's model does not know of.
"""

import asyncio
import random
import shutil
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

from lazulite.cli.check import verify_location
from lazulite.cli.errors import CommandError
from tests.server_process import LAZULITE, Program
from tests.torture.campaign import Budget, Report

from .disk import Disk, read_tree, write_tree
from .hindsight import Answered, riskiest
from .life import Life, Mix, drawn
from .processes import Processes
from .recorder import COMPILER, Record, Recorder, compiled, compiler_missing

SYNC_SECONDS, LAST_SYNC_SECONDS = 0.002, 0.3
"""The last sync is long enough for readers to look meanwhile, on a busy machine too."""
LOAD_SECONDS_MAX = 60.0
"""After that the cut comes whatever happens."""
PROBLEMS_REPORTED_MAX = 20


class PowerCuts(ABC):
    """Cut after cut on one disk, and the account of it that is kept elsewhere.

    Args:
        seed: of all choices.
        directory: to work in, empty.
        mutation: names what the server breaks, see `tests.torture.mutations`; "": nothing.
        mix: what the lives are like.
    """

    disks = 2
    """So many disks that a cut may leave are made and checked; the service goes on with the last."""
    variants: Sequence[str] = ()
    """Names of what all servers run beside the mutation."""

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        self.counts: Counter[str] = Counter({"power cuts": 0})
        self.root = directory / "disk"
        self.location = self.root / "data"
        self.start_calls = 100
        self._seed = seed
        self._directory = directory
        self._mutation = mutation
        self._mix = mix
        self._library = compiled(directory)
        self._recorder: Recorder | None = None

    # --- what a service adds

    @abstractmethod
    def epoch(self, chance: random.Random, budget: Budget) -> list[str]:
        """Do one life or several on a disk; return what is wrong, a sentence each."""

    @abstractmethod
    def serve_until_cut(
        self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random
    ) -> Sequence[str]:
        """Serve and let clients work until the power is off and all processes are gone; return what is wrong."""

    @abstractmethod
    def answered(self) -> Sequence[Answered]:
        """Return when the acknowledged changes were sent and acknowledged."""

    @abstractmethod
    def go_back(self, moment: int) -> None:
        """Forget what clients got after a moment."""

    def may_go_back(self, life: Life) -> bool:
        """Tell whether a cut may be moved to an earlier moment of this life."""
        return life.hindsight

    def moment(self, disk: Disk, records: Sequence[Record], answered: Sequence[Answered], chance: random.Random) -> int:
        """Choose the moment to which a cut is moved; the disk is as it was before all records."""
        return riskiest(disk, records, answered, chance)

    def problems_of_disk(self, *, stored: bool) -> Iterator[str]:
        """Yield what is wrong with the disk, without starting the service; `stored`: something was acknowledged."""
        if stored:
            try:
                list(verify_location(self.location, lambda _: None))
            except CommandError as problem:
                yield f"check: {problem}"

    # --- what all have

    def now(self) -> int:
        """Return which moment it is: how many calls this life has made."""
        return 0 if self._recorder is None else self._recorder.calls

    def empty_disk(self) -> None:
        """Begin with an empty disk."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()

    def draw(self, chance: random.Random) -> Life:
        """Draw the next life."""
        return drawn(self._mix, chance, self.counts["power cuts"])

    def live(self, life: Life, chance: random.Random, **variables: str) -> list[str]:
        """Serve, work and cut, then go on with a disk that the cut may have left. The evidence of two lives stays."""
        place = self._directory / f"life{self.counts['power cuts'] % 2}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copytree(self.root, place / "before")
        disk = Disk(self.root, life.strict)
        recorder = self._recorder = Recorder(self._library, self.root, place, SYNC_SECONDS)
        recorder.variables |= variables
        if life.early:
            self.cut_within(range(self.start_calls), life, recorder, chance)
        processes = Processes(self._program(life), recorder, place / "said")
        try:
            problems = list(self.serve_until_cut(processes, recorder, life, chance))
            self.counts["power cuts"] += 1
            return problems or self._after_cut(disk, recorder, chance, life)
        finally:
            processes.join()
            self._recorder = None
            recorder.close()

    def cut_within(self, calls: range, life: Life, recorder: Recorder, chance: random.Random) -> None:
        """Cut the power after any of so many more calls."""
        recorder.cut_after(chance.choice(calls), LAST_SYNC_SECONDS if life.in_sync else 0.0)

    async def until_off(self, recorder: Recorder) -> None:
        """Return when the power is off, or should be."""
        deadline = time.monotonic() + LOAD_SECONDS_MAX
        while not recorder.off and time.monotonic() < deadline:  # noqa: ASYNC110 - another process sets it
            await asyncio.sleep(0.005)

    def _program(self, life: Life) -> Program:
        names = [name for name in (self._mutation, *self.variants, "small_buffers" if life.small else "") if name]
        return ("tests.torture.mutations", "+".join(names)) if names else LAZULITE

    def _after_cut(self, disk: Disk, recorder: Recorder, chance: random.Random, life: Life) -> list[str]:
        """Make the disks that the cut may have left; or one before it, chosen in hindsight."""
        records = list(recorder.records())
        untouched, again = deepcopy(disk), deepcopy(disk)
        disk.replay(records)
        if disk.now() != read_tree(self.root):
            return ["the records are not what the processes did"]
        self.counts["calls to the disk"] += len(records)
        self.counts["with workers"] += life.workers > 1
        self.counts["with small buffers"] += life.small
        answered = self.answered()
        if answered and self.may_go_back(life):
            moment = self.moment(again, records, answered, chance)
            disk = untouched
            disk.replay(records[:moment])
            self.go_back(moment)
            self.counts["in hindsight"] += 1
        self.counts["in a sync"] += disk.syncing
        for _ in range(self.disks):
            self.empty_disk()
            write_tree(self.root, deepcopy(disk).after_cut(chance))
            if problems := list(self.problems_of_disk(stored=bool(answered))):
                return problems
            self.counts["disks"] += 1
        return []


def cut_power(kind: type[PowerCuts], budget: Budget, seed: int, directory: Path, mutation: str, mix: Mix) -> Report:
    """Cut the power until the budget is spent or a promise is broken; see `Campaign.run` and `PowerCuts`."""
    if compiler_missing():
        return Report({"power cuts": f"none, for there is no {COMPILER}"})
    cuts = kind(seed, directory, mutation, mix)
    problems: list[str] = []
    epochs = 0
    while not problems and budget.more(cuts.counts["power cuts"]):
        problems = cuts.epoch(random.Random(f"{seed}/{epochs}"), budget)
        epochs += 1
    return Report({"epochs": epochs, **cuts.counts}, tuple(problems[:PROBLEMS_REPORTED_MAX]))
