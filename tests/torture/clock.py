"""The server's clock steps, stands still and jumps while clients write, and over restarts.

Each round clients write while the clock is set to something else every few milliseconds. Beside it a connection rests,
which must not be closed however far the clock steps forward; another has sent half a head, and must be closed however
far it steps back: that ends the round. The next server begins with the clock that the last one left, or an earlier one.
"""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.requests import ACCOUNT, account_sas, shared_key

from tests.server_process import Program, ServerProcess

from .campaign import Budget, Campaign, Report
from .clients import Clients
from .http_client import Connection, LostConnectionError, assembled, raw
from .stepping_clock import VARIABLE, SteppingClock

CLIENTS = 8
PROGRAM: Program = ("tests.torture.variants", "stepping_clock")
HEAD_SECONDS = 0.2
"""How long half a head is waited for."""
STRUCK_SECONDS_MAX = 60
"""A deadline that has not struck by then never will, however loaded the machine is."""
STEP_SECONDS_MAX = 0.02
"""The time between two steps is at most so long."""
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ERROR_MAX = 3650 * DAY


class Probe(NamedTuple):
    """A request that depends on the time of day.

    Attributes:
        name: for the counts.
        request: made when the clock was right, a moment ago.
        accepted: whether it must be accepted by a clock that is wrong by so many nanoseconds.
    """

    name: str
    request: bytes
    accepted: Callable[[int], bool]


LIMITS = (-15 * MINUTE, 15 * MINUTE, HOUR)
"""The errors of the clock at which a probe's answer changes."""
MARGIN = 5 * MINUTE
"""The campaign does not ask so near to them, for time goes by."""


def probes() -> list[Probe]:
    """Return requests of now."""
    now = datetime.now(UTC)
    path = f"/{ACCOUNT}/Tables"
    date = format_datetime(now, usegmt=True)
    headers = {"x-ms-date": date, "Authorization": shared_key("GET", path, date)}
    expiry = account_sas(f"{now + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}")
    return [
        Probe("Shared Key", assembled("GET", path, b"", headers), lambda error: abs(error) <= 15 * MINUTE),
        Probe("SAS of an hour", assembled("GET", f"{path}?{expiry}", b"", {}), lambda error: error <= HOUR),
        Probe("SAS forever", raw("GET", "Tables"), lambda _: True),
    ]


