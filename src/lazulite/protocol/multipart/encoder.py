"""A batch's answer: the layout of reference §11.4 to the byte, because strict readers exist.

All line ends are CRLF. A part ends with exactly one CRLF after its body; an empty body therefore shows as two blank
lines after the last header.
"""

from collections.abc import Sequence
from random import Random
from uuid import UUID

from lazulite.protocol.errors import REASONS
from lazulite.protocol.joined_content import ONE_PIECE_BYTES, EnclosedContent, JoinedContent
from lazulite.protocol.message import Response

_PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
_PART_END = b"\r\n"


def encode_part(response: Response, content_id: str | None) -> bytes:
    """Return one response without content as `application/http`, after the blank line that ends its part's head."""
    return _part_head(response, content_id) + response.body + _PART_END


def change_set_response(parts: Sequence[bytes], random: Random) -> Response:
    """Return the 202 that carries the encoded parts of a change set."""
    batch, changes = _boundary("batch", random), _boundary("changeset", random)
    opening = f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changes}\r\n\r\n"
    pieces = [f"--{changes}\r\n{_PART_HEAD}".encode("ascii")] * (2 * len(parts) + 2)
    pieces[0] = opening.encode("ascii")
    pieces[2:-1:2] = parts
    pieces[-1] = f"--{changes}--\r\n--{batch}--\r\n".encode("ascii")
    response = _accepted(batch)
    if sum(map(len, parts)) > ONE_PIECE_BYTES:
        response.content = JoinedContent(pieces)
    else:
        response.body = b"".join(pieces)
    return response


def query_response(answer: Response, content_id: str | None, random: Random) -> Response:
    """Return the 202 that carries the response of a query."""
    batch = _boundary("batch", random)
    opening = f"--{batch}\r\n{_PART_HEAD}".encode("ascii") + _part_head(answer, content_id)
    closing = _PART_END + f"--{batch}--\r\n".encode("ascii")
    response = _accepted(batch)
    if answer.content is not None:
        response.content = EnclosedContent(opening, answer.content, closing)
    else:
        response.body = b"".join((opening, answer.body, closing))
    return response


def _part_head(response: Response, content_id: str | None) -> bytes:
    named = "" if content_id is None else f"Content-ID: {content_id}\r\n"
    fields = "".join(f"{name}: {value}\r\n" for name, value in response.headers)
    head = f"HTTP/1.1 {response.status} {REASONS[response.status]}\r\n{named}{response.opening}{fields}\r\n"
    return head.encode("latin-1")


def _boundary(kind: str, random: Random) -> str:
    return f"{kind}response_{UUID(int=random.getrandbits(128))}"


def _accepted(batch: str) -> Response:
    return Response(
        202,
        [
            ("Content-Type", f"multipart/mixed; boundary={batch}"),
            ("Cache-Control", "no-cache"),
            ("X-Content-Type-Options", "nosniff"),
        ],
    )
