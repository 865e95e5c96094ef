"""Fetch a small document over HTTP, without a thread: one request, one connection, nothing followed.

Invariants: no more than `bytes_max` bytes of body and `_HEAD_BYTES_MAX` of anything else are read; a redirect is a
failure like any other status but 200; a body that stops short is a failure. The time is for the caller to bound:
cancelling a fetch closes its connection.
"""

import asyncio
import re
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

_HEAD_BYTES_MAX = 64 * 1024
_READ_BYTES = 64 * 1024
_URL = re.compile(r"https?://[!-~]{1,2048}", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class FetchError(Exception):
    """The document could not be had. The text is one line for people."""


class Origin(NamedTuple):
    """Scheme, host and port of a server."""

    scheme: str
    host: str
    port: int


def origin_of(url: str) -> Origin:
    """Return the origin of an http or https URL.

    Raises:
        FetchError: it is no such URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise FetchError(f"{url!r} is not a URL") from None
    if not _URL.fullmatch(url) or not parts.hostname or parts.username is not None or parts.fragment:
        raise FetchError(f"{url[:200]!r} is not a usable http or https URL")
    return Origin(parts.scheme, parts.hostname, port or _PORTS[parts.scheme])


class _Response:
    """A response under construction; httptools calls the methods by these names."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.complete = False
        self.has_length = False

    def on_header(self, name: bytes, _: bytes) -> None:
        self.has_length |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


async def fetch(url: str, *, bytes_max: int, tls: ssl.SSLContext) -> bytes:
    """Return the body of the answer to a GET.

    Args:
        url: http or https.
        bytes_max: of the body.
        tls: for https; it has the trusted certificates.

    Raises:
        FetchError: it cannot be had, or is too large.
    """
    origin = origin_of(url)
    try:
        reader, writer = await asyncio.open_connection(
            origin.host, origin.port, ssl=tls if origin.scheme == "https" else None
        )
    except (OSError, UnicodeError) as error:
        raise FetchError(f"cannot connect to {origin.host}:{origin.port}: {error}") from None
    try:
        writer.write(_request(url))
        return await _read(url, reader, bytes_max)
    except OSError as error:
        raise FetchError(f"cannot read {url}: {error}") from None
    finally:
        # Not a graceful close: a peer that does not respond must not delay the caller.
        writer.transport.abort()


def _request(url: str) -> bytes:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"GET {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: lazulite",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _read(url: str, reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    response = _Response()
    parser = HttpResponseParser(response)
    received_bytes = 0
    while not response.complete:
        data = await reader.read(_READ_BYTES)
        if not data:
            break
        received_bytes += len(data)
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            raise FetchError(f"{url} gave no HTTP/1.1 answer") from None
        if len(response.body) > bytes_max or received_bytes > len(response.body) + _HEAD_BYTES_MAX:
            raise FetchError(f"{url} gave more than {bytes_max} bytes")
    status = parser.get_status_code()
    if status != 200:
        raise FetchError(f"{url} answered {status or 'nothing'}")
    if not response.complete and response.has_length:
        raise FetchError(f"{url} gave half an answer")
    return bytes(response.body)
