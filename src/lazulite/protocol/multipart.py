"""Multipart bodies of batches: in, which requests one holds, free of their meaning; and out, the answer of a batch.

What comes in is read liberally where clients differ: bare line feeds, missing final boundaries, blank lines before
boundaries, a preamble, quoted boundaries, Content-ID in either header block. Invariants: never more parts are cut out
than one above their bound; a body that is no such thing is one `InvalidInput`. Source: reference §11.1, §23.

The heads of the parts of one batch repeat each other, but for a few values. So a head is read once, and the *form* of
its bytes is kept for the parts behind it: constants, and the values between them. A part that has this form shares the
head; `Head.of` makes its own head, which is the one that reading its bytes gives.

What goes out has the layout of reference §11.4 to the byte, because strict readers exist. All line ends are CRLF. A
part ends with exactly one CRLF after its body; an empty body therefore shows as two blank lines after the last header.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple
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
    rb"([!-~]++ ([!-~]++) [!-~]++)\r\n(?>(?:[!-~][ -~]*+\r\n)*)\r\n"
)
"""The two heads of a part as clients send them: the part's own, of which nothing is used, then the request's, whose
first line and URL are the groups. Linear: no repetition can give back what it took."""
_VALUES = re.compile(rb"\r\n((?i:content-id|content-length|if-match)): ([!-~]++)(?=\r\n)")
"""The fields of the two heads that differ between the parts of one batch."""
_FORMS_MAX = 8
"""The forms of one batch."""
_VALUE_BYTES_MAX = 1024
_VISIBLE = bytes(range(0x21, 0x7F))
_IN_KEYS = bytes(code for code in _VISIBLE if chr(code).isalnum()) + b"_.~:@=+-"
"""What a key may have that stands for itself in a URL."""
_MALFORMED = "One of the request inputs is not valid."

_PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
PART_END: Final = b"\r\n"
"""What follows the body of a part."""


KEY: Final = "key"
"""In place of the name of a field: a part of the URL."""
_CONTENT_ID = "content-id"


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The head of a request inside a batch; one object for all parts that have its form."""

    method: str
    url: str
    headers: Mapping[str, str]
    """By name in lower case, without Content-Length: a body ends at its delimiter."""
    content_id: str | None
    """To be echoed: only known if it stood among the request's own headers, as recorded, and is printable ASCII."""
    names: tuple[str, ...] = field(default=(), kw_only=True)
    """What the values of the parts are that share this head, which has those of the first: `KEY`, a field in lower
    case, or "" for what has no meaning."""
    key_ends: tuple[int, int] = field(default=(0, 0), kw_only=True)
    """Where the key is in the URL."""

    def of(self, values: Sequence[bytes]) -> "Head":
        """Return the head of the part that has these values."""
        url, headers = self.url, dict(self.headers)
        for name, value in zip(self.names, values, strict=True):
            if name == KEY:
                start, end = self.key_ends
                url = url[:start] + value.decode("ascii") + url[end:]
            elif name in headers:
                headers[name] = value.decode("ascii")
        return Head(self.method, url, headers, _echoed(headers))


class Part(NamedTuple):
    """One request inside a batch."""

    head: Head
    body: bytes
    values: tuple[bytes, ...] = ()
    """Those of its own head, by `Head.names`; none if that is `head`."""

    @property
    def own_head(self) -> Head:
        """The head as it was sent."""
        return self.head.of(self.values) if self.values else self.head

    @property
    def content_id(self) -> str | None:
        """The Content-ID of its own head, see there."""
        head, values = self.head, self.values
        if not values or _CONTENT_ID not in head.names:
            return head.content_id
        return values[head.names.index(_CONTENT_ID)].decode("ascii")


class _Form:
    """The bytes of the two heads of a part, cut into constants and values.

    Args:
        text: the heads.
        values: the name of each value, and where it is in the text.
        head: what they mean.
    """

    __slots__ = ("_first", "_steps", "head")

    def __init__(self, text: bytes, values: Sequence[tuple[str, int, int]], head: Head) -> None:
        ends = [*(start for _, start, _ in values), len(text)]
        self._first = text[: ends[0]]
        self._steps = [
            (text[start : start + 1], text[start:end], _IN_KEYS if name == KEY else _VISIBLE)
            for (name, _, start), end in zip(values, ends[1:], strict=True)
        ]
        """For each value the byte that ends it, the constant behind it, and what it may have."""
        self.head = head

    def cut(self, content: bytes) -> tuple[tuple[bytes, ...], int] | None:
        """Return the values of a part of this form, and where its body begins; None if it has another form."""
        if not content.startswith(self._first):
            return None
        at, values = len(self._first), []
        for last, constant, allowed in self._steps:
            end = content.find(last, at, at + _VALUE_BYTES_MAX)
            value = content[at:end]
            if not content.startswith(constant, end) or value.translate(None, allowed):
                return None
            if not value and allowed is _VISIBLE:
                return None  # An empty Content-ID is none.
            values.append(value)
            at = end + len(constant)
        return tuple(values), at


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