class Hands:
    """Set the clock to anything, at random."""

    def __init__(self, clock: SteppingClock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._furthest = 0

    def turn(self) -> str:
        """Take a step; return its name."""
        steps: dict[str, Callable[[], None]] = {
            "a day forward": lambda: self._clock.step(DAY),
            "a day back": lambda: self._clock.step(-DAY),
            "an odd time forward": lambda: self._clock.step(self._odd()),
            "an odd time back": lambda: self._clock.step(-self._odd()),
            "further than ever": lambda: self._clock.step(self._furthest - self._clock.error_ns + self._odd() % HOUR),
            "right": self._clock.be_right,
            "still": self._clock.stand_still,
        }
        name = self._random.choice(list(steps))
        steps[name]()
        if abs(self._clock.error_ns) > ERROR_MAX:
            self._clock.be_right()
        self._furthest = max(self._furthest, self._clock.error_ns)
        return name

    def _odd(self) -> int:
        """Any time up to two days, of every order of magnitude."""
        return self._random.randrange(10 ** self._random.randint(2, 15)) % (2 * DAY)


class Clock:
    """The campaign at work in a directory."""

    def __init__(self, seed: int, directory: Path, program: Program) -> None:
        self.problems: list[str] = []
        self._random = Random(seed)
        self._clients = Clients(CLIENTS, self._random, directory)
        self._clock = SteppingClock(directory / "clock")
        self._hands = Hands(self._clock, self._random)
        self._location = directory / "data"
        self._program = program
        self._done: Counter[str] = Counter(restarts=0, steps=0)

    def work(self, budget: Budget) -> Report:
        """Go round until the budget is spent or something is wrong."""
        with asyncio.Runner() as runner:
            while not self.problems and budget.more(self._done["restarts"]):
                try:
                    runner.run(self._round(self._random.choice([signal.SIGTERM, signal.SIGKILL])))
                except (AssertionError, LostConnectionError) as error:  # It did not start, or it went away.
                    self.problems.append(str(error))
        self._clients.log.close()
        self._clock.close()
        return Report({**self._done, **self._clients.counts()}, tuple(self.problems))

    async def _round(self, end: signal.Signals) -> None:
        environment = {VARIABLE: str(self._clock.path)}
        limit = ("--header-read-seconds", str(HEAD_SECONDS), "--accept-clock-jump")
        server = ServerProcess.start(self._location, *limit, program=self._program, **environment)
        gone = threading.Event()
        load: asyncio.Task[list[str]] | None = None
        try:
            self.problems += await self._clients.verify(server.account.host)
            if not self.problems:
                load = asyncio.create_task(self._clients.load(server.account.host, gone.is_set))
                await self._step(server.account.host)
        finally:
            gone.set()
            server.signal(end)
            self.problems += await load if load is not None else []
            code = server.join()
        if code != (0 if end is signal.SIGTERM else -signal.SIGKILL):
            self.problems.append(f"the server ended with {code} after {end.name}")
        self._done["restarts"] += 1
        if self._random.random() < 0.5:
            self._clock.step(-DAY)  # While no server runs.

    async def _step(self, host: str) -> None:
        """Let the clock step until a deadline strikes."""
        resting, halting = await Connection.open(host), await Connection.open(host)
        try:
            await resting.ask(raw("GET", "Tables"))
            halting.writer.write(b"GET / HTTP/1.1\r\nHost:")
            steps = asyncio.create_task(self._turn(host))
            self.problems += await _struck(halting)
            steps.cancel()
            self.problems += await _ended(steps)
            self.problems += await _rested(resting)
        finally:
            await resting.close()
            await halting.close()

    async def _turn(self, host: str) -> list[str]:
        """Step forever, and see what requests that depend on the time of day are answered."""
        connection = await Connection.open(host)
        questions = probes()
        try:
            while True:
                self._done[self._hands.turn()] += 1
                self._done["steps"] += 1
                wrong = self._clock.error_ns
                probe = self._random.choice(questions)
                if all(abs(wrong - limit) > MARGIN for limit in LIMITS):
                    answer = await connection.ask(probe.request)
                    expected = 200 if probe.accepted(wrong) else 403
                    if answer.status != expected:
                        return [f"{probe.name}, {wrong} ns: {answer.status}, not {expected}"]
                    self._done[f"{probe.name}: {answer.status}"] += 1
                await asyncio.sleep(self._random.uniform(0, STEP_SECONDS_MAX))
        except LostConnectionError as error:
            return [f"the server broke a connection off: {error}"]
        finally:
            await connection.close()


async def _struck(connection: Connection) -> list[str]:
    """Wait for the server to close a connection that has sent half a head."""
    try:
        async with asyncio.timeout(STRUCK_SECONDS_MAX):
            await connection.reader.read()
    except TimeoutError:
        return ["half a head was waited for as if time stood still"]
    return []


async def _ended(task: "asyncio.Task[list[str]]") -> list[str]:
    """Return what a cancelled task said, if it had said something before."""
    try:
        return await task
    except asyncio.CancelledError:
        return []


async def _rested(connection: Connection) -> list[str]:
    """See that a connection is still there."""
    try:
        answer = await connection.ask(raw("GET", "Tables"))
    except LostConnectionError:
        return ["a resting connection was closed as if days had gone by"]
    return [] if answer.status == 200 else [f"a resting connection was answered with {answer.status}"]


def run(budget: Budget, seed: int, directory: Path, program: Program = PROGRAM) -> Report:
    """Run the campaign; `program` is what serves."""
    return Clock(seed, directory, program).work(budget)


CLOCK = Campaign(
    "timestamps and ETags increase strictly in each partition whatever the clock does, and no deadline minds",
    "restarts",
    1,
    run,
)
