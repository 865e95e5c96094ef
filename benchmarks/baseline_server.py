"""The baseline server: the most that httptools and uvloop alone can answer, with no service behind them.

It reads every request to its end and answers each with the same bytes. A ratio against it is the share of the
machine's possible speed that the service keeps, and stays comparable between machines and between noisy hours.
Arguments: port, status, bytes of the body.
"""

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import cast

import httptools
import uvloop


class Responder(asyncio.Protocol):
    """A connection that answers each request."""

    def __init__(self, response: bytes = b"") -> None:
        self._response = response
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Answer a request that has come to its end."""
        self._transport.write(self._response)


async def _serve(connection: Callable[[], Responder], port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(connection, "127.0.0.1", port)
    print(f"It listens on http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await stop.wait()


def serve(connection: Callable[[], Responder], port: int) -> None:
    """Serve on a loopback port until SIGTERM; print the port."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(connection, port))


if __name__ == "__main__":
    at, status, length = map(int, sys.argv[1:])
    head = "" if status == 204 else f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
    response = f"HTTP/1.1 {status} OK\r\n{head}\r\n{'x' * length}".encode()
    serve(lambda: Responder(response), at)
