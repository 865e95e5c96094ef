"""`python -m benchmarks.front_ends`: what several front ends on one store cost, and what they could give.

First the border alone: processor time of a get and of a durable commit of 1 KB, in the process that asks and in the one
that has the store, against a store in the asking process. Then whole requests, by wrk, with one process and with
workers. From the second: how many requests one core of the owner's bears, and so how many front ends pay off.
"""

import argparse
import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import NamedTuple

import uvloop

from lazulite.engine.contract import Engine
from lazulite.engine.remote import RemoteEngine
from lazulite.engine.remote_server import EngineServer
from lazulite.engine.rocksdb import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.table.operations.entity_writes import INSERT, ApplyOne, EntityWrite
from lazulite.table.row import encode_keys
from lazulite.table.wording import TableWording

IN_FLIGHT = (1, 4, 16, 64)
ROWS = 1000
SPACE = 2000
PAYLOAD = ',"Text":"' + "x" * 800 + '"'
CORES = (2, 4, 8, 16, 32)
WORKERS = (1, 2, 3)
TABLE = "bench"
_TICK = os.sysconf("SC_CLK_TCK")
_numbers = count(ROWS)

WRK = """
local number = tonumber(os.getenv("FIRST"))
local path, token, body = os.getenv("TABLE_PATH"), os.getenv("TOKEN"), string.rep("x", 800)
local json = "application/json"
local headers = {["Accept"] = json, ["Content-Type"] = json, ["x-ms-version"] = "2019-02-02",
                 ["Prefer"] = "return-no-content"}
function request()
  number = number + 1
  if os.getenv("WHAT") == "get" then
    local key = string.format("(PartitionKey='p',RowKey='%d')?", number % 1000)
    return wrk.format("GET", path .. key .. token, headers)
  end
  local entity = string.format('{"PartitionKey":"p%d","RowKey":"%d","Text":"%s"}', number % 16, number, body)
  return wrk.format("POST", path .. "?" .. token, headers, entity)
end
function done(summary)
  io.write(string.format("RESULT %d %d %d\\n", summary.requests, summary.errors.status, summary.duration))
end
"""


class Cost(NamedTuple):
    """Microseconds of processor time of one operation: in the process that asks, and in the owner."""

    asking: float
    owner: float


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


# The border alone.


async def get(engine: Engine, number: int) -> None:
    """Read a row that is there."""
    await engine.get(SPACE, "p", str(number % ROWS))


async def commit(engine: Engine, _: int) -> None:
    """Insert a row durably."""
    row = str(next(_numbers))
    write = EntityWrite(INSERT, "p", row, None, {}, encode_keys("p", row), PAYLOAD)
    await engine.commit(SPACE, "p", [row], ApplyOne(write))


async def cost(
    engine: Engine, operation: Callable[[Engine, int], Awaitable[None]], times: int, in_flight: int, owner: int | None
) -> Cost:
    """Measure an operation, so many of it at a time."""

    async def one_after_the_other() -> None:
        for number in range(times // in_flight):
            await operation(engine, number)

    def spent() -> Sequence[float]:
        return cpu_seconds(os.getpid()), 0.0 if owner is None else cpu_seconds(owner)

    before = spent()
    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))
    asking, owners = (after - start for after, start in zip(spent(), before, strict=True))
    return Cost(asking / times * 1e6, owners / times * 1e6)


async def own(stream: int, location: str) -> None:
    """Be the owner, until the other side hangs up."""
    engine = RocksEngine.open(Path(location), system_clock)
    gone = asyncio.Event()
    server = EngineServer(engine, TableWording(), (), print)
    link = server.link(lambda: None)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=socket.socket(fileno=stream))
    asyncio.get_running_loop().create_task(link.closed()).add_done_callback(lambda _: gone.set())
    await gone.wait()
    await engine.close()


async def border(place: Path, rounds: int, gets: int, commits: int) -> None:
    """Print what the border costs."""
    local = RocksEngine.open(place / "local", system_clock)
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "benchmarks.front_ends", "--own", str(theirs.fileno()), str(place / "remote")]
    process = await asyncio.create_subprocess_exec(*command, pass_fds=[theirs.fileno()])
    theirs.close()
    remote = RemoteEngine(TableWording())
    await asyncio.get_running_loop().create_unix_connection(lambda: remote.link, sock=ours)
    for engine in (local, remote):
        rows = [str(number) for number in range(ROWS)]
        for row in rows:
            write = EntityWrite(INSERT, "p", row, None, {}, encode_keys("p", row), PAYLOAD)
            await engine.commit(SPACE, "p", [row], ApplyOne(write))
    print("| operation | in flight | in one process, µs | front end, µs | owner, µs | owner against one process |")
    print("|---|---|---|---|---|---|")
    for name, operation, times in (("get", get, gets), ("commit", commit, commits)):
        for in_flight in IN_FLIGHT:
            here: list[Cost] = []
            there: list[Cost] = []
            for _ in range(rounds):
                here.append(await cost(local, operation, times, in_flight, None))
                there.append(await cost(remote, operation, times, in_flight, process.pid))
            alone = statistics.median(each.asking for each in here)
            asking = statistics.median(each.asking for each in there)
            owner = statistics.median(each.owner for each in there)
            print(f"| {name} | {in_flight} | {alone:.1f} | {asking:.1f} | {owner:.1f} | {owner - alone:+.1f} |")
    await remote.close()
    await process.wait()
    await local.close()


# Whole requests.


