"""TLS in front of a server, as a proxy has it."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.certificates import Files

READ_BYTES = 64 * 1024


class _Relay:
    """Takes TLS off connections and hands their bytes on to a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._relaying: set[asyncio.Task[None]] = set()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._relay(reader, writer))
        self._relaying.add(task)
        task.add_done_callback(self._relaying.discard)

    async def close(self) -> None:
        for task in self._relaying:
            task.cancel()
        await asyncio.gather(*self._relaying, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        pumps = [asyncio.ensure_future(_pump(*ends)) for ends in ((reader, inner_writer), (inner_reader, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for each in (writer, inner_writer):
                # A client need not answer the end of its connection.
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()


@contextmanager
def terminating(files: Files, port: int) -> Iterator[int]:
    """Serve TLS until the block ends; yield the port to connect to."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*files)
    listens: list[int] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def run() -> None:
        relay = _Relay(port)
        async with await asyncio.start_server(relay.connected, "127.0.0.1", 0, ssl=tls) as server:
            listens.append(server.sockets[0].getsockname()[1])
            ready.set()
            await done.wait()
        await relay.close()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield listens[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
