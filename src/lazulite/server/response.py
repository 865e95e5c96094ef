"""A `Response` as bytes.

Invariants: one head, one body, nothing else: no header value can start another line; Content-Length always tells
where the body ends, so the connection stays usable.
"""

from lazulite.protocol.errors import REASONS
from lazulite.protocol.message import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES = {status: f"HTTP/1.1 {status} {reason}" for status, reason in REASONS.items()}

_BODILESS = frozenset({204, 304})


def encode(response: Response, *, method: str, keep_alive: bool, http_1_0: bool) -> tuple[bytes, bytes]:
    """Return head and body of a response to a request of that method.

    A response to HEAD has the Content-Length of the body it does not have. 204 has `Content-Length: 0`, which RFC 9110
    forbids but the live Table service sends and clients read.
    """
    status = response.status
    body = b"" if status in _BODILESS else response.body
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} ", *map(": ".join, response.headers)]
    if status != 304:
        lines.append(f"Content-Length: {len(body)}")
    if not keep_alive:
        lines.append("Connection: close")
    elif http_1_0:
        lines.append("Connection: keep-alive")
    run_on = "".join(lines)
    if "\n" in run_on or "\r" in run_on or "\0" in run_on:
        lines = [_one_line(line) for line in lines]
    head = "\r\n".join(lines)
    return head.encode("latin-1", "replace") + b"\r\n\r\n", b"" if method == "HEAD" else body


def _one_line(line: str) -> str:
    return line.replace("\r", " ").replace("\n", " ").replace("\0", " ")