def _read_part(content: bytes, forms: list[_Form], keyed: re.Pattern[bytes]) -> Part:
    """Read one part; `forms` are those of earlier parts. See `read_batch`."""
    for form in forms:
        cut = form.cut(content)
        if cut is not None:
            values, body = cut
            return Part(form.head, content[body:].strip(), values)
    _, request = _cut_head(content)
    text, body = _cut_head(content, request)
    head = _read_head(text)
    usual = _USUAL_HEADS.match(content, 0, _USUAL_BYTES_MAX) if len(forms) < _FORMS_MAX else None
    learned = None if usual is None else _form_of(usual, head, keyed)
    if learned is not None:
        forms.append(learned)
        head = learned.head
    return Part(head, content[body:].strip())


def _form_of(heads: re.Match[bytes], head: Head, keyed: re.Pattern[bytes]) -> _Form | None:
    """Return the form of two heads, the second of which was read; None if a field comes twice."""
    text, request = heads[0], heads.start(1)
    values = [
        (field[1].decode("ascii").lower() if field.start() > request else "", field.start(2), field.end(2))
        for field in _VALUES.finditer(text)
    ]
    key, url = keyed.fullmatch(heads[2]), heads.start(2)
    if key is not None:
        values.append((KEY, url + key.start(1), url + key.end(1)))
        values.sort(key=lambda value: value[1])
    names = tuple([name for name, _, _ in values])
    if len(set(filter(None, names))) < len(list(filter(None, names))):
        return None
    if any(name in head.headers and head.headers[name] != text[start:end].decode() for name, start, end in values):
        return None  # The field comes again, with a value that no form has.
    return _Form(text, values, replace(head, names=names, key_ends=(0, 0) if key is None else key.span(1)))


def _read_head(text: str) -> Head:
    line, _, fields = text.lstrip().partition("\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise _malformed()
    headers = _read_headers(fields)
    return Head(match[1].upper(), match[2], headers, _echoed(headers))


def _echoed(headers: Mapping[str, str]) -> str | None:
    """Return the Content-ID of a head, if it may stand in a response."""
    content_id = headers.get(_CONTENT_ID, "")
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


def read_batch(content_type: str, body: bytes, keyed: re.Pattern[bytes]) -> Steps[BatchBody]:
    """Take a batch apart, a few parts in a step.

    Args:
        content_type: the header of the outer request.
        body: of the outer request; its size was bounded before.
        keyed: a URL of a part with a key, which stands for itself: its first group, which a quote follows.

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
    forms: list[_Form] = []
    parts: list[Part] = []
    for content in outer if inner is None else (yield from _split(outer[0], inner)):
        if len(content) > _SHORT_BYTES_MAX or not len(parts) % _SHORT_PARTS_OF_A_STEP:
            yield
        parts.append(_read_part(content, forms, keyed))
    return BatchBody(parts, in_change_set=inner is not None)


def _inner_boundary(content: bytes) -> str | None:
    head, _ = _cut_head(content)
    return boundary_of(_read_headers(head).get("content-type", ""))


def encode_part(response: Response, content_id: str | None) -> bytes:
    """Return one response without content as `application/http`, after the blank line that ends its part's head."""
    return part_head(response, content_id) + response.body + PART_END


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
    opening = f"--{batch}\r\n{_PART_HEAD}".encode("ascii") + part_head(answer, content_id)
    closing = PART_END + f"--{batch}--\r\n".encode("ascii")
    response = _accepted(batch)
    if answer.content is not None:
        response.content = EnclosedContent(opening, answer.content, closing)
    else:
        response.body = b"".join((opening, answer.body, closing))
    return response


def part_head(response: Response, content_id: str | None) -> bytes:
    """Return the head of a response as it stands in a part, with the blank line that ends it."""
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
