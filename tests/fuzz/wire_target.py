"""The target that is nearest to the network: raw bytes into a connection, the whole service behind it.

What it sends back is a row of HTTP responses. They are the same however the bytes are cut, but for `100 Continue`,
which a client that sends its body does not need, and `Connection: close`. When the client has gone, nothing is kept.
"""

import asyncio
import itertools
import re

from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.outbound import CONTINUE, REASON_MAX
from lazulite.server.http.server_state import ServerState
from lazulite.server.limits import Limits
from tests.server.wire import Record, Transport

from .oracles import BrokenPromiseError, require
from .world import World

_STATUS_LINE = re.compile(rb"HTTP/1\.1 \d{3} [ -~]{0,%d}\r\n" % REASON_MAX)
_ITERATIONS_AFTER = 5
"""Of the event loop, for what waits to be sent."""
_ITERATIONS_MAX = 20_000


def wire(world: World, data: bytes) -> None:
    """Send the bytes in one piece, then again cut in two and in single bytes."""
    whole = world.loop.run_until_complete(_converse(world, [data]))
    world.reset()
    middle = len(data) // 2
    cut = [data[:middle], data[middle:]]
    require(world.loop.run_until_complete(_converse(world, cut)) == whole, "two pieces are answered as one is")
    if len(data) <= 512:
        world.reset()
        singles = [data[at : at + 1] for at in range(len(data))]
        answers = world.loop.run_until_complete(_converse(world, singles, at_once=True))
        require(answers == whole, "single bytes are answered as one piece")


async def _converse(world: World, pieces: list[bytes], *, at_once: bool = False) -> list[bytes]:
    """Feed the pieces, each when the one before was dealt with or all in one iteration; return the responses."""
    log = Record()
    numbers = itertools.count()
    limits, clock = Limits(), lambda: 0.0
    new_id, budgets = lambda: f"id-{next(numbers)}", budgets_of(limits, clock)
    state = ServerState(world.service, limits, new_id, clock, (log,), budgets=budgets)
    connection = Connection(state)
    transport = Transport(connection)
    connection.connection_made(transport)
    for piece in pieces:
        if transport.closed:
            break
        connection.data_received(piece)
        if not at_once:
            await _settle(connection)
    await _settle(connection)
    if not transport.closed:
        if not connection.eof_received():
            transport.close()
        await _settle(connection)
    if not transport.closed:
        transport.abort()
    await asyncio.sleep(0)
    if log.failures:
        raise log.failures[0][1]
    require(not state.connections, "a connection that was lost is forgotten")
    require(budgets.buffered_bytes == 0, "the room of a body is given back")
    return _read_responses(transport.written, log)


async def _settle(connection: Connection) -> None:
    """Let everything happen that is going to."""
    for iteration in range(_ITERATIONS_MAX):
        await asyncio.sleep(0)
        running = connection.running
        if iteration >= _ITERATIONS_AFTER and (running is None or (running.accepted and not running.complete)):
            return
    raise BrokenPromiseError("requests end within many iterations of the loop")


def _read_responses(written: bytes, log: Record) -> list[bytes]:
    """Read what was sent as a client does that knows what it asked; return the final responses."""
    responses: list[bytes] = []
    for exchange in log.exchanges:
        while written.startswith(CONTINUE):
            written = written.removeprefix(CONTINUE)
        end = written.find(b"\r\n\r\n")
        require(end >= 0 and _STATUS_LINE.match(written) is not None, "each answer has a head")
        status = int(written[9:12])
        require(status < 500 or status == 505 or exchange.response.error_code == "NotImplemented", f"no {status}")
        fields = dict(line.lower().split(b": ", 1) for line in written[:end].split(b"\r\n")[1:])
        length = 0 if exchange.request.method == "HEAD" else int(fields[b"content-length"])
        require(len(written) >= end + 4 + length, "an answer is as long as it says")
        # Whether the rest of a rejected body is broken is known only where it came before the rejection.
        responses.append(written[: end + 4 + length].replace(b"Connection: close\r\n", b""))
        written = written[end + 4 + length :]
    require(written.replace(CONTINUE, b"") == b"", "an answer is as long as it says")
    return responses
