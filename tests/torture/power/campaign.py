"""The power is cut under a server: the disk forgets whatever was not synced, and tears what was being written.

A cycle, as `power_life` draws it: a server starts on what the cut before left, and must start. What was acknowledged
must be there, and whatever a reader was shown. Then clients write, readers read, and commands run, until the power is
cut at a call to the disk that the seed chose. Some cuts come while the server starts; some are moved to an earlier
moment (`hindsight`). Then some of the disks are made that the cut may have left (`disk`), and checked; the next cycle
goes on with one of them.

Before that, the directory as the processes left it is compared with the replayed records of their calls, byte for
byte: so nothing was written that the disk's model does not know of.
"""

import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path

from azure.core.exceptions import AzureError

from lazulite.cli.check import verify_location
from lazulite.cli.errors import CommandError
from tests.sdk.ledger import strays
from tests.sdk.load import OPERATIONS_MAX, PARTITIONS, ROWS, SHARED, Fuse, Worker
from tests.sdk.test_kill import connect, observe
from tests.server_process import LAZULITE, Account, Program
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.crash import background_work

from .commands import Commands
from .disk import Disk, read_tree, write_tree
from .hindsight import riskiest
from .life import Life, Mix, drawn
from .processes import Processes
from .recorder import COMPILER, Recorder, compiled, compiler_missing
from .witness import Chronicle, Reader, Shown, lost

WRITERS = 4
READERS = 2
SYNC_SECONDS, LAST_SYNC_SECONDS = 0.002, 0.3
"""The last sync is long enough for readers to look meanwhile, on a busy machine too."""
DISKS = 3
"""So many disks that a cut may leave are made and checked; the service goes on with the last."""
LOAD_SECONDS_MAX = 60.0
"""After that it comes whatever happens."""
ROWS_OF = {
    SHARED: [(SHARED, f"p{n % PARTITIONS}", f"{n}-{row:02}") for n in range(WRITERS) for row in range(ROWS)],
    **{
        f"own{n}": [(f"own{n}", f"p{n % PARTITIONS}", str(row)) for row in range(OPERATIONS_MAX)]
        for n in range(WRITERS)
    },
}
"""The keys of all rows that there may ever be, by table."""


DEFAULT_MIX = Mix()


