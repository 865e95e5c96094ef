"""What serves the queues of a campaign: one server on one store, which ends and begins again with another clock."""

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Protocol

from tests.server_process import Program, ServerProcess
from tests.torture.campaign import Servers
from tests.torture.kills import kill_worker
from tests.torture.stepping_clock import VARIABLE as CLOCK
from tests.torture.stepping_clock import SteppingClock

from .client import TIMEOUTS
from .history import SECOND, Time, true_time
from .wire import Wire

WITH_WORKERS = 0.3
"""The share of servers with workers, one of which is killed."""
LOAD_SECONDS = (0.2, 2.5)
TERMINATED = 0.3
"""The share of ends by SIGTERM."""
STEPS = (0, 0, SECOND // 2, 2 * SECOND, -2 * SECOND, 3600 * SECOND, -3600 * SECOND, -3600 * SECOND)
"""Of the clock, between two servers."""
SERVICES = ("--services", "table,queue", "--queue-port", "0")
STEPPING, SMALL = "stepping_clock", "small_buffers"


class QueueServers(Servers, Protocol):
    """What serves the queues of a campaign."""

    timeouts: Sequence[int]
    """The visibility timeouts that consumers ask for, in seconds."""

    def name(self, epoch: int) -> str:
        """Return the name of an epoch's queue."""
        ...

    def wires(self) -> Sequence[Wire]:
        """Return the servers that run."""
        ...

    async def begin(self) -> Time:
        """Start before an epoch, and return its time."""
        ...

    async def past_holds(self) -> None:
        """Start for the end of an epoch: all messages that were got are visible again, if they are there."""
        ...


class OneServer:
    """One server process on one store, with a clock that steps between two lives.

    Args:
        location: of the store.
        random: the source of all choices.
        counts: counts what was done.
        mutation: names what the server breaks, see `tests.torture.mutations`; "": nothing.
        flags: of the command.
        clock: the file of its clock; None: beside the location.
    """

    timeouts: Sequence[int] = TIMEOUTS

    def __init__(
        self,
        location: Path,
        random: Random,
        counts: Counter[str],
        mutation: str = "",
        flags: Sequence[str] = (),
        clock: Path | None = None,
    ) -> None:
        self._location = location
        self._random = random
        self._counts = counts
        self._mutation = mutation
        self._flags = flags
        self._clock = SteppingClock(clock or location.with_name("clock"))
        self.time = Time()
        self.server: ServerProcess | None = None
        self._wire: Wire | None = None

    @property
    def clock_path(self) -> Path:
        """The file of its clock."""
        return self._clock.path

    def name(self, epoch: int) -> str:
        """See `Servers`: the name of the queue that was deleted before."""
        return "jobs"

    def wires(self) -> Sequence[Wire]:
        """See `Servers`."""
        return [] if self._wire is None else [self._wire]

    async def begin(self) -> Time:
        """See `Servers`: begin with any time of day."""
        return await self.begin_at(self._random.choice(STEPS))

    async def begin_at(self, error: int) -> Time:
        """Begin with a clock that is wrong by so many nanoseconds."""
        self._clock.be_right()
        self._clock.step(error)
        self.time = Time(error)
        await self._start()
        return self.time

    async def again(self) -> None:
        """See `Servers`: step the clock."""
        await self.step(self._random.choice(STEPS))

    async def past_holds(self) -> None:
        """See `Servers`: set the clock ahead."""
        await self.step(self.time.latest(true_time()) - true_time() + 60 * SECOND - self._clock.error_ns)

    async def step(self, nanoseconds: int) -> None:
        """Start with a clock that has been stepped."""
        self._clock.step(nanoseconds)
        self.time.step(true_time(), self._clock.error_ns)
        self._counts["clock steps"] += nanoseconds != 0
        await self._start()

    async def _start(self) -> None:
        workers = self._random.choices((1, 2), (1 - WITH_WORKERS, WITH_WORKERS))[0]
        flags = (*SERVICES, *self._flags, "--accept-clock-jump", "--workers", str(workers))
        variables = {CLOCK: str(self._clock.path)}
        self.server = await asyncio.to_thread(
            ServerProcess.start, self._location, *flags, program=self._program(), **variables
        )
        self._wire = Wire(self.server.account)

    def _program(self) -> Program:
        small = SMALL if self._random.random() < 0.5 else ""
        names = [name for name in (self._mutation, STEPPING, small) if name]
        return ("tests.torture.mutations", "+".join(names))

    async def disturb(self) -> None:
        """See `Servers`: wait for the end; perhaps set the clock meanwhile, which must change nothing before it."""
        load_seconds = self._random.uniform(*LOAD_SECONDS)
        await asyncio.sleep(load_seconds / 2)
        self._clock.step(self._random.choice(STEPS))
        assert self.server is not None
        kill_worker(self.server, self._random, self._counts)
        await asyncio.sleep(load_seconds / 2)

    async def end(self) -> None:
        """See `Servers`: kill it, or tell it to stop."""
        await self.end_by(signal.SIGTERM if self._random.random() < TERMINATED else signal.SIGKILL)

    async def end_by(self, end: signal.Signals) -> None:
        """End it by a signal."""
        server, self.server, self._wire = self.server, None, None
        if server is None:
            return
        assert not server.ended, "the server ended by itself"
        server.signal(end)
        code = await asyncio.to_thread(server.join)
        assert code == (0 if end is signal.SIGTERM else -end), f"the server ended with {code} on {end.name}"
        self._counts["kills" if end is signal.SIGKILL else "terminations"] += 1

    async def close(self) -> None:
        """See `Servers`."""
        server, self.server = self.server, None
        if server is not None:
            server.kill()
            await asyncio.to_thread(server.join)
        self._clock.close()
