"""The power is cut under queues: the disk forgets what was not synced.

As in all campaigns of power (`tests.torture.power.cuts`), with the clients and the checker of queues. An epoch is one
disk through a few cuts. At its end the queue is emptied by a server that nothing happens to, and each message is
accounted for.
"""

import asyncio
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.http_client import UnexpectedAnswerError
from tests.torture.power.cuts import PowerCuts, cut_power
from tests.torture.power.hindsight import Answered
from tests.torture.power.life import Life, Mix
from tests.torture.power.processes import Processes
from tests.torture.power.recorder import Recorder
from tests.torture.stepping_clock import VARIABLE as CLOCK

from .campaign import drained, plainly, working
from .checker import check
from .client import Shared
from .history import History, Kind, Time, true_time
from .servers import SERVICES, STEPPING, OneServer
from .wire import Wire

CUTS_OF_DISK = 4
CHANGES = (Kind.PUT, Kind.UPDATE, Kind.DELETE)
FLAGS = (*SERVICES, "--accept-clock-jump")
MIX = Mix(fresh=0, accounts=0, backups=0, workers=0)
QUEUE = "jobs"


class QueueCuts(PowerCuts):
    """Cut after cut, and the history of a queue that is kept elsewhere."""

    variants = (STEPPING,)

    def epoch(self, chance: random.Random, budget: Budget) -> list[str]:
        """Begin with an empty disk, cut the power a few times, and account for each message."""
        self.empty_disk()
        self._wires: list[Wire] = []
        self._server = OneServer(self.location, chance, self.counts, self._mutation, clock=self._directory / "clock")
        self._history = History(self.now)
        self._shared = Shared(QUEUE, self._history, lambda: self._wires, self.counts, chance)
        try:
            return self._lives(chance, budget)
        except (AssertionError, UnexpectedAnswerError) as problem:
            return [f"{type(problem).__name__}: {problem}"]
        finally:
            asyncio.run(self._server.close())

    def _lives(self, chance: random.Random, budget: Budget) -> list[str]:
        time_of_servers = asyncio.run(self._begin())
        for _ in range(CUTS_OF_DISK):
            if problems := self.live(self.draw(chance), chance, **{CLOCK: str(self._server.clock_path)}):
                return problems
            self._history.count_anew()
            if not budget.more(self.counts["power cuts"]):
                break
        drain = asyncio.run(self._drain(time_of_servers))
        return check(self._history.events, time_of_servers, drain)

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

    def serve_until_cut(
        self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random
    ) -> Sequence[str]:
        """See `PowerCuts`: no clients work in a start that is cut."""
        return asyncio.run(self._worked(processes, recorder, life, chance))

    async def _worked(self, processes: Processes, recorder: Recorder, life: Life, chance: random.Random) -> list[str]:
        account = await asyncio.to_thread(processes.serve, self.location, life.workers, *FLAGS)
        problems: list[str] = []
        if account is not None:
            if not life.early:
                self.start_calls = recorder.calls
                self.cut_within(life.calls, life, recorder, chance)
            self._wires = [Wire(account)]
            problems = await working(self._shared, self.until_off(recorder))
        elif not recorder.off:
            problems = [f"the server did not start: {processes.said()}"]
        else:
            self.counts["in a start"] += 1
        with recorder.cutting():
            processes.off()
        self._history.settle()
        return problems

    def answered(self) -> Sequence[Answered]:
        """See `PowerCuts`."""
        events = self._history.events
        return [each.moments for each in events if each.kind in CHANGES and each.done and each.moments[1]]

    def go_back(self, moment: int) -> None:
        """See `PowerCuts`."""
        self._history.go_back(moment)

    def problems_of_disk(self, *, stored: bool) -> Iterator[str]:
        """See `PowerCuts`: the queue was created while the power was on, so there is a store."""
        return super().problems_of_disk(stored=True)


def run(budget: Budget, seed: int, directory: Path, mutation: str = "", mix: Mix = MIX) -> Report:
    """Run the campaign; see `Campaign.run`. `mutation` and `mix` are those of `PowerCuts`."""
    return cut_power(QueueCuts, budget, seed, directory, mutation, mix)


QUEUE_POWER = Campaign(
    "no acknowledged change of a queue is lost when the power is cut, and no consumer had seen what was lost",
    "power cuts",
    2,
    run,
)
