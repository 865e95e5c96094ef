"""A process of clients: `python -m lazulite.stress.worker`.

It reads lines of JSON from standard input: first an `Order`, then loads. It writes a line for each window. It ends when
its input ends, so no worker outlives the process that started it. Ctrl-C in a terminal goes to all processes of a
command; a worker leaves it to the first one.
"""

import asyncio
import gc
import json
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from lazulite.stress.client import Address, LoadGenerator
from lazulite.stress.plan import Plan
from lazulite.stress.requests import READ_BODIES, Sample, workload

_LINE_BYTES_MAX = 1 << 20
_SCHEDULE = Path("/proc/self/schedstat")
"""Nanoseconds that a process ran and that it waited for a CPU; Linux alone."""


class Order(NamedTuple):
    """What a process works on."""

    plan: Mapping[str, Any]
    sample: Sample
    address: Address
    place: int
    """The number of the process; its clients have this number, and those at multiples of `processes` behind it."""
    window_seconds: float


def used_seconds() -> float:
    """Return for how long this process has used a CPU or waited for one."""
    try:
        waited = int(_SCHEDULE.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return time.process_time() + waited


def _say(message: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def _work(order: Order, commands: asyncio.StreamReader) -> None:
    """Take loads until there are no more, and report each window."""
    plan = Plan(**order.plan)
    loader = LoadGenerator(order.address, plan.retry, reads_bodies=plan.workload in READ_BODIES)
    report = asyncio.get_running_loop().create_task(_report(loader, order.window_seconds))
    try:
        while line := await commands.readline():
            found = json.loads(line)
            while len(loader.clients) < found["clients"]:
                number = order.place + len(loader.clients) * plan.processes
                await loader.open(workload(plan, order.sample, number))
            loader.load(found["step"], found["clients"], found["rate"])
    except OSError as error:
        _say({"error": error.strerror or str(error)})
    finally:
        report.cancel()
        loader.close()


async def _report(loader: LoadGenerator, seconds: float) -> None:
    """Report the windows, whose bounds are the same in all processes of this machine."""
    number, used, at = int(loader.clock() // seconds), used_seconds(), loader.clock()
    while True:
        number += 1
        await asyncio.sleep(max(0.0, number * seconds - loader.clock()))
        window, now, used_now = loader.take(), loader.clock(), used_seconds()
        window.number, window.busy = number, min(1.0, (used_now - used) / (now - at))
        used, at = used_now, now
        _say(window.as_json())
        loader.expire()


async def _main() -> None:
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(_LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin.buffer)
    found = json.loads(await commands.readline())
    order = Order(found[0], Sample(*found[1]), Address(*found[2]), *found[3:])
    gc.collect()
    gc.freeze()
    await _work(order, commands)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
