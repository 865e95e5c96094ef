"""`python -m benchmarks.in_process`: the processor time of requests, without sockets.

With `--against`, a process of its own measures each side, this checkout and the other; they take turns. Of the times
of a case the first decile counts, so that other programs count little; with `--mean`, all of them count, and so work
that is done now and then. The store is in memory, so no number has a sync. `whole` is from the bytes of a request to
the bytes of its response; all other cases are the service alone, from the parsed request on.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.exchange import Reply
from benchmarks.in_process_cases import CASES, GET, Case
from benchmarks.workload import NUMBERS_PER_RUN
from lazulite.app.services import tune_garbage_collector
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.blob.service import BlobService
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, Response, Service
from lazulite.protocol.request_id import RequestIds
from lazulite.queue.service import QueueService
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.inspector.recorder import RequestRecorder
from lazulite.server.limits import Limits
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.service.definition import ServiceDependencies
from lazulite.table.service import TableService
from lazulite.traffic.meter import Meter

_ROOT = Path(__file__).parents[1]
_WARM_SHARE = 6
"""Of the rounds, the first one in so many does not count."""


class Client(asyncio.Transport):
    """A connection, and its client's side, which keeps the response; each is one write."""

    def __init__(self, state: ServerState) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.connection = Connection(state, "http")
        self.connection.connection_made(self)

    def send(self, data: bytes) -> "asyncio.Future[bytes]":
        """Send a request; return its response, when it is there."""
        self._response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.connection.data_received(data)
        return self._response

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Note the response."""
        self._response.set_result(bytes(data))

    def is_closing(self) -> bool:
        """Return that it is open."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return that nothing waits."""
        return 0

    def _ignore(self, *_: object, **__: object) -> None:
        """Do nothing: the next request comes after the response."""

    pause_reading = resume_reading = set_write_buffer_limits = _ignore