class Service(NamedTuple):
    """A running service: its processes, the path of the table and what signs requests."""

    owner: int
    front_ends: Sequence[int]
    port: int
    token: str

    def cpu(self) -> tuple[float, float]:
        """Return the processor time of the owner and of the front ends; of one process, all as a front end's."""
        owner, front_ends = cpu_seconds(self.owner), sum(map(cpu_seconds, self.front_ends))
        return (owner, front_ends) if self.front_ends else (0.0, owner)


@contextmanager
def serving(location: Path, workers: int) -> Iterator[Service]:
    """Run `lazulite serve` until the block ends."""
    command = [sys.executable, "-m", "lazulite"]
    where = ["--location", str(location), "--table-port", "0"]
    options = ["serve", *where, "--silent", "--workers", str(workers)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found is not None
            token = subprocess.run(
                [*command, "sas", "account", "--permissions", "raudcl", "--expiry", "1d", "--location", str(location)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.strip()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
            yield Service(process.pid, [int(pid) for pid in children.split()], int(found[1]), token)
        finally:
            process.terminate()


class Load(NamedTuple):
    """What wrk found: requests a second, and processor time of a request in microseconds."""

    rate: float
    owner: float
    front_ends: float


def load(service: Service, what: str, connections: int, seconds: int) -> Load:
    """Load a service with wrk.

    Raises:
        RuntimeError: it answered something else than what was asked for.
    """
    first = str(next(_numbers) * 10_000_000)
    path = f"/devstoreaccount1/{TABLE}"
    variables = {"WHAT": what, "FIRST": first, "TABLE_PATH": path, "TOKEN": service.token}
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK)
        script.flush()
        before = service.cpu()
        url = f"http://127.0.0.1:{service.port}"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name, url]
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
        spent = [after - start for after, start in zip(service.cpu(), before, strict=True)]
    found = re.search(r"RESULT (\d+) (\d+) (\d+)", done.stdout)
    if found is None or found[2] != "0":
        raise RuntimeError(f"wrk: {done.stdout}{done.stderr}")
    requests, microseconds = int(found[1]), int(found[3])
    return Load(requests / microseconds * 1e6, spent[0] / requests * 1e6, spent[1] / requests * 1e6)


def fill(service: Service) -> None:
    """Create the table and what is read."""
    connection = HTTPConnection("127.0.0.1", service.port)
    bodies = [("Tables", f'{{"TableName":"{TABLE}"}}')]
    bodies += [(TABLE, f'{{"PartitionKey":"p","RowKey":"{n}","Text":"{"x" * 800}"}}') for n in range(ROWS)]
    for path, body in bodies:
        headers = {"Content-Type": "application/json", "Prefer": "return-no-content"}
        connection.request("POST", f"/devstoreaccount1/{path}?{service.token}", body, headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 204:
            raise RuntimeError(f"filling: {answer.status} {said!r}")
    connection.close()


def requests(place: Path, rounds: int, seconds: int) -> None:
    """Print what whole requests cost with one process and with workers, and what front ends could give."""
    found: dict[tuple[str, int], list[Load]] = {}
    for number in range(rounds):
        for workers in WORKERS:
            with serving(place / f"{number}-{workers}", workers) as service:
                fill(service)
                for what, connections in (("get", 32), ("insert", 64)):
                    found.setdefault((what, workers), []).append(load(service, what, connections, seconds))
    print("\n| request | workers | requests/s here | owner, µs | front ends, µs | all, µs |\n|---|---|---|---|---|---|")
    medians: dict[tuple[str, int], Load] = {}
    for (what, workers), loads in sorted(found.items()):
        median = Load(*(statistics.median(each) for each in zip(*loads, strict=True)))
        medians[what, workers] = median
        rate, owner, front_ends = median
        print(f"| {what} | {workers} | {rate:,.0f} | {owner:.1f} | {front_ends:.1f} | {owner + front_ends:.1f} |")
    print("\n| request | one process, requests/s a core | the owner's core bears | front ends that fill it |", end="")
    print("".join(f" {cores} cores |" for cores in CORES))
    print("|---" * (4 + len(CORES)) + "|")
    for what in ("get", "insert"):
        alone = 1e6 / medians[what, 1].front_ends
        _, owner, front_end = medians[what, 2]
        gains = [min((cores - 1) * 1e6 / front_end, 1e6 / owner) / alone for cores in CORES]
        print(f"| {what} | {alone:,.0f} | {1e6 / owner:,.0f} | {front_end / owner:.1f} |", end="")
        print("".join(f" {gain:.1f} × |" for gain in gains))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.front_ends", description=__doc__)
    parser.add_argument("--own", nargs=2, metavar=("STREAM", "DIR"), help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3, help="in which what is compared takes turns (3)")
    parser.add_argument("--seconds", type=int, default=4, help="of one run of wrk (4)")
    parser.add_argument("--gets", type=int, default=20_000, help="of one run (20000)")
    parser.add_argument("--commits", type=int, default=3_000, help="of one run (3000)")
    parser.add_argument("--location", type=Path, help="directory on the disk to measure (the temporary one)")
    arguments = parser.parse_args()
    if arguments.own is not None:
        uvloop.run(own(int(arguments.own[0]), arguments.own[1]))
        return
    with tempfile.TemporaryDirectory(dir=arguments.location) as place:
        uvloop.run(border(Path(place), arguments.rounds, arguments.gets, arguments.commits))
        requests(Path(place), arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()
