"""Faults of the disk and of the process's limits, one after the other, under load.

A fault begins, is felt, lasts for a while and is taken back. What must hold, each time:

- A rejected request gets a 5xx or a lost connection within a minute; never a 4xx, never a hang.
- Reads return the right data or are rejected. While only writes fail, reads get responses.
- `GET /health` returns 503 while every write fails.
- Once the cause is gone, the same process serves again. A process that ran out of memory may have ended; it serves as
  soon as it is started.
- Acknowledged or visible data is there. A rejected write is whole or absent.

At the end of a run the server is killed, the store checked, and all of it read once more.
"""

import asyncio
import contextlib
import os
import resource
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from random import Random

from tests.server_process import LAZULITE, Program
from tests.torture.campaign import Budget, Campaign, Report

from .bench import PATIENCE_SECONDS, Bench
from .commands import COMMANDS
from .http import Effects, Http, send
from .load import TABLE
from .table import DISK_FAULTS, DiskFault

_ANSWERS_MAX = 4_000
"""After so many responses a fault that made nothing fail is taken back."""
_SIGABRT = -6


class Faults:
    """One run."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self._bench = bench
        self._random = Random(seed)
        self.now = "at first"
        """The fault that is being done."""
        self.felt: Counter[str] = Counter()
        """Faults by name; those that made nothing fail are not counted."""
        self.unfelt = 0
        self.slowest = 0.0
        """Seconds from the end of a fault until a write of every client was acknowledged."""
        self.ended = 0
        """Processes that ended for want of memory."""

    async def strike(self, name: str) -> None:
        """Do one fault."""
        self.now = name
        if name in DISK_FAULTS:
            felt = await self._break_disk(name, DISK_FAULTS[name])
        elif name in COMMANDS:
            felt = await COMMANDS[name](self._bench, self._random)
        else:
            felt = await _LIMITS[name](self)
        if felt:
            self.felt[name] += 1
        else:
            self.unfelt += 1

    async def _break_disk(self, name: str, fault: DiskFault) -> bool:
        bench, random = self._bench, self._random
        if fault.cold:
            await self.restart()
        with bench.disk.failing(fault.rules(random), random.randrange(1 << 30)):
            felt = await self._felt(lambda: bench.disk.failures > 0)
            if felt and fault.lasting:
                await self.look_while_it_lasts(name)
            await bench.answers(random.randrange(100))
        await self.expect_recovery(name)
        return felt

    async def _felt(self, sign: Callable[[], bool]) -> bool:
        end = self._bench.tally.total + _ANSWERS_MAX
        while not sign() and self._bench.tally.total < end and not self._bench.tally.problems:
            await self._bench.answers(1)
        return sign()

    async def look_while_it_lasts(self, name: str) -> None:
        """Check, while every write fails, that health reports it and that reads get responses."""
        bench, counts = self._bench, self._bench.tally.counts
        rejected = counts["writes rejected"]
        await self._felt(lambda: counts["writes rejected"] > rejected + 3)
        health = await bench.unwell()
        if not health.startswith("503"):
            bench.tally.problem(f"{name}: every write fails, and health says {health!r}")
        answered = counts["reads answered"]
        if not await self._felt(lambda: counts["reads answered"] > answered + 3):
            bench.tally.problem(f"{name}: reads are rejected as well")

    async def expect_recovery(self, name: str) -> None:
        """Check that every client is served again, the cause being gone."""
        seconds = await self._bench.recovered()
        if seconds is None:
            self._bench.tally.problem(f"{name}: the cause is gone, and the service is not back")
            raise TimeoutError
        self.slowest = max(self.slowest, seconds)

    async def restart(self, *, kill: bool = False) -> None:
        """End the server and start it again, its disk being well."""
        code = await self._bench.stop(kill=kill)
        if not kill and code != 0:
            self._bench.tally.problem(f"SIGTERM ends the server with {code}")
        await self._bench.start()

    # --- the process's limits

    @contextmanager
    def _limited(self, limit: int, soft: int) -> Iterator[None]:
        pid = self._bench.pid
        before = resource.prlimit(pid, limit)
        resource.prlimit(pid, limit, (soft, before[1]))
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, limit, before)

    async def no_growth(self) -> bool:
        """Let no file become longer (RLIMIT_FSIZE, as a disk quota of the shell's `ulimit -f`)."""
        counts = self._bench.tally.counts
        rejected = counts["writes rejected"]
        with self._limited(resource.RLIMIT_FSIZE, self._random.randrange(4096)):
            felt = await self._felt(lambda: counts["writes rejected"] > rejected)
            await self.look_while_it_lasts("no file may grow")
        await self.expect_recovery("no file may grow")
        return felt

    async def no_handles(self) -> bool:
        """Leave no file descriptor (RLIMIT_NOFILE): connected clients are served, and the loop stays idle."""
        bench = self._bench
        await self.expect_recovery("before no handles")  # Every client is connected.
        address = bench.server.account.host.partition(":")
        used = len(os.listdir(f"/proc/{bench.pid}/fd"))
        with (
            self._limited(resource.RLIMIT_NOFILE, used + self._random.randint(-10, 10)),
            contextlib.ExitStack() as all_,
        ):
            for _ in range(40):
                client = all_.enter_context(socket.socket())
                client.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    client.connect((address[0], int(address[2])))
            acknowledged = bench.tally.counts["writes acknowledged"]
            if not await self._felt(lambda: bench.tally.counts["writes acknowledged"] > acknowledged + 50):
                bench.tally.problem("no handles: connected clients are not served")
        await self.expect_recovery("no handles")
        fresh = await bench.health()
        if not fresh.startswith("200"):
            bench.tally.problem(f"no handles: a new connection afterwards gets {fresh!r}")
        return True

    async def no_memory(self) -> bool:
        """Leave no memory (RLIMIT_AS or RLIMIT_DATA) while large requests arrive."""
        bench, random = self._bench, self._random
        limit, field = random.choice([(resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")])
        before = bench.tally.rejections.total()
        bytes_used = _memory(bench.pid, field)
        with self._limited(limit, bytes_used + random.choice([1, 4, 16, 48]) * (1 << 20)):
            outcomes = await asyncio.gather(*(self._large(number) for number in range(16)))
        felt = any(outcomes) or bench.tally.rejections.total() > before
        await bench.served_or_ended()
        if bench.ended:
            self.ended += 1
            code = await bench.stop()
            if code != _SIGABRT:
                bench.tally.problem(f"no memory: the process ended with {code}")
            await bench.start()
        await self.expect_recovery("no memory")
        return felt

    async def _large(self, number: int) -> int:
        """Send some large transactions; return how many were rejected."""
        http = Http(self._bench.server.account)
        rejected = 0
        effects: Effects = {
            (TABLE, f"large{number}", f"{row:02}"): {"N": row, "Text": "y" * 30_000} for row in range(60)
        }
        for _ in range(4):
            try:
                answer = await send(http, effects)
            except ConnectionError:
                rejected += 1
                continue
            if 400 <= answer.outcome < 500:
                self._bench.tally.problem(f"no memory: {answer.outcome} {answer.code}")
            rejected += answer.outcome >= 500
        http.close()
        return rejected


def _memory(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024


_LIMITS: dict[str, Callable[[Faults], Awaitable[bool]]] = {
    "no file may grow": Faults.no_growth,
    "no handles": Faults.no_handles,
    "no memory": Faults.no_memory,
}

NAMES = (*DISK_FAULTS, *_LIMITS, *COMMANDS)
"""All faults."""


async def _endure(bench: Bench, faults: Faults, seed: int, names: Iterator[str]) -> None:
    async with AsyncExitStack() as stack:
        await bench.start()
        stack.push_async_callback(bench.stop, kill=True)
        kills = Random(f"{seed}/kills")
        for name in names:
            await faults.strike(name)
            if kills.random() < 0.1:
                await faults.restart(kill=kills.random() < 0.5)
            if bench.tally.problems:
                break
        stack.pop_all()
        await bench.stop(kill=True)
    if bench.tally.problems:
        return
    checked = await asyncio.to_thread(bench.command, "check", "--location", str(bench.data))
    if checked.returncode != 0:
        bench.tally.problem(f"check: {checked.stderr}")
        return
    await bench.start()
    await bench.answers(10)
    await bench.rest()
    await bench.verify()
    await bench.stop()


def endure(
    names: Iterator[str], seed: int, workplace: Path, program: Program = LAZULITE, patience: float = PATIENCE_SECONDS
) -> Report:
    """Do these faults, and report what came of them."""
    bench = Bench(workplace, seed, program, patience)
    faults = Faults(bench, seed)
    try:
        asyncio.run(_endure(bench, faults, seed, names))
    except TimeoutError:
        if not bench.tally.problems:
            bench.tally.problem(f"{faults.now}: nothing is answered any more")
    tally = bench.tally
    counts: dict[str, int | str] = {"faults": faults.felt.total()}
    counts |= dict(sorted(faults.felt.items()))
    counts |= {"not felt": faults.unfelt, "aborts for want of memory": faults.ended}
    counts |= {name: tally.counts[name] for name in sorted(tally.counts)}
    counts |= dict(sorted(tally.rejections.items()))
    counts |= {"slowest recovery": f"{faults.slowest:.1f} s"}
    return Report(counts, tuple(tally.problems[:20]))


def _run(budget: Budget, seed: int, directory: Path) -> Report:
    random = Random(f"{seed}/names")

    def names() -> Iterator[str]:
        done = 0
        while budget.more(done):
            yield NAMES[done] if done < len(NAMES) else random.choice(NAMES)
            done += 1

    return endure(names(), seed, directory)


FAULTS = Campaign(
    "A full, read-only or failing disk, and limits of files and memory: clear rejections, no loss, back by itself.",
    "faults",
    2,
    _run,
)
