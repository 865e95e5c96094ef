"""Another HTTP server, on loopback, that says what a test wants."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

OK = b"HTTP/1.1 200 OK\r\n"


class Peer:
    """A server on loopback.

    Attributes:
        port: where it listens.
        heads: of the requests that it got.
        left: is set unless a client is connected.
    """

    def __init__(self, say: Callable[[bytes], bytes], *, ends: bool) -> None:
        self.port = 0
        self.heads: list[bytes] = []
        self.left = asyncio.Event()
        self.left.set()
        self.sent_bytes = 0
        self._say = say
        self._ends = ends

    @property
    def url(self) -> str:
        """Its URL by its address."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then wait for the client to leave."""
        self.left.clear()
        with suppress(OSError, asyncio.IncompleteReadError):
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            answer = self._say(self.heads[-1])
            for start in range(0, len(answer), 16_384):
                writer.write(answer[start : start + 16_384])
                await writer.drain()
                self.sent_bytes = min(start + 16_384, len(answer))
            if self._ends and writer.can_write_eof():
                writer.write_eof()
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self.left.set()


@asynccontextmanager
async def peer(
    say: Callable[[bytes], bytes] | bytes, tls: ssl.SSLContext | None = None, *, ends: bool = True
) -> AsyncIterator[Peer]:
    """Yield a server.

    Args:
        say: its answer, or what makes it of a request's head.
        tls: of a server for HTTPS.
        ends: whether it then sends no more; else it is silent.
    """
    found = Peer((lambda _: say) if isinstance(say, bytes) else say, ends=ends)
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0, ssl=tls) as server:
        found.port = server.sockets[0].getsockname()[1]
        yield found
        await found.left.wait()


def answer(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    """Return a response with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
