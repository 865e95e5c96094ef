"""The headers of reverse proxies: `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-For`.

Invariants: only a configured proxy is trusted; the headers of other clients are ignored. Of a list, only the entries
count that the proxies added, which are the last ones: entries before them may be the client's.
A value that is no scheme, host or address counts as absent. The path never changes, as signatures cover it.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import EventualResponse, Request, Response, Service
from lazulite.server.http.head import is_host

Network = IPv4Network | IPv6Network

HOPS_MAX = 16
"""Addresses of an `X-Forwarded-For` that are looked at."""


class Proxied:
    """A service behind proxies: sees scheme, host and client of a request as they were in front of them.

    Args:
        inner: the service behind this one.
        trusted: the networks of the proxies.
    """

    def __init__(self, inner: Service, trusted: Iterable[Network]) -> None:
        self._inner = inner
        networks = tuple(trusted)

        @lru_cache(maxsize=1024)
        def trusts(client: str) -> bool:
            text = _address(client)  # Under ASGI, a client may be any text.
            return text != "" and any(ip_address(text) in network for network in networks)

        self._trusts = trusts

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        self._look_behind(request)
        return self._inner.respond(request)

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        self._look_behind(request)
        return self._inner.reject(request, error)

    def _look_behind(self, request: Request) -> None:
        """Correct a request; doing it again changes nothing."""
        if not request.client or not self._trusts(request.client):
            return
        headers = request.headers
        scheme = _last(headers.get("x-forwarded-proto", "")).lower()
        if scheme in ("http", "https"):
            request.scheme = scheme
        host = _last(headers.get("x-forwarded-host", ""))
        if host and is_host(host) and host != headers.get("host"):
            request.headers = (
                headers.replaced("host", host) if isinstance(headers, Fields) else {**headers, "host": host}
            )
        request.client = self._client(headers.get("x-forwarded-for", ""), request.client)

    def _client(self, hops: str, client: str) -> str:
        """Return the nearest address that is no proxy's; the farthest known if all are."""
        for hop in reversed(hops.rsplit(",", HOPS_MAX)[-HOPS_MAX:]):
            address = _address(hop)
            if not address:
                break
            client = address
            if not self._trusts(address):
                break
        return client


def _last(values: str) -> str:
    return values.rpartition(",")[2].strip()


def _address(hop: str) -> str:
    """Return an address without the port and brackets that some proxies write; "" if it is not an address."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
