"""Multipart bodies of batches: in, which requests one holds, free of their meaning; and out, the answer of a batch.

What comes in is read liberally where clients differ: bare line feeds, missing final boundaries, blank lines before
boundaries, a preamble, quoted boundaries, Content-ID in either header block. Invariants: never more parts are cut out
than one above their bound; a body that is no such thing is one `InvalidInput`. Source: reference §11.1, §23.

What goes out has the layout of reference §11.4 to the byte, because strict readers exist. All line ends are CRLF. A
part ends with exactly one CRLF after its body; an empty body therefore shows as two blank lines after the last header.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import NamedTuple
from uuid import UUID

from lazulite.protocol.errors import REASONS, ServiceError
from lazulite.protocol.joined_content import ONE_PIECE_BYTES, EnclosedContent, JoinedContent
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps

PARTS_MAX = 100
HEADERS_MAX = 64
HEAD_BYTES_MAX = 64 * 1024
"""Length of one head inside a batch, its request line included, and of the blank lines before it; a single request's
has as much."""

_SEARCHED_BYTES = 512 * 1024
"""The bytes of a body that one step searches for a delimiter."""
_SHORT_BYTES_MAX, _SHORT_PARTS_OF_A_STEP = 16 * 1024, 8
_CACHED_LENGTH_MAX = 1024
"""The parts of a batch repeat their heads; one of up to this many characters is read once."""

_BOUNDARY = re.compile(r"multipart/mixed\s*;(?:.*;)?\s*boundary\s*=\s*(?:\"([^\"]{1,200})\"|([^\s;\"]{1,200}))", re.I)
_REQUEST_LINE = re.compile(r"([A-Za-z]{1,20}) +(\S+) +HTTP/1\.[01]\s*", re.ASCII)
_HEADER = re.compile(r"([!-9;-~]++)\s*+:\s*+([^\x00-\x08\x0a-\x1f\x7f]*+)")
"""As a request's own head has it: no control character but the tab in a value, for some values are echoed. Linear: no
repetition can give back what it took."""
_LINE_ENDS = re.compile(rb"[\r\n]*+")
_BLANK_LINE = re.compile(rb"\n\r?\n")
"""With the end of the line before, but for its carriage return: a search for one certain byte is quick."""
_USUAL_BYTES_MAX = 4096
_USUAL_HEADS = re.compile(
    rb"\r\n(?>(?:[!-~][ -~]*+\r\n)+)\r\n"
    rb"((?>(?:(?!(?i:content-length:))[!-~][ -~]*+\r\n)+))"
    rb"(?>(?:(?i:content-length): ?[0-9]++\r\n((?>(?:[!-~][ -~]*+\r\n)*)))?)\r\n"
)
"""The two heads of a part as clients send them: the part's own, of which nothing is used, then the request's, before
and after its Content-Length. Linear: no repetition can give back what it took."""
_MALFORMED = "One of the request inputs is not valid."

_PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
_PART_END = b"\r\n"


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The head of a request inside a batch; one object for all parts whose heads differ in Content-Length only."""

    method: str
    url: str
    headers: Mapping[str, str]
    """By name in lower case, without Content-Length: a body ends at its delimiter."""
    content_id: str | None
    """To be echoed: only known if it stood among the request's own headers, as recorded, and is printable ASCII."""


class Part(NamedTuple):
    """One request inside a batch."""

    head: Head
    body: bytes


_Heads = dict[tuple[bytes | None, ...], Head]
"""By the groups of `_USUAL_HEADS`."""


class BatchBody(NamedTuple):
    """What a batch holds."""

    parts: list[Part]
    in_change_set: bool
    """False for the one query that may stand in a batch without a change set."""


def _malformed() -> ServiceError:
    return ServiceError("InvalidInput", _MALFORMED)


def boundary_of(content_type: str) -> str | None:
    """Return the boundary that a Content-Type declares; None if it is not multipart/mixed with one."""
    match = _BOUNDARY.match(content_type.strip())
    return None if match is None else match[1] or match[2]


def _split(text: bytes, boundary: str, parts_max: int = PARTS_MAX) -> Steps[list[bytes]]:
    """Return what stands between the delimiter lines, each piece beginning with the end of its line."""
    delimiter = b"\n--" + boundary.encode("latin-1")
    pieces: list[bytes] = []
    for piece in (yield from _cut(text, delimiter, parts_max)):
        if piece.startswith(b"\r\n"):  # As nearly all do, and the largest are copied only once.
            pieces.append(piece)
        elif piece.startswith(b"--"):
            break
        else:
            line, line_end, content = piece.partition(b"\n")
            if line.strip():
                raise _malformed()
            pieces.append(line_end + content)
    return pieces


def _cut(text: bytes, delimiter: bytes, parts_max: int = PARTS_MAX) -> Steps[list[bytes]]:
    """Return what follows each delimiter.

    As many are found as a count needs that is to be rejected; what follows them is left to the last piece.
    """
    if len(text) <= _SEARCHED_BYTES:
        return text.split(delimiter, parts_max + 2)[1:]
    starts: list[int] = []
    start = 0
    while start < len(text) and len(starts) < parts_max + 2:
        yield
        at = text.find(delimiter, start, start + _SEARCHED_BYTES)
        if at >= 0:
            start = at + len(delimiter)
            starts.append(start)
        else:
            start += _SEARCHED_BYTES - len(delimiter) + 1
    ends = [start - len(delimiter) for start in starts[1:]]
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=False)]


