"""A `Response` as bytes.

Invariants: one head, one body, nothing else: neither a header value nor a reason phrase can start another line;
Content-Length always tells where the body ends, so the connection stays usable. A response's `opening` is checked by
the service that makes it.
"""

import re

from lazulite.protocol.errors import REASONS
from lazulite.protocol.message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

REASON_MAX = 256
"""Characters of a reason phrase."""

_STATUS_LINES = {status: f"HTTP/1.1 {status} {reason}" for status, reason in REASONS.items()}

_NOT_IN_REASON = re.compile(r"[^ -~]")

_BODILESS = frozenset({204, 304})


def encode_head(response: Response, *, keep_alive: bool, http_1_0: bool) -> bytes:
    """Return the head of a response.

    A response to HEAD has the Content-Length of the body it does not have. 204 has `Content-Length: 0`, which RFC 9110
    forbids but the live Table service sends and clients read.
    """
    status = response.status
    if response.opening and not response.headers and not response.reason and keep_alive and not http_1_0:
        head = f"{_STATUS_LINES[status]}\r\n{response.opening}Content-Length: {length_of(response)}\r\n\r\n"
        return head.encode("latin-1")
    lines = [_status_line(status, response.reason), *map(": ".join, response.fields())]
    if status != 304:
        lines.append(f"Content-Length: {length_of(response)}")
    if not keep_alive:
        lines.append("Connection: close")
    elif http_1_0:
        lines.append("Connection: keep-alive")
    run_on = "".join(lines)
    if "\n" in run_on or "\r" in run_on or "\0" in run_on:
        lines = [_one_line(line) for line in lines]
    head = "\r\n".join(lines)
    return head.encode("latin-1", "replace") + b"\r\n\r\n"


def body_of(response: Response, method: str) -> bytes:
    """Return the body that is sent of a response without content."""
    return b"" if method == "HEAD" or response.status in _BODILESS else response.body


def length_of(response: Response) -> int:
    """Return the Content-Length of a response."""
    if response.status in _BODILESS:
        return 0
    return len(response.body) if response.content is None else response.content.length


def _status_line(status: int, reason: str) -> str:
    """Return the first line of a head, with the first line of `reason`, if it has one, as the phrase."""
    line = re.split(r"[\r\n]", reason[:REASON_MAX], maxsplit=1)[0] if reason else ""
    if line:
        return f"HTTP/1.1 {status} {_NOT_IN_REASON.sub('?', line)}"
    return _STATUS_LINES.get(status) or f"HTTP/1.1 {status} "


def _one_line(line: str) -> str:
    return line.replace("\r", " ").replace("\n", " ").replace("\0", " ")
