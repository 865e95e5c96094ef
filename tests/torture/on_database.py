"""Several processes on one PostgreSQL database, whose clocks differ, while processes and the database fail.

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
from tests.postgres.server import Postgres, PostgresServer, until
from tests.server_process import Account, Program, ServerProcess

from .stepping_clock import VARIABLE as CLOCK
from .stepping_clock import SteppingClock

PROCESSES: Mapping[int, str] = {0: "stepping_clock", 2: "stepping_clock", -3: "scripts"}
"""By how many seconds each process's clock is wrong: what it runs."""
FAULTS = (2, 5)
"""So many faults come in a round."""
BETWEEN_SECONDS = (0.2, 0.8)
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
        self._flags = flags
        self._directory = directory
        self._random = random
        self._counts = counts
        self._programs = {
            seconds: ("tests.torture.mutations", "+".join(filter(None, (mutation, name))))
            for seconds, name in processes.items()
        }
        self._dsn = database.dsn()
        self._running: dict[int, ServerProcess] = {}
        self._ending: set[int] = set()

    def accounts(self) -> Sequence[Account]:
        """Return how the processes that run are reached."""
        return [server.account for seconds, server in self._running.items() if seconds not in self._ending]

    async def again(self) -> None:
        """Start all, for another round."""
        await asyncio.gather(*(self._start(seconds) for seconds in self._programs))

    async def disturb(self) -> None:
        """Let a few faults come while clients work."""
        for _ in range(self._random.randint(*FAULTS)):
            await asyncio.sleep(self._random.uniform(*BETWEEN_SECONDS))
            await self._random.choice(self.faults())()

    async def end(self) -> None:
        """Kill all, and wait until nothing can take effect any more."""
        await asyncio.gather(*(self._end(seconds, signal.SIGKILL) for seconds in list(self._running)))
        await asyncio.to_thread(until, self._settled, "the database to finish")

    async def close(self) -> None:
        """End whatever runs."""
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
        place, program = self._directory, self._programs[seconds]
        self._running[seconds] = await asyncio.to_thread(start, place, seconds, program, self._dsn, self._flags)

    async def _end(self, seconds: int, end: signal.Signals) -> None:
        server = self._running[seconds]
        self._ending.add(seconds)
        assert not server.ended, "a process ended by itself"
        server.signal(end)
        code = await asyncio.to_thread(server.join)
        del self._running[seconds]
        self._ending.discard(seconds)
        assert code == (0 if end is signal.SIGTERM else -end), f"a process ended with {code} on {end.name}"

    def _settled(self) -> bool:
        return is_settled(self._database)


def start(directory: Path, seconds: int, program: Program, dsn: str, flags: Sequence[str] = ()) -> ServerProcess:
    """Start a process on a database, whose clock is wrong by so many seconds."""
    clock = SteppingClock(directory / f"clock {seconds}")
    clock.step(seconds * 10**9)
    clock.close()
    variables = {DATABASE: dsn, CLOCK: str(clock.path)}
    return ServerProcess.start(directory / f"process {seconds}", *flags, program=program, **variables)


def is_settled(database: Postgres) -> bool:
    """Tell whether the database is through with the statements of all processes."""
    return not database.execute(f"SELECT {SESSIONS}")
