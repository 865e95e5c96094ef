"""Queues of several processes on one PostgreSQL database, whose clocks differ, while processes and the database fail.

Processes are killed, or replaced in order; the database crashes, or ends the connections of all. A process that is
killed leaves its last statements to the database, so a round ends when the database is through with them.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.postgres.engine_under_test import DATABASE
from tests.postgres.server import PostgresServer, until
from tests.server_process import Account, Program, ServerProcess
from tests.torture.campaign import Budget, Campaign, Report
from tests.torture.stepping_clock import VARIABLE as CLOCK
from tests.torture.stepping_clock import SteppingClock

from .campaign import QueueRun
from .history import SECOND, Time
from .servers import SERVICES, STEPPING
from .wire import Wire

PROCESSES: Mapping[int, str] = {0: STEPPING, 2: STEPPING, -3: "scripts"}
"""By how many seconds each process's clock is wrong: what it runs."""
FAULTS = (2, 5)
"""So many faults come in a round."""
BETWEEN_SECONDS = (0.2, 0.8)
HELD_SECONDS_MAX = 6
"""After that the last message that was got or updated is visible again."""
SPREAD_SECONDS = 3
"""After that all processes know of a clear, on a busy machine too."""
SESSIONS = "FROM pg_stat_activity WHERE application_name = 'lazulite'"


class OnDatabase:
    """Several processes on one database.

    Args:
        database: the server.
        directory: for logs and clocks.
        random: the source of all choices.
        counts: counts what was done.
        processes: as `PROCESSES`.
        mutation: names what the processes break; "": nothing.
        flags: of the command.
    """

    timeouts: Sequence[int] = (1, 1, 2, 3)

    def __init__(
        self,
        database: PostgresServer,
        directory: Path,
        random: Random,
        counts: Counter[str],
        processes: Mapping[int, str] = PROCESSES,
        mutation: str = "",
        flags: Sequence[str] = (),
    ) -> None:
        self._database = database
        self._flags = (*SERVICES, *flags)
        self._directory = directory
        self._random = random
        self._counts = counts
        self._programs = {
            seconds: ("tests.torture.mutations", "+".join(filter(None, (mutation, name))))
            for seconds, name in processes.items()
        }
        self._dsn = database.dsn()
        self._running: dict[int, ServerProcess] = {}
        self._wires: dict[int, Wire] = {}

    def name(self, epoch: int) -> str:
        """See `Servers`: a new name, as other processes hear of a deletion two seconds later."""
        return f"jobs{epoch}"

    def wires(self) -> Sequence[Wire]:
        """See `Servers`."""
        return list(self._wires.values())

    def accounts(self) -> Sequence[Account]:
        """Return how the processes that run are reached."""
        return [self._running[seconds].account for seconds in self._wires]

    async def begin(self) -> Time:
        """See `Servers`."""
        await self.again()
        return Time(spread=SPREAD_SECONDS * SECOND)

    async def again(self) -> None:
        """See `Servers`."""
        await asyncio.gather(*(self._start(seconds) for seconds in self._programs))

    async def past_holds(self) -> None:
        """See `Servers`: wait."""
        await asyncio.sleep(HELD_SECONDS_MAX)
        await self.again()

    async def disturb(self) -> None:
        """See `Servers`."""
        for _ in range(self._random.randint(*FAULTS)):
            await asyncio.sleep(self._random.uniform(*BETWEEN_SECONDS))
            await self._random.choice(self.faults())()

    async def end(self) -> None:
        """See `Servers`."""
        await asyncio.gather(*(self._end(seconds, signal.SIGKILL) for seconds in list(self._running)))
        await asyncio.to_thread(until, self._settled, "the database to finish")

    async def close(self) -> None:
        """See `Servers`."""
        for server in list(self._running.values()):
            server.kill()
            await asyncio.to_thread(server.join)

    # --- faults

    def faults(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return what may happen."""
        return self._kill, self._replace, self._disconnect, self._crash

    async def _kill(self) -> None:
        seconds = self._random.choice(list(self._running))
        await self._end(seconds, signal.SIGKILL)
        await self._start(seconds)
        self._counts["kills"] += 1

    async def _replace(self) -> None:
        seconds = self._random.choice(list(self._running))
        await self._end(seconds, signal.SIGTERM)
        await self._start(seconds)
        self._counts["replacements"] += 1

    async def _disconnect(self) -> None:
        await asyncio.to_thread(self._database.execute, f"SELECT pg_terminate_backend(pid) {SESSIONS}")
        self._counts["disconnections of all"] += 1

    async def _crash(self) -> None:
        await asyncio.to_thread(self._database.kill)
        await asyncio.to_thread(self._database.start)
        self._counts["crashes of the database"] += 1

    # --- processes

    async def _start(self, seconds: int) -> None:
        clock = SteppingClock(self._directory / f"clock {seconds}")
        clock.step(seconds * SECOND)
        clock.close()
        variables = {DATABASE: self._dsn, CLOCK: str(clock.path)}
        place, program = self._directory / f"process {seconds}", self._programs[seconds]
        server = await asyncio.to_thread(_started, place, program, self._flags, variables)
        self._running[seconds] = server
        self._wires[seconds] = Wire(server.account)

    async def _end(self, seconds: int, end: signal.Signals) -> None:
        server = self._running[seconds]
        del self._wires[seconds]
        assert not server.ended, "a process ended by itself"
        server.signal(end)
        code = await asyncio.to_thread(server.join)
        del self._running[seconds]
        assert code == (0 if end is signal.SIGTERM else -end), f"a process ended with {code} on {end.name}"

    def _settled(self) -> bool:
        return not self._database.execute(f"SELECT {SESSIONS}")


def _started(place: Path, program: Program, flags: Sequence[str], variables: Mapping[str, str]) -> ServerProcess:
    return ServerProcess.start(place, *flags, program=program, **variables)


def run(
    budget: Budget, seed: int, directory: Path, processes: Mapping[int, str] = PROCESSES, mutation: str = ""
) -> Report:
    """Run the campaign; see `Campaign.run`. `processes` and `mutation` are those of `OnDatabase`."""
    counts = Counter[str]()
    with PostgresServer.make() as database:
        servers = OnDatabase(database, directory, Random(seed), counts, processes, mutation)
        return asyncio.run(QueueRun(seed, servers, counts, directory).work(budget, "kills"))


QUEUE_ON_POSTGRES = Campaign(
    "each message is delivered to one consumer at a time, whichever process serves it and whatever fails",
    "kills",
    2,
    run,
)
