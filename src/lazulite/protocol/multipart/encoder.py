"""A batch's answer: the layout of reference §11.4 to the byte, because strict readers exist.

All line ends are CRLF. A part ends with exactly one CRLF after its body; an empty body therefore shows as two blank
lines after the last header.
"""

from collections.abc import Sequence
from random import Random
from uuid import UUID

from lazulite.protocol.errors import REASONS
from lazulite.protocol.message import Response

_PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"


def encode_part(response: Response, content_id: str | None) -> bytes:
    """Return one response as `application/http`, after the blank line that ends its part's head."""
    lines = [f"HTTP/1.1 {response.status} {REASONS[response.status]}"]
    if content_id is not None:
        lines.append(f"Content-ID: {content_id}")
    lines += [f"{name}: {value}" for name, value in response.headers]
    head = "\r\n".join(lines)
    return f"{head}\r\n\r\n".encode("latin-1") + response.body + b"\r\n"


def _multipart(boundary: str, head: str, parts: Sequence[bytes]) -> bytes:
    opening = f"--{boundary}\r\n{head}".encode("ascii")
    return opening.join([b"", *parts]) + f"--{boundary}--\r\n".encode("ascii")


def batch_response(parts: Sequence[bytes], *, in_change_set: bool, random: Random) -> Response:
    """Return the 202 that carries the encoded parts."""
    batch = f"batchresponse_{UUID(int=random.getrandbits(128))}"
    if in_change_set:
        changes = f"changesetresponse_{UUID(int=random.getrandbits(128))}"
        inner = _multipart(changes, _PART_HEAD, parts)
        body = _multipart(batch, f"Content-Type: multipart/mixed; boundary={changes}\r\n\r\n", [inner])
    else:
        body = _multipart(batch, _PART_HEAD, parts)
    return Response(
        202,
        [
            ("Content-Type", f"multipart/mixed; boundary={batch}"),
            ("Cache-Control", "no-cache"),
            ("X-Content-Type-Options", "nosniff"),
        ],
        body,
    )
