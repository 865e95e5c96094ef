"""The power is cut under tables: the disk forgets whatever was not synced, and tears what was being written.

As in all campaigns of power (`cuts`). What was acknowledged must be there, and whatever a reader was shown. Clients
write, readers read, and commands run, until the power is cut.
"""

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from azure.core.exceptions import AzureError

from tests.sdk.ledger import strays
from tests.sdk.load import OPERATIONS_MAX, PARTITIONS, ROWS, SHARED, Fuse, Worker
from tests.sdk.test_kill import connect, observe
from tests.server_process import Account
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.crash import background_work

from .commands import Commands
from .cuts import LOAD_SECONDS_MAX, PowerCuts, cut_power
from .hindsight import Answered
from .life import Life, Mix
from .processes import Processes
from .recorder import Recorder
from .witness import Chronicle, Reader, Shown, lost

WRITERS = 4
READERS = 2
ROWS_OF = {
    SHARED: [(SHARED, f"p{n % PARTITIONS}", f"{n}-{row:02}") for n in range(WRITERS) for row in range(ROWS)],
    **{
        f"own{n}": [(f"own{n}", f"p{n % PARTITIONS}", str(row)) for row in range(OPERATIONS_MAX)]
        for n in range(WRITERS)
    },
}
"""The keys of all rows that there may ever be, by table."""

DEFAULT_MIX = Mix()


class TableCuts(PowerCuts):
    """Cut after cut, and what writers, readers and commands know. An epoch is one life."""

    disks = 3

    def __init__(self, seed: int, directory: Path, mutation: str, mix: Mix) -> None:
        super().__init__(seed, directory, mutation, mix)
        self._renew()

    def _renew(self) -> None:
        """Begin with an empty disk."""
        self.empty_disk()
        self._workers = [Worker(number) for number in range(WRITERS)]
        self._chronicles = [Chronicle(worker.journal.owns, self.counts, self.now, {}) for worker in self._workers]
        self._commands = Commands(self.root, self.counts)
        self._shown: dict[Shown, int] = {}

    def epoch(self, chance: random.Random, budget: Budget) -> list[str]:
        """See `PowerCuts`."""
        life = self.draw(chance)
        if life.fresh:
            self._renew()
        problems = self.live(life, chance)
        if not problems:
            self._commands.settle()
            for chronicle in self._chronicles:
                chronicle.count_anew()
        return problems

    # --- while the power is on

    def serve_until_cut(
        self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random
    ) -> Sequence[str]:
        """See `PowerCuts`: what was promised before is verified first."""
        return list(self._live(processes, recorder, life, chance))

    def _live(self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random) -> Iterator[str]:
        seed = chance.getrandbits(32)
        beside: list[Future[None]] = []
        with ThreadPoolExecutor(WRITERS + READERS + 1) as pool, _until_cut(processes, recorder):
            if life.kind == "accounts":  # They need no service, so they begin before it.
                beside.append(pool.submit(self._commands.work, life.kind, processes.command, random.Random(seed)))
            account = processes.serve(self.location, life.workers)
            if account is None and not recorder.off:
                yield f"the server did not start: {processes.said()}"
            if account is None or (problems := self._verified(account, recorder)) is None:
                self.counts["in a start"] += 1
                return
            yield from problems
            if problems:
                return
            if not life.early:
                self.start_calls = recorder.calls
                self.cut_within(life.calls, life, recorder, chance)
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
        readers = [Reader(account, ROWS_OF, f"{seed}/{number}", self.now) for number in range(READERS)]
        with ExitStack() as stack:
            runs = [pool.submit(reader.run) for reader in readers]
            for worker, chronicle in zip(self._workers, self._chronicles, strict=True):
                worker.journal = chronicle
                runs.append(pool.submit(worker.run, stack.enter_context(connect(account)), seed, burnt))
            yield from _failures(runs)
        for reader in readers:
            for shown, moment in reader.shown.items():
                self._shown[shown] = min(moment, self._shown.get(shown, moment))
        if any(chronicle.answered for chronicle in self._chronicles):
            self.counts += background_work(self.location)

    # --- after the cut

    def answered(self) -> Sequence[Answered]:
        """See `PowerCuts`."""
        return [pair for chronicle in self._chronicles for pair in chronicle.answered]

    def go_back(self, moment: int) -> None:
        """See `PowerCuts`."""
        self._chronicles = [chronicle.as_of(moment) for chronicle in self._chronicles]
        self._shown = {shown: at for shown, at in self._shown.items() if at <= moment}

    def problems_of_disk(self, *, stored: bool) -> Iterator[str]:
        """See `PowerCuts`: of what any life has acknowledged, and of the commands."""
        yield from self._commands.problems(self.root)
        yield from super().problems_of_disk(stored=any(chronicle.acknowledged for chronicle in self._chronicles))


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
    """Run the campaign; see `Campaign.run`. `mutation` and `mix` are those of `PowerCuts`."""
    return cut_power(TableCuts, budget, seed, directory, mutation, mix)


POWER = Campaign(
    promise="nothing acknowledged is lost when the power is cut, and no reader had seen what was lost",
    unit="power cuts",
    weight=3,
    run=power,
)
