"""`python -m benchmarks.request_trace`: the modules and the calls of requests, inside the server.

A trace begins with the bytes of a request and ends with the bytes of its response. It counts calls of Python functions
of `lazulite` in the event loop's thread, a coroutine that goes on as a call. With `--write`, the table in
`docs/architecture.md` is written again. Its numbers differ a little from one version of Python to another.
"""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import lazulite
from benchmarks.blobs import Blobs
from benchmarks.catalogue import Catalogue
from benchmarks.cycles import Queues
from benchmarks.in_process import Side
from benchmarks.in_process_cases import GET
from benchmarks.requests import Builder, account_sas

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
MODULES_MAX = {
    "Get Entity, its plan cached": 24,
    "Get Entity, the first": 40,
    "Insert Entity": 38,
    "Get Messages": 32,
    "Put Blob": 52,
    "Put Block List": 64,
}
"""The requests, and the most modules that each may enter."""
_TABLE = re.compile(r"\| request \| modules \| calls \|\n\|---\|---\|---\|\n(?:\|[^\n]*\n)*")
_ROW = re.compile(r"\| ([A-Z][^|]*) \| (\d+) \| (\d+) \|")
_WARM = 9
_SOURCE = f"{Path(lazulite.__file__).parent}{os.sep}"

Send = Callable[[bytes], Awaitable[bytes]]


class Trace(NamedTuple):
    """What the response to one request entered."""

    modules: tuple[str, ...]
    """In the order in which they were entered first."""
    calls: int


async def _traced(send: Send, request: bytes) -> Trace:
    if others := asyncio.all_tasks() - {asyncio.current_task()}:  # What other requests have left to be done.
        await asyncio.wait(others)
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := frame.f_code.co_filename).startswith(_SOURCE):
            entered.append(name.removeprefix(_SOURCE))

    sys.setprofile(note)
    try:
        response = await send(request)
    finally:
        sys.setprofile(None)
    if not response.startswith(b"HTTP/1.1 2"):
        raise ValueError(response[:300])
    return Trace(tuple(dict.fromkeys(entered)), len(entered))


@asynccontextmanager
async def _serving(builder: Builder) -> AsyncIterator[Send]:
    """Serve what a builder's requests are for; what other services leave to be done is in no trace."""
    side = Side()
    (client,) = side.connect(GET._replace(builder=builder))
    await client.send(builder.create())
    yield client.send
    await side.engine.close()


async def _trace_tables(tables: Catalogue) -> dict[str, Trace]:
    async with _serving(tables) as send:
        await send(next(tables.preload().numbered(0)))
        point, inserts = tables.get(1).requests[0], tables.insert().numbered(1)
        credentials = [account_sas(f"2090-01-{day:02}T00:00:00Z") for day in range(1, _WARM + 2)]
        *others, first = [re.sub(rb"sv=[^ ]*", each.encode(), point, count=1) for each in credentials]
        for other in others:
            for request in (point, other, next(inserts)):
                await send(request)
        return {
            "Get Entity, its plan cached": await _traced(send, point),
            "Get Entity, the first": await _traced(send, first),
            "Insert Entity": await _traced(send, next(inserts)),
        }


async def _trace_queues(queues: Queues) -> dict[str, Trace]:
    async with _serving(queues) as send:
        put, get = queues.put(1).requests[0], queues.cycle().requests[0]
        for request in (put, put, get) * _WARM:
            await send(request)
        return {"Get Messages": await _traced(send, get)}


async def _trace_blobs(blobs: Blobs) -> dict[str, Trace]:
    async with _serving(blobs) as send:
        puts = blobs.put().numbered(1)
        for number in range(_WARM):
            for request in (next(puts), _block(blobs, number), blobs.commit(str(number), 1)):
                await send(request)
        await send(_block(blobs, _WARM))
        return {
            "Put Block List": await _traced(send, blobs.commit(str(_WARM), 1)),
            "Put Blob": await _traced(send, next(puts)),
        }


def _block(blobs: Blobs, number: int) -> bytes:
    return next(blobs.put_small_blocks(str(number)).numbered(0))


async def traces() -> dict[str, Trace]:
    """Return what each request enters, in a server that has answered some like it."""
    found = await _trace_tables(Catalogue("127.0.0.1:10002", 1))
    found |= await _trace_queues(Queues("127.0.0.1:10001"))
    found |= await _trace_blobs(Blobs("127.0.0.1:10000", 1))
    return {name: found[name] for name in MODULES_MAX}


def table_of(found: dict[str, Trace]) -> str:
    """Return the table of the page."""
    rows = (f"| {name} | {len(trace.modules)} | {trace.calls} |\n" for name, trace in found.items())
    return "| request | modules | calls |\n|---|---|---|\n" + "".join(rows)


def stated() -> dict[str, tuple[int, int]]:
    """Return the modules and calls that the page states for each request."""
    table = _TABLE.search(PAGE.read_text())
    rows = _ROW.findall(table[0]) if table else []
    return {name: (int(modules), int(calls)) for name, modules, calls in rows}


def main() -> None:
    """Print the table, and the modules if they are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.request_trace", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table of the page again")
    parser.add_argument("--modules", action="store_true", help="print the modules of each request, too")
    given = parser.parse_args()
    found = asyncio.run(traces())
    print(table_of(found))
    if given.modules:
        for name, trace in found.items():
            print(name, *trace.modules, sep="\n    ")
    if given.write:
        PAGE.write_text(_TABLE.sub(table_of(found), PAGE.read_text()))


if __name__ == "__main__":
    main()