class Cuts:
    """Cut after cut on one disk, and the account of it that is kept elsewhere."""

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        """Work in an empty directory; `mutation`, if any, breaks the server, see `tests.torture.mutations.power`."""
        self.counts: Counter[str] = Counter()
        self._mix = mix
        self._seed = seed
        self._directory = directory
        self._mutation = mutation
        self._library = compiled(directory)
        self._root = directory / "disk"
        self._location = self._root / "data"
        self._start_calls = 100
        self._recorder: Recorder | None = None
        self._renew()

    def _renew(self) -> None:
        """Begin with an empty disk."""
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir()
        self._workers = [Worker(number) for number in range(WRITERS)]
        self._chronicles = [Chronicle(worker.journal.owns, self.counts, self._now, {}) for worker in self._workers]
        self._commands = Commands(self._root, self.counts)
        self._shown: dict[Shown, int] = {}

    def _now(self) -> int:
        """Return which moment it is: how many calls this cycle has made."""
        return 0 if self._recorder is None else self._recorder.calls

    def cycle(self, number: int) -> list[str]:
        """Start, verify, work, cut; return what is broken, a sentence each. Two cycles' evidence stays."""
        chance = random.Random(f"{self._seed}/{number}")
        life = drawn(self._mix, chance, number)
        if life.fresh:
            self._renew()
        directory = self._directory / f"cycle{number % 2}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        shutil.copytree(self._root, directory / "before")
        disk = Disk(self._root, life.strict)
        recorder = self._recorder = Recorder(self._library, self._root, directory, SYNC_SECONDS)
        if life.early:
            self._cut_within(range(self._start_calls), life, recorder, chance)
        processes = Processes(self._program(life), recorder, directory / "said")
        try:
            problems = list(self._live(processes, recorder, chance, life))
            problems = problems or list(self._cut(disk, recorder, chance, life))
        finally:
            processes.join()
            self._recorder = None
            recorder.close()
        return [f"cycle {number}: {problem}" for problem in problems]

    def _program(self, life: Life) -> Program:
        names = [name for name in (self._mutation, "small_buffers" if life.small else "") if name]
        return ("tests.torture.mutations", "+".join(names)) if names else LAZULITE

    def _cut_within(self, calls: range, life: Life, recorder: Recorder, chance: random.Random) -> None:
        recorder.cut_after(chance.choice(calls), LAST_SYNC_SECONDS if life.in_sync else 0.0)

    # --- while the power is on

    def _live(self, processes: Processes, recorder: Recorder, chance: random.Random, life: Life) -> Iterator[str]:
        """Serve, verify and work until the power is off."""
        seed = chance.getrandbits(32)
        beside: list[Future[None]] = []
        with ThreadPoolExecutor(WRITERS + READERS + 1) as pool, _until_cut(processes, recorder):
            if life.kind == "accounts":  # They need no service, so they begin before it.
                beside.append(pool.submit(self._commands.work, life.kind, processes.command, random.Random(seed)))
            account = processes.serve(self._location, life.workers)
            if account is None and not recorder.off:
                yield f"the server did not start: {processes.said()}"
            if account is None or (problems := self._verified(account, recorder)) is None:
                self.counts["in a start"] += 1
                return
            yield from problems
            if problems:
                return
            if not life.early:
                self._start_calls = recorder.calls
                self._cut_within(life.calls, life, recorder, chance)
            if life.kind == "backups":
                beside.append(pool.submit(self._commands.work, life.kind, processes.command, random.Random(seed)))
            yield from self._worked(account, pool, seed)
        yield from _failures(beside)

    def _verified(self, account: Account, recorder: Recorder) -> list[str] | None:
        """Hold what the service has against all that was promised; None if the power was cut meanwhile."""
        try:
            with connect(account) as service:
                service.create_table_if_not_exists(SHARED)
                store = observe(service)
        except AzureError:
            if recorder.off:
                return None
            raise
        problems = [problem for chronicle in self._chronicles for problem in chronicle.problems(store)]
        problems += strays(self._chronicles, store)
        problems += lost(self._shown, self._chronicles, store)
        self.counts["states shown to readers"] += len(self._shown)
        self._shown = {}
        if not problems:
            for chronicle in self._chronicles:
                chronicle.settle(store)
        return problems

    def _worked(self, account: Account, pool: ThreadPoolExecutor, seed: int) -> Iterator[str]:
        """Let clients write and read until the power is cut."""
        burnt = Fuse(1)
        burnt.burn()  # The service may be gone at any time.
        readers = [Reader(account, ROWS_OF, f"{seed}/{number}", self._now) for number in range(READERS)]
        with ExitStack() as stack:
            runs = [pool.submit(reader.run) for reader in readers]
            for worker, chronicle in zip(self._workers, self._chronicles, strict=True):
                worker.journal = chronicle
                runs.append(pool.submit(worker.run, stack.enter_context(connect(account)), seed, burnt))
            yield from _failures(runs)
        for reader in readers:
            for shown, moment in reader.shown.items():
                self._shown[shown] = min(moment, self._shown.get(shown, moment))

    # --- after the cut

    def _cut(self, disk: Disk, recorder: Recorder, chance: random.Random, life: Life) -> Iterator[str]:
        """Make the disks that the cut may have left; or one before it, chosen in hindsight."""
        records = list(recorder.records())
        untouched, again = deepcopy(disk), deepcopy(disk)
        disk.replay(records)
        if disk.now() != read_tree(self._root):
            yield "the records are not what the processes did"
        self.counts["calls to the disk"] += len(records)
        self.counts["with workers"] += life.workers > 1
        self.counts["with small buffers"] += life.small
        answered = [pair for chronicle in self._chronicles for pair in chronicle.answered]
        self.counts += background_work(self._location) if answered else Counter()
        if life.hindsight and answered:
            moment = riskiest(again, records, answered, chance)
            disk = untouched
            disk.replay(records[:moment])
            self._go_back(moment)
        for chronicle in self._chronicles:
            chronicle.count_anew()
        self.counts["in a sync"] += disk.syncing
        for _ in range(DISKS):
            shutil.rmtree(self._root)
            self._root.mkdir()
            write_tree(self._root, deepcopy(disk).after_cut(chance))
            problems = list(self._found())
            yield from problems
            if problems:
                return
            self.counts["disks"] += 1
        self._commands.settle()

    def _go_back(self, moment: int) -> None:
        """Forget what clients and readers got after a moment."""
        self.counts["in hindsight"] += 1
        self._chronicles = [chronicle.as_of(moment) for chronicle in self._chronicles]
        self._shown = {shown: at for shown, at in self._shown.items() if at <= moment}

    def _found(self) -> Iterator[str]:
        """Yield the problems of a disk, without starting the service."""
        yield from self._commands.problems(self._root)
        if any(chronicle.acknowledged for chronicle in self._chronicles):
            try:
                list(verify_location(self._location, lambda _: None))
            except CommandError as problem:
                yield f"check: {problem}"


@contextmanager
def _until_cut(processes: Processes, recorder: Recorder) -> Iterator[None]:
    """Have all processes gone when the block ends, and the power cut; or before, if that takes too long."""

    def off() -> None:
        with recorder.cutting():
            processes.off()

    watchdog = threading.Timer(LOAD_SECONDS_MAX, off)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        watchdog.join()
        off()


def _failures(runs: Sequence[Future[None]]) -> Iterator[str]:
    """Wait for some work; yield its problems, including responses that no client may get."""
    for run in runs:
        try:
            run.result()
        except (AssertionError, AzureError) as problem:
            yield str(problem)


def power(budget: Budget, seed: int, directory: Path, mutation: str = "", mix: Mix = DEFAULT_MIX) -> Report:
    """Cut the power until the budget is spent or a promise is broken."""
    if compiler_missing():
        return Report({"power cuts": f"none, for there is no {COMPILER}"})
    cuts = Cuts(seed, directory, mutation, mix)
    done = 0
    problems: list[str] = []
    while not problems and budget.more(done):
        problems = cuts.cycle(done)
        done += 1
    return Report({"power cuts": done, **cuts.counts}, tuple(problems))


POWER = Campaign(
    promise="nothing acknowledged is lost when the power is cut, and no reader had seen what was lost",
    unit="power cuts",
    weight=3,
    run=power,
)