class Side:
    """The services of the importable checkout.

    Args:
        meter: of their traffic.
        recorded: whether requests that are measured whole are recorded.
    """

    def __init__(self, meter: Meter | None = None, recorded: bool = False) -> None:
        self.logs: list[ExchangeLog] = []
        if recorded:
            RequestRecorder(self.logs, system_clock).start(for_good=True)
        self.engine = RocksEngine.open(None, system_clock)
        dependencies = ServiceDependencies(
            engine=self.engine,
            accounts=AccountDirectory({}, None),
            contents=ContentMemory(),
            meter=meter,
        )
        self._services: dict[str, Service] = {
            "table": TableService(dependencies),
            "queue": QueueService(dependencies),
            "blob": BlobService(dependencies),
        }

    def connect(self, case: Case) -> list[Client]:
        """Return the connections of a case, if it is measured whole."""
        budgets, new_id = budgets_of(Limits(), time.monotonic), RequestIds(Random(1)).next
        state = ServerState(
            self._services[case.builder.service], Limits(), new_id, time.monotonic, self.logs, budgets=budgets
        )
        return [Client(state) for _ in range(case.workload.connections if case.whole else 0)]

    async def send(self, case: Case, raw: Sequence[bytes], clients: Sequence[Client] = ()) -> tuple[float, list[Reply]]:
        """Send requests, each on its connection, or to a service as a server does; return seconds, and the replies."""
        if clients:
            began_s = time.thread_time()
            late = [client.send(data) for client, data in zip(clients, raw, strict=True)]
            whole = [await one for one in late]
            took_s = time.thread_time() - began_s
            return took_s, [Reply(int(each[9:12]), each.partition(b"\r\n\r\n")[2]) for each in whole]
        requests, handler = list(map(_request, raw)), self._services[case.builder.service]
        began_s = time.thread_time()
        found = [handler.respond(request) for request in requests]
        ready = [one for one in found if isinstance(one, Response)]
        every = ready + await asyncio.gather(*(one for one in found if not isinstance(one, Response)))
        took_s = time.thread_time() - began_s
        return took_s, [Reply(one.status, await _body(one)) for one in every]

    async def rounds(self, case: Case, first: int) -> AsyncGenerator[float, None]:
        """Yield microseconds of processor time for a unit, one round of requests after the other.

        Args:
            case: what is sent.
            first: the number of its first request.
        """
        workload, clients = case.workload, self.connect(case)
        before, requests = (each.numbered(first) for each in (case.before or workload, workload))
        try:
            while True:
                if case.before is not None:
                    await self.send(case, list(islice(before, workload.connections)))
                seconds, replies = await self.send(case, list(islice(requests, workload.connections)), clients)
                if workload.follow is not None:
                    following = [workload.follow(*each) or b"" for each in replies]
                    more, replies = await self.send(case, following, clients)
                    seconds += more
                for reply in replies:
                    workload.check(*reply)
                yield seconds / workload.connections / workload.units * 1e6
        finally:
            _print_templates(workload.name, clients)
            for client in clients:
                client.connection.connection_lost(None)

    async def measure(self, case: Case, rounds: int, first: int, mean: bool = False) -> float:
        """Return microseconds of processor time for a unit; numbers of requests begin with the first."""
        async with aclosing(self.rounds(case, first)) as running:
            times = [await anext(running) for _ in range(rounds)]
        warm = sorted(times[rounds // _WARM_SHARE :])
        return sum(warm) / len(warm) if mean else warm[rounds // 10]


def _print_templates(name: str, clients: Sequence[Client]) -> None:
    """Print what the templates of measured connections did."""
    templates = clients[0].connection.server.templates if clients else None
    if clients:
        outcomes = {} if templates is None else {name: count for name, count in templates.outcomes.items() if count}
        print(f"{name}: templates {outcomes}", file=sys.stderr)


async def _body(response: Response) -> bytes:
    return response.body if response.content is None else b"".join([part async for part in response.content.chunks()])


def _request(raw: bytes) -> Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *lines = head.decode("ascii").split("\r\n")
    method, target, _ = line.split(" ")
    path, _, query = target.partition("?")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(method, path, query, Fields.of(headers), body, id="0" * 36)


async def measure(only: str, rounds: int, mean: bool = False) -> dict[str, float]:
    """Return microseconds by case; see the flags."""
    side, cases = Side(), {name: case for name, case in CASES.items() if only in name}
    for case in {case.builder: case for case in (GET, *cases.values())}.values():
        for request in case.fill():
            await side.send(case, [request])
    found: dict[str, float] = {}
    tune_garbage_collector()
    for number, (name, case) in enumerate(cases.items(), 1):
        found[name] = await side.measure(case, rounds, number * NUMBERS_PER_RUN, mean)
    await side.engine.close()
    return found


def _turn(checkout: Path, only: str, rounds: int, *flags: str) -> dict[str, float]:
    """Measure a checkout in a process of its own, by its own benchmark: it knows how to call its services."""
    checkout = checkout.resolve()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(checkout)))}
    command = [sys.executable, "-m", "benchmarks.in_process", "--only", only, "--rounds", str(rounds), *flags]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    print(done.stderr.decode(), file=sys.stderr, end="")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(pairs: Sequence[tuple[dict[str, float], dict[str, float]]]) -> Iterator[str]:
    """Yield the lines of a comparison, given what both sides had in each turn."""
    yield "| µs of processor for an entity, or a number | other | this | this ÷ other, by turns |"
    yield "|---|---|---|---|"
    for name in (name for name in pairs[0][0] if name in pairs[0][1]):
        ours, theirs = ([pair[side][name] for pair in pairs] for side in (0, 1))
        ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
        spread = f"{median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        yield f"| {name} | {min(theirs):.1f} | {min(ours):.1f} | {spread} |"


def main() -> None:
    """Measure in this process, or compare by turns."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.in_process", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="compare by turns; without it, print JSON")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=60, help="of each case in a turn (%(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="of both sides (%(default)s)")
    parser.add_argument("--mean", action="store_true", help="the mean counts, not the first decile")
    given = parser.parse_args()
    how = given.only, given.rounds
    if given.against is None:
        print(json.dumps(asyncio.run(measure(*how, given.mean))))
    else:
        mean = ["--mean"] * given.mean
        pairs = [(_turn(_ROOT, *how, *mean), _turn(given.against, *how, *mean)) for _ in range(given.turns)]
        print("\n".join(table(pairs)))


if __name__ == "__main__":
    main()
