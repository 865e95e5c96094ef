"""What hostile clients do: each function is one attack, or makes one."""

import asyncio
import re
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import quote

from benchmarks.requests import TABLE, Requests

from .target import CUT, HOST, Again, Attack, Target, Wire

_BYTE_SECONDS = 0.2
"""Between two bytes of a slow sender."""

_STEPS = 10_000
"""Of a busy loop, between two looks at whether to go on."""

_CONTINUATION = re.compile(r"x-ms-continuation-(next\w+): (\S+)", re.IGNORECASE)


def flood(make: Callable[[Requests], Sequence[bytes]]) -> Attack:
    """Send requests in turn on one connection, each as soon as the last one is answered."""
    made: dict[int, Sequence[bytes]] = {}

    async def attack(target: Target, again: Again) -> None:
        requests = made.get(target.port) or made.setdefault(target.port, make(target.requests))
        wire = await Wire.open(target)
        while again():
            for request in requests:
                await wire.send(request)
                if await wire.outcome() == CUT:
                    return
        wire.close()

    return attack


def once(make: Callable[[Requests], Sequence[bytes]]) -> Attack:
    """Send a request on a connection of its own, which the server is to end."""
    made: dict[int, Sequence[bytes]] = {}

    async def attack(target: Target, _: Again) -> None:
        for request in made.get(target.port) or made.setdefault(target.port, make(target.requests)):
            wire = await Wire.open(target)
            with suppress(ConnectionError):  # It has rejected already; the answer can still be read.
                await wire.send(request)
            await wire.outcome(final=True)
            wire.close()

    return attack


def slow(make: Callable[[Requests], bytes], whole: int) -> Attack:
    """Send the first `whole` bytes at once and the rest one by one."""

    async def attack(target: Target, _: Again) -> None:
        request, wire = make(target.requests), await Wire.open(target)
        answer = asyncio.create_task(wire.outcome(final=True))
        await wire.send(request[:whole])
        for byte in request[whole:]:
            if answer.done():
                break
            await wire.send(bytes([byte]))
            await asyncio.wait([answer], timeout=_BYTE_SECONDS)
        await answer
        wire.close()

    return attack


async def busy_loop(target: Target, again: Again) -> None:
    """Do nothing to the server, but keep a processor busy: what no server can help."""
    target.note_opened()
    while again():
        for _ in range(_STEPS):
            pass
        target.outcomes["worked"] += 1
        await asyncio.sleep(0)


async def silent(target: Target, _: Again) -> None:
    """Connect and say nothing, until the server ends it."""
    wire = await Wire.open(target)
    await wire.outcome()
    wire.close()


async def idle(target: Target, _: Again) -> None:
    """Ask once, and rest until the server ends the connection."""
    wire = await Wire.open(target)
    await wire.send(target.requests.raw("GET", f"{TABLE}(PartitionKey='r0000',RowKey='000000')"))
    await wire.outcome()
    await wire.outcome()
    wire.close()


async def churn(target: Target, _: Again) -> None:
    """Connect and leave."""
    (await Wire.open(target)).close()
    target.outcomes["left"] += 1


async def vanish(target: Target, _: Again) -> None:
    """Ask for much and reset the connection."""
    wire = await Wire.open(target)
    await wire.send(target.requests.raw("GET", f"{TABLE}()"))
    wire.vanish()
    target.outcomes["left"] += 1


async def read_nothing(target: Target, _: Again) -> None:
    """Ask for big pages and never read them."""
    wire = await Wire.open(target)
    wire.stop_reading()
    await wire.send(target.requests.raw("GET", f"{TABLE}()") * 4)
    await asyncio.sleep(600)


async def scan(target: Target, again: Again) -> None:
    """Look through the table for what is not there, and follow the continuations, forever."""
    wire = await Wire.open(target)
    following = ""
    while again():
        text = quote("Count eq 5L and Text ne 'a'")
        await wire.send(target.requests.raw("GET", f"{TABLE}()", f"$filter={text}{following}"))
        head = (await wire.page()).decode("latin-1")
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        names = {name.lower(): value for name, value in fields.items()}
        parts = [
            f"{n}={quote(names[f'x-ms-continuation-{n.lower()}'])}"
            for n in ("NextPartitionKey", "NextRowKey")
            if f"x-ms-continuation-{n.lower()}" in names
        ]
        following = "".join(f"&{part}" for part in parts)
    wire.close()


async def handshake(target: Target, _: Again) -> None:
    """Go through a TLS handshake and leave."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _reader, writer = await asyncio.open_connection(HOST, target.https_port, ssl=context)
    target.note_opened()
    writer.transport.abort()
    target.outcomes["left"] += 1
