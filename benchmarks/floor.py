"""The floor: what httptools and uvloop alone can answer, with no service behind them.

It reads every request to its end and answers each with the same bytes. A ratio against it says how much of the
machine's possible speed the service keeps, and stays comparable between machines and between noisy hours.
"""

import argparse
import asyncio
import signal
from typing import cast

import httptools
import uvloop


class _Echo(asyncio.Protocol):
    def __init__(self, response: bytes) -> None:
        self._response = response
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(self._response)


async def _serve(response: bytes) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(lambda: _Echo(response), "127.0.0.1", 0)
    print(f"The floor listens on http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    await stop.wait()


def main() -> None:
    """Serve `--body-bytes` with `--status` on a free loopback port, which is printed, until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--body-bytes", type=int, default=1024)
    arguments = parser.parse_args()
    body = b"x" * arguments.body_bytes
    head = f"HTTP/1.1 {arguments.status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    if arguments.status == 204:
        head = "HTTP/1.1 204 No Content\r\n\r\n"
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(head.encode() + body))


if __name__ == "__main__":
    main()
