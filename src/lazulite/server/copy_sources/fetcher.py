"""Fetches the source of a copy from another server, whose response is read as its body is taken. See `FetchSource`.

Invariants:
- An address is checked after the name is resolved, and the connection goes to exactly that address: the name is not
  resolved again, so it cannot come to mean another machine in between.
- There is one connection for each fetch, no proxy, no redirect is followed, and at most `_FETCHES_MAX` run at once.
- Every wait has an end (`Times`).
- The head has at most `_OVERHEAD_BYTES_MAX` bytes, and as many may come between two pieces of the body. A body tells
  where it ends: one that ends with the connection is rejected, as it may have been cut.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from lazulite.engine.thread_pool import ThreadPool
from lazulite.protocol.fields import join_values, lower_name
from lazulite.server.copy_sources.hosts import IpAddress, SourceHost, SourceHosts
from lazulite.server.oidc.fetch import FetchError, Origin, origin_of
from lazulite.service.fetching import FetchedResponse, FetchFailedError, FetchNotAllowedError

READ_BYTES = 64 * 1024
"""The bytes of one read. A connection holds at most four of them."""
_OVERHEAD_BYTES_MAX = 64 * 1024

_FETCHES_MAX = 16
_ADDRESSES_MAX = 4
"""The addresses of one name that are tried."""
_RESOLVERS = 4
"""Threads. A thread cannot be interrupted, so slow names must not take those of others."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[IpAddress]]]
"""Returns the addresses of a host. Raises `OSError`, `UnicodeError`."""


class _Message:
    """The first message of a connection; httptools calls the methods by these names."""

    def __init__(self) -> None:
        self.parser = HttpResponseParser(self)
        self.status = 0
        """0: the head has not come."""
        self.headers: dict[str, str] = {}
        self.pieces: deque[bytes] = deque()
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # A trailer.
        field, text = lower_name(name.decode("latin-1")), value.decode("latin-1")
        before = self.headers.get(field)
        self.headers[field] = text if before is None else join_values(before, text)

    def on_headers_complete(self) -> None:
        self.status = self.status or self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        if not self.is_whole:
            self.pieces.append(data)

    def on_message_complete(self) -> None:
        self.is_whole = True


class StreamedResponse:
    """A response as it comes. See `FetchedResponse`.

    Args:
        reader: of the connection.
        stall_seconds: the time between two bytes.
        deadline: when the body must have come, on the loop's clock.
    """

    def __init__(self, reader: asyncio.StreamReader, stall_seconds: float, deadline: float) -> None:
        self._reader = reader
        self._stall_seconds = stall_seconds
        self._deadline = deadline
        self._message = _Message()
        self._overhead_bytes = 0

    @property
    def status(self) -> int:
        """The status."""
        return self._message.status

    @property
    def headers(self) -> dict[str, str]:
        """The header values, by name in lower case."""
        return self._message.headers

    async def read_head(self) -> None:
        """Receive the head. Raises `FetchFailedError`."""
        while not self._message.status:
            await self._read()
        coding = self.headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            raise FetchFailedError("the body has an unknown transfer coding")
        if coding is None and "content-length" not in self.headers and not self._message.is_whole:
            raise FetchFailedError("the length of the body is not known")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; no more is read than is taken. Raises `FetchFailedError`."""
        message = self._message
        while True:
            while message.pieces:
                yield message.pieces.popleft()
            if message.is_whole:
                return
            await self._read()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(min(loop.time() + self._stall_seconds, self._deadline)):
                data = await self._reader.read(READ_BYTES)
        except TimeoutError:
            raise FetchFailedError("the response is too slow") from None
        except OSError as error:
            raise FetchFailedError(str(error)) from None
        if not data:
            raise FetchFailedError("the response is incomplete")
        try:
            self._message.parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            raise FetchFailedError("the response is not HTTP/1.1") from None
        self._overhead_bytes = 0 if self._message.pieces else self._overhead_bytes + len(data)
        if self._overhead_bytes > _OVERHEAD_BYTES_MAX:
            raise FetchFailedError("the head is too large")


class Times(NamedTuple):
    """The bounds of what a fetch waits for, in seconds."""

    head_seconds: float = 10.0
    """To the end of the head, from the request on: waiting for others, resolving and connecting included."""
    stall_seconds: float = 30.0
    """Between two bytes of the body."""
    body_seconds: float = 600.0
    """For the body."""


class SourceFetcher:
    """Fetches sources from the hosts that the operator has allowed.

    Args:
        hosts: names and networks.
        tls: for https; it has the trusted certificates. None: those of the system.
        resolve: finds the addresses of a host. None: the system's resolver.
        times: bounds of a fetch.
    """

    def __init__(
        self,
        hosts: Iterable[SourceHost],
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        times: Times = Times(),  # noqa: B008
    ) -> None:
        self._hosts = SourceHosts(hosts)
        self._tls = ssl.create_default_context() if tls is None else tls
        self._threads = ThreadPool(_RESOLVERS, "copy-source")
        self._resolve = resolve or self._resolve_by_system
        self._times = times
        self._slots = asyncio.Semaphore(_FETCHES_MAX)

    @asynccontextmanager
    async def fetch(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[FetchedResponse]:
        """Connect, and yield the response. See `FetchSource`."""
        try:
            origin = origin_of(url)
        except FetchError as error:
            raise FetchFailedError(str(error)) from None
        request = _request(url, headers)
        if not self._hosts.may_be_allowed(origin.host):
            raise FetchNotAllowedError(origin.host)
        times = self._times
        end = asyncio.get_running_loop().time() + times.head_seconds
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(end):
                    await stack.enter_async_context(self._slots)
                    reader, writer = await self._connect(origin)
                    # Not a graceful close: a peer that does not respond must not delay the caller.
                    stack.callback(writer.transport.abort)
                    writer.write(request)
                    response = StreamedResponse(reader, times.stall_seconds, end + times.body_seconds)
                    await response.read_head()
            except TimeoutError:
                raise FetchFailedError("no response in time") from None
            yield response

    async def _connect(self, origin: Origin) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            found = await self._resolve(origin.host, origin.port)
        except (OSError, UnicodeError) as error:
            raise FetchFailedError(f"cannot resolve {origin.host}: {error}") from None
        allowed = [address for address in found if self._hosts.allows(origin.host, address)]
        if not allowed:
            raise FetchNotAllowedError(origin.host)
        is_https = origin.scheme == "https"
        problem = ""
        for address in allowed[:_ADDRESSES_MAX]:
            try:
                return await asyncio.open_connection(
                    str(address),
                    origin.port,
                    limit=READ_BYTES,
                    ssl=self._tls if is_https else None,
                    server_hostname=origin.host if is_https else None,
                )
            except (OSError, UnicodeError) as error:
                problem = str(error)
        raise FetchFailedError(f"cannot connect to {origin.host}:{origin.port}: {problem}")

    async def _resolve_by_system(self, host: str, port: int) -> Sequence[IpAddress]:
        def resolve() -> list[IpAddress]:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(ip_address(place[0]) for *_, place in found))

        return await asyncio.get_running_loop().run_in_executor(self._threads, resolve)


def _request(url: str, headers: Mapping[str, str]) -> bytes:
    """Return the head of a request. Raises `FetchFailedError` for a header that no request can have."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = {
        "Host": parts.netloc,
        "Accept-Encoding": "identity",
        "User-Agent": "lazulite",
        "Connection": "close",
        **headers,
    }
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
    if not all(line.isascii() and line.isprintable() for line in lines):
        raise FetchFailedError("a header is not printable ASCII")
    return "\r\n".join([*lines, "", ""]).encode("ascii")
