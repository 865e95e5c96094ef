"""A run: processes of clients, under one load after the other, each measured once it is steady.

Invariants: the processes end with the run, however it ends; an order goes to them by a pipe, as it has a token.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Self

from lazulite.stress.client import Address, LoadGenerator
from lazulite.stress.histogram import quantile
from lazulite.stress.plan import Load, Plan
from lazulite.stress.requests import Requests, Sample, fill
from lazulite.stress.window import Window, is_steady, total, window_of
from lazulite.stress.worker import Order

_LINE_BYTES_MAX = 1 << 20
_STOP_SECONDS = 5.0
_FILL_CLIENTS = 4
_PROBE_SECONDS = 5.0
_STATISTICS = Path("/proc/stat")


class StressError(Exception):
    """A run cannot go on. The text is one line for people."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured under one load."""

    load: Load
    cost: int
    """Entities of a request."""
    windows: Sequence[Window]
    """The measured ones."""
    window_seconds: float
    warm_seconds: float
    """How long it took until the measurement began."""
    is_steady: bool
    """Whether the load was steady then; False: the warm-up took too long."""
    round_trip: float | None = None
    """Seconds to open a connection, which the system of the endpoint does by itself; None: not measured."""
    machine_busy: float | None = None
    """The share of this machine's CPUs that was busy; None: unknown."""

    @property
    def sum(self) -> Window:
        """The sum of all windows."""
        return total(self.windows)

    @property
    def seconds(self) -> float:
        """How long was measured."""
        return len(self.windows) * self.window_seconds

    @property
    def rate(self) -> float:
        """Entities per second of requests that succeeded."""
        return self.sum.requests * self.cost / self.seconds

    @property
    def offered(self) -> float:
        """Entities per second of all requests."""
        return self.sum.answered * self.cost / self.seconds

    @property
    def refused_share(self) -> float:
        """The share of requests that were throttled."""
        found = self.sum
        return found.refused.total() / (found.answered or 1)

    def quantile_ms(self, share: float) -> float:
        """Return the latency in milliseconds that a share of the requests does not exceed."""
        return quantile(self.sum.latencies, share) * 1000


class Progress(NamedTuple):
    """What is under way."""

    number: int
    """The number of the step, from 1."""
    steps: int
    load: Load
    cost: int
    window: Window
    """The last one."""
    window_seconds: float
    is_warm: bool
    """Whether it is measured."""
    answered: int
    """Requests so far, of all windows."""


Show = Callable[[Progress], None]


def window_seconds(plan: Plan) -> float:
    """Return the length of a window: twenty in a measurement, at most half a second long."""
    return min(0.5, max(0.05, plan.seconds / 20))


async def store(plan: Plan, sample: Sample, address: Address) -> None:
    """Store what a plan reads or updates.

    Raises:
        StressError: it cannot be stored.
    """
    requests = fill(plan, sample)
    loader = LoadGenerator(address, "backoff", reads_bodies=True)

    def shared() -> Requests:
        for request in requests:  # noqa: UP028 - a client sends answers, which the shared iterator does not take
            yield request

    try:
        for _ in range(_FILL_CLIENTS):
            await loader.open(shared())
        loader.load(0, _FILL_CLIENTS, None)
        await loader.wait()
    except OSError as error:
        raise StressError(f"the endpoint is not reached: {error}") from error
    finally:
        loader.close()
    if loader.window.failed:
        raise StressError(f"entities cannot be stored: {reasons(loader.window.failed)}")


def reasons(failed: Counter[str]) -> str:
    """Return the outcomes of failed requests in words, the most frequent first."""
    return ", ".join(
        f"{count:,} × {f'status {reason}' if reason.isdigit() else reason}" for reason, count in failed.most_common(3)
    )


async def run(plan: Plan, sample: Sample, address: Address, show: Show, *, probes: bool = True) -> Sequence[Step]:
    """Return what was measured, one step for each load of a plan.

    Args:
        plan: the plan.
        sample: what it works on; what it reads is stored already.
        address: of the endpoint.
        show: told each window.
        probes: whether the time of a round trip is measured, too, by connections that are opened.

    Raises:
        StressError: the endpoint is not reached, or a process ended.
    """
    found = []
    async with _Processes(plan, sample, address) as processes, aclosing(processes.windows()) as windows:
        loads, answered = plan.loads(), 0
        for number, load in enumerate(loads, 1):
            await processes.load(number, load)
            step = _Measurement(plan, load)

            def tell(window: Window, is_warm: bool, number: int = number, load: Load = load) -> None:
                nonlocal answered
                answered += window.answered
                seconds = window_seconds(plan)
                show(Progress(number, len(loads), load, plan.cost, window, seconds, is_warm, answered))

            async for window in windows:
                if window.step != number:
                    continue
                tell(window, step.take(window))
                if probes:
                    await step.probe(address)
                if step.is_done:
                    break
            found.append(step.result())
    return found


