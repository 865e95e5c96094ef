"""The border between a front end and the owner of the store: what it adds to a get and to a durable commit of 1 KB.

Processor time in the process that asks and in the one that has the store, against a store in the asking process.
`python -m benchmarks.border STREAM DIR` is the owner, of a store in DIR, for whoever is at the other end of the stream.
"""

import asyncio
import socket
import statistics
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.bench import Spent
from benchmarks.entities import entity
from benchmarks.processes import ROOT, Server
from lazulite.engine.contract import Engine
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.protocol.steps import finish
from lazulite.table.model.row import encode_keys
from lazulite.table.operations.write_decisions import INSERT, ApplyOne, EntityWrite
from lazulite.table.payload.json_reader import read_encoded
from lazulite.table.remote_codec import TableWording

IN_FLIGHT = (1, 4, 16, 64)
ROWS = 1000
SPACE, PARTITION = 2000, "p"

Operation = Callable[[Engine, int], Awaitable[None]]
_MEMBERS = [finish(read_encoded(entity(PARTITION, str(number)), by_name=False)).members for number in range(ROWS)]
_new_numbers = count(ROWS)


class Cost(NamedTuple):
    """Microseconds of processor time of one operation: in the process that asks, and in the owner."""

    asking: float
    owner: float


async def get(engine: Engine, number: int) -> None:
    """Read a row that is there."""
    await engine.get(SPACE, PARTITION, str(number % ROWS))


async def commit(engine: Engine, _: int) -> None:
    """Insert a new row durably."""
    await insert(engine, next(_new_numbers))


async def insert(engine: Engine, number: int) -> None:
    """Insert the row of this number durably."""
    row = str(number)
    write = EntityWrite(INSERT, PARTITION, row, None, {}, encode_keys(PARTITION, row), _MEMBERS[number % ROWS])
    await engine.commit(SPACE, PARTITION, [row], ApplyOne(write))


async def measured(engine: Engine, operation: Operation, times: int, in_flight: int, owner: Server) -> Cost:
    """Measure an operation, so many of it at a time."""

    async def one_after_the_other() -> None:
        for number in range(times // in_flight):
            await operation(engine, number)

    before = Spent.of(owner)
    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))
    after = Spent.of(owner)
    asking, owners = after.client_s - before.client_s, (after.server_s or 0.0) - (before.server_s or 0.0)
    return Cost(asking / times * 1e6, owners / times * 1e6)


async def print_border(place: Path, rounds: int, gets: int, commits: int) -> None:
    """Print what the border costs."""
    local = RocksEngine.open(place / "local", system_clock)
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "benchmarks.border", str(theirs.fileno()), str((place / "remote").absolute())]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, pass_fds=[theirs.fileno()])
    theirs.close()
    owner = Server(0, process.pid)
    remote = RemoteEngine(TableWording())
    await asyncio.get_running_loop().create_unix_connection(lambda: remote.link, sock=ours)
    for engine in (local, remote):
        for number in range(ROWS):
            await insert(engine, number)
    print("| operation | in flight | in one process, µs | front end, µs | owner, µs | owner against one process |")
    print("|---|---|---|---|---|---|")
    for name, operation, times in (("get", get, gets), ("commit", commit, commits)):
        for in_flight in IN_FLIGHT:
            here: list[Cost] = []
            there: list[Cost] = []
            for _ in range(rounds):
                here.append(await measured(local, operation, times, in_flight, owner))
                there.append(await measured(remote, operation, times, in_flight, owner))
            alone = statistics.median(each.asking for each in here)
            asking = statistics.median(each.asking for each in there)
            owners = statistics.median(each.owner for each in there)
            print(f"| {name} | {in_flight} | {alone:.1f} | {asking:.1f} | {owners:.1f} | {owners - alone:+.1f} |")
    await remote.close()
    await process.wait()
    await local.close()


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


if __name__ == "__main__":
    uvloop.run(own(int(sys.argv[1]), sys.argv[2]))
