"""Fetches the source of a copy from another server. See `FetchSource`.

Invariants:
- an address is checked after the name is resolved, and the connection goes to exactly that address: the name is not
  resolved again, so it cannot come to mean another machine in between;
- one connection for each fetch, no proxy, no redirect followed, and at most `_FETCHES_MAX` at once;
- every wait has an end (`Times`).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from lazulite.engine.thread_pool import ThreadPool
from lazulite.server.copy_sources.hosts import IpAddress, SourceHost, SourceHosts
from lazulite.server.copy_sources.response import READ_BYTES, StreamedResponse
from lazulite.server.oidc.fetch import FetchError, Origin, origin_of
from lazulite.service.fetching import FetchedResponse, FetchFailedError, FetchNotAllowedError

_FETCHES_MAX = 16
_ADDRESSES_MAX = 4
"""The addresses of one name that are tried."""
_RESOLVERS = 4
"""Threads. A thread cannot be interrupted, so slow names must not take those of others."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[IpAddress]]]
"""Returns the addresses of a host. Raises `OSError`, `UnicodeError`."""


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