class _Measurement:
    """One step under way."""

    def __init__(self, plan: Plan, load: Load) -> None:
        self._plan, self._load = plan, load
        self._length = window_seconds(plan)
        self._warm: list[Window] = []
        self._measured: list[Window] = []
        self._is_steady: bool | None = None
        self._round_trips: list[float] = []
        self._jiffies = _jiffies()

    def take(self, window: Window) -> bool:
        """Take a window, and return whether it is measured."""
        if self._is_steady is not None:
            self._measured.append(window)
            return True
        self._warm.append(window)
        # So that slow clients are not all in their first request, each has had a response in the mean.
        has_begun = self._load.rate is not None or total(self._warm).answered >= self._load.clients
        steady, late = has_begun and is_steady(self._warm), len(self._warm) * self._length >= self._plan.warm_seconds
        if steady or late:
            self._is_steady, self._jiffies = steady, _jiffies()
        return False

    @property
    def is_done(self) -> bool:
        return len(self._measured) * self._length >= self._plan.seconds - 1e-9

    async def probe(self, address: Address) -> None:
        """Open a connection, and note how long it takes."""
        began = time.monotonic()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                _, writer = await asyncio.open_connection(address.host, address.port)
            self._round_trips.append(time.monotonic() - began)
            writer.transport.abort()

    def result(self) -> Step:
        """Return what was measured."""
        busy, all_ = (now - was for now, was in zip(_jiffies(), self._jiffies, strict=True))
        return Step(
            self._load,
            self._plan.cost,
            self._measured,
            self._length,
            len(self._warm) * self._length,
            bool(self._is_steady),
            min(self._round_trips, default=None),
            busy / all_ if all_ else None,
        )


def _jiffies() -> tuple[int, int]:
    """Return the ticks in which the CPUs of this machine were busy, and all ticks; Linux alone."""
    try:
        ticks = list(map(int, _STATISTICS.read_text(encoding="ascii").partition("\n")[0].split()[1:9]))
    except (OSError, ValueError):
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class _Processes:
    """The processes of a run, inside of a block.

    Attributes:
        lines: what they report; None: one of them has ended.
    """

    def __init__(self, plan: Plan, sample: Sample, address: Address) -> None:
        self._plan, self._sample, self._address = plan, sample, address
        self._processes: list[asyncio.subprocess.Process] = []
        self._readers: list[asyncio.Task[None]] = []
        self.lines: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        pipe, seconds = asyncio.subprocess.PIPE, window_seconds(self._plan)
        try:
            for place in range(self._plan.processes):
                command = (sys.executable, "-m", "lazulite.stress.worker")
                process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=_LINE_BYTES_MAX)
                self._processes.append(process)
                self._readers.append(asyncio.create_task(self._read(process)))
                await _write(process, Order(asdict(self._plan), self._sample, self._address, place, seconds))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            assert process.stdin is not None, "it is a pipe"
            process.stdin.close()
        if self._readers:
            await asyncio.wait(self._readers, timeout=_STOP_SECONDS)
        for process, reader in zip(self._processes, self._readers, strict=True):
            if not reader.done():
                with suppress(ProcessLookupError):
                    process.kill()
            await process.wait()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None, "it is a pipe"
        while line := await process.stdout.readline():
            self.lines.put_nowait(json.loads(line))
        self.lines.put_nowait(None)

    async def load(self, number: int, load: Load) -> None:
        """Share a load among the processes."""
        count = len(self._processes)
        for place, process in enumerate(self._processes):
            clients = (load.clients - place + count - 1) // count
            rate = None if load.rate is None else load.rate * clients / load.clients
            await _write(process, {"step": number, "clients": clients, "rate": rate})

    async def windows(self) -> AsyncGenerator[Window, None]:
        """Yield the sums of the windows of all processes, in the order of time."""
        waiting: dict[int, list[Window]] = {}
        while (found := await self.lines.get()) is not None:
            if "error" in found:
                raise StressError(f"the endpoint is not reached: {found['error']}")
            window = window_of(found)
            group = waiting.setdefault(window.number, [])
            group.append(window)
            if len(group) == len(self._processes):
                del waiting[window.number]
                yield _sum(group)
        raise StressError("a process of the stress test ended")


async def _write(process: asyncio.subprocess.Process, message: object) -> None:
    assert process.stdin is not None, "it is a pipe"
    try:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        raise StressError("a process of the stress test ended") from None


def _sum(group: Sequence[Window]) -> Window:
    steps = {each.step for each in group}
    found = Window(group[0].number, steps.pop() if len(steps) == 1 else -1)
    for each in group:
        found.add(each)
    return found