def _read_headers(block: str) -> Mapping[str, str]:
    """Return the fields of a head, by name in lower case."""
    return (_cached_headers if len(block) <= _CACHED_LENGTH_MAX else _parse_headers)(block)


def _parse_headers(block: str) -> Mapping[str, str]:
    lines = [line for line in block.split("\n") if line.strip()]
    if len(lines) > HEADERS_MAX:
        raise _malformed()
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise _malformed()
        name = match[1].lower()
        headers[name] = f"{headers[name]}, {match[2]}" if name in headers else match[2]
    headers.pop("content-length", None)
    return headers


_cached_headers = lru_cache(maxsize=256)(_parse_headers)


def _cut_head(text: bytes, start: int = 0) -> tuple[str, int]:
    """Return what stands before the first blank line, and where the rest begins; earlier blank lines are skipped."""
    leading = _LINE_ENDS.match(text, start, start + HEAD_BYTES_MAX)
    assert leading is not None, "it matches nothing as well"
    start = leading.end()
    blank = _BLANK_LINE.search(text, start, start + HEAD_BYTES_MAX)
    if blank is None and len(text) - start > HEAD_BYTES_MAX:
        raise _malformed()
    if blank is None:
        head, rest = text[start:], len(text)
    else:
        head, rest = text[start : blank.start()].removesuffix(b"\r"), blank.end()
    return head.replace(b"\r\n", b"\n").decode("latin-1"), rest


def _read_part(content: bytes, heads: _Heads) -> Part:
    """Read one part; `heads` are those of earlier parts."""
    usual = _USUAL_HEADS.match(content, 0, _USUAL_BYTES_MAX)
    if usual is None:
        _, request = _cut_head(content)
        text, body = _cut_head(content, request)
        return Part(_read_head(text), content[body:].strip())
    words = usual.groups()
    head = heads.get(words)
    if head is None:
        before, after = words
        text = (before if after is None else before + b"Content-Length: 0\r\n" + after).decode("ascii")
        head = heads[words] = _read_head(text.replace("\r\n", "\n"))
    return Part(head, content[usual.end() :].strip())


def _read_head(text: str) -> Head:
    line, _, fields = text.lstrip().partition("\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise _malformed()
    headers = _read_headers(fields)
    return Head(match[1].upper(), match[2], headers, _echoed(headers))


def _echoed(headers: Mapping[str, str]) -> str | None:
    """Return the Content-ID of a head, if it may stand in a response."""
    content_id = headers.get("content-id", "")
    return content_id if content_id and content_id.isascii() and content_id.isprintable() else None


def read_parts(content_type: str, body: bytes, parts_max: int) -> Steps[list[Part]]:
    """Take a multipart body apart whose parts are requests, a few parts in a step.

    Args:
        content_type: the header of the outer request.
        body: of the outer request; its size was bounded before.
        parts_max: no more parts than one above this number are read.

    Raises:
        ServiceError: `InvalidInput`.
    """
    boundary = boundary_of(content_type)
    if boundary is None:
        raise _malformed()
    parts: list[Part] = []
    for content in (yield from _split(b"\n" + body, boundary, parts_max))[: parts_max + 1]:
        if len(content) > _SHORT_BYTES_MAX or not len(parts) % _SHORT_PARTS_OF_A_STEP:
            yield
        parts.append(_read_request(content))
    return parts


def _read_request(content: bytes) -> Part:
    """Read one part; its Content-ID is that of its own head, or else that of its request."""
    own, request = _cut_head(content)
    text, body = _cut_head(content, request)
    head = _read_head(text)
    content_id = _echoed(_read_headers(own))
    return Part(head if content_id is None else replace(head, content_id=content_id), content[body:].strip())


def read_batch(content_type: str, body: bytes) -> Steps[BatchBody]:
    """Take a batch apart, a few parts in a step.

    Args:
        content_type: the header of the outer request.
        body: of the outer request; its size was bounded before.

    Raises:
        ServiceError: `InvalidInput`.
    """
    boundary = boundary_of(content_type)
    if boundary is None:
        raise _malformed()
    outer = yield from _split(b"\n" + body, boundary)  # The first line may be a delimiter.
    if len(outer) != 1:
        raise _malformed()
    inner = _inner_boundary(outer[0])
    heads: _Heads = {}
    parts: list[Part] = []
    for content in outer if inner is None else (yield from _split(outer[0], inner)):
        if len(content) > _SHORT_BYTES_MAX or not len(parts) % _SHORT_PARTS_OF_A_STEP:
            yield
        parts.append(_read_part(content, heads))
    return BatchBody(parts, in_change_set=inner is not None)


def _inner_boundary(content: bytes) -> str | None:
    head, _ = _cut_head(content)
    return boundary_of(_read_headers(head).get("content-type", ""))


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
