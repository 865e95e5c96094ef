r"""Templates of heads: what a client repeats byte for byte, and where its values are. No I/O.

    GET /acct/orders(PartitionKey='p',RowKey='r')?sv=… HTTP/1.1↵ … x-ms-date: Mon, 01 Jan 2031 00:00:00 GMT↵ … ↵↵
    start ─────────┘              key ┘    key ┘   tail: constants and values in turn ┘

The *start* and the keys are found by a pattern of the service; the keys have any length. The *tail* goes on to the end
of the head. Its *layout* says where its values are; two tails with one layout have one length.

Invariants:
- a start and the constants of a tail say everything about a request but its values: the method, the path up to the
  keys, the query string, all other fields, and the name of each field that has a value;
- a value has no line end: it is compared with what has none, or looked at (`is_plain`). So the head that is cut is the
  head that llhttp would read;
- a template answers with success, or not at all. Whatever it does not answer goes the usual way, from its first byte,
  which alone rejects.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import unquote_to_bytes

from lazulite.protocol.fields import CHANGING
from lazulite.protocol.message import Request, RequestRecord

HeadValues: TypeAlias = tuple[bytes, ...]
"""The keys of a head, and behind them the values of its tail, in the order of the head."""
Constants: TypeAlias = tuple[bytes, ...]
StartPattern: TypeAlias = re.Pattern[bytes]
"""Matches a request line from its method to its keys, or further. The first group is the start, the others are the
keys; the start tells how they are written."""
Layout: TypeAlias = Callable[[bytes], tuple[bytes, ...]]
"""Cuts tails of one length into constants and values, in turn."""

TAIL_BYTES_MAX: Final = 4096
PLAIN_START: Final = re.compile(rb"([A-Z]{3,7} /[A-Za-z0-9._~$/-]*+)(?=[? ])")
"""The start of a request without keys."""
KEY = "key"
"""In place of the name of a field: the name of each key."""
BARRED: Final = frozenset({"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"})
"""Fields with which a head has no template: of a proxy's, a middleware makes another request."""

END_OF_HEAD: Final = b"\r\n\r\n"
_MARK = re.compile(r"([\0\1])(\d+)\1")
match_plain: Final = re.compile(rb"(?:[!-~](?:[ -~]*[!-~])?)?").fullmatch
"""As `is_plain`, without a call of a function more for each value."""


def is_plain(value: bytes) -> bool:
    """Return whether a field may have this value, and has it without blanks around it: printable ASCII."""
    return match_plain(value) is not None


class Miss(Enum):
    """Why a template did not answer."""

    UNKNOWN = "unknown"
    """There is none for the start and the constants of the head."""
    VALUES = "values"
    """A value is not of the usual form."""
    CREDENTIALS = "credentials"
    """The account, or what came as its credentials, is not good now."""
    RULES = "rules"
    """The account has CORS rules, or its rules are not known at once."""
    WATCHED = "watched"
    """A watcher did not let it pass."""
    OPERATION = "operation"
    """The operation has no success at once, such as a missing row or a store that cannot serve."""
    FAILED = "failed"
    """It raised what no code expected."""
    BUSY = "busy"
    """Its connection was not at rest, so none was looked for; or the server stops."""


class Answer(NamedTuple):
    """A success: the status, the first fields of the response as lines on the wire, and the body."""

    status: int
    opening: str
    body: bytes = b""
    rows: int | None = None
    """The rows that were read and returned, for logs; None: as many as the request had that the template is made of."""


class PendingAnswer(Protocol):
    """Gets the outcome of a request whose answer was not ready, once."""

    def answer(self, answer: Answer) -> None:
        """Send an answer."""
        ...

    def fail(self, failure: BaseException) -> None:
        """Send the rejection of a request that has failed after all, as when the store could not make it durable."""
        ...


class Watcher(Protocol):
    """Looks at the requests that templates answer: a gate before, an observer behind."""

    def admits(self, values: HeadValues) -> bool:
        """Return whether the template may answer. If not, the request goes the usual way."""
        ...

    def answered(self, values: HeadValues, answer: Answer) -> None:
        """Note an answer."""
        ...


class Template(Protocol):
    """Answers requests by the values of their heads."""

    @property
    def method(self) -> str:
        """The method."""
        ...

    @property
    def record(self) -> RequestRecord:
        """The facts of each answered request, for logs."""
        ...

    @property
    def marked(self) -> Request:
        """A request that it answers, with a mark in place of each value (`marked_request`)."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each value is: `KEY`, or the name of a field in lower case."""
        ...

    @property
    def waits(self) -> bool:
        """Whether an answer may come later."""
        ...

    def begin(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        """Return the answer to a request, or why it has to go the usual way; None: `later` gets the outcome.

        Args:
            values: of its head.
            body: whole.
            later: None only if the template never waits.
        """
        ...

    def missing_bytes(self, values: HeadValues, body: bytes) -> int:
        """Return how many bytes of the body are to come, by the Content-Length among the values; 0 if none tells."""
        ...

    def head_of(self, answer: Answer, values: HeadValues, request_id: str) -> bytes:
        """Return the head of the response that carries an answer."""
        ...


class TemplateSource(Protocol):
    """What has answered a request, and may answer further ones: makes templates."""

    @property
    def patterns(self) -> Sequence[StartPattern]:
        """The starts of heads."""
        ...

    @property
    def varying(self) -> frozenset[str]:
        """The fields that may differ, in lower case, beside `CHANGING`."""
        ...

    def template(self, head: "CutHead", request: Request) -> Template | None:
        """Return the template of a request that succeeded, given its head; None if it can have none."""
        ...


class CutHead(NamedTuple):
    """A head, cut."""

    pattern: StartPattern
    start: bytes
    names: tuple[str, ...]
    """The names of the values: `KEY` for each key, and names of fields in lower case."""
    constants: Constants
    length: int
    """The bytes of the tail."""
    layout: Layout
    line: bytes
    """The part of the head that the pattern matched, its keys replaced by marks."""
    query: bytes
    """What the tail has of the query string, with the question mark."""


def cut(head: bytes, patterns: Iterable[StartPattern], varying: frozenset[str]) -> CutHead | None:
    """Cut a head that the service has answered.

    Args:
        head: to the empty line at its end.
        patterns: of the service; the first that matches counts.
        varying: the fields whose values the plan leaves to each request, in lower case, beside `CHANGING`.
    """
    found = next(filter(None, (pattern.match(head) for pattern in patterns)), None)
    if found is None or len(head) - found.end() > TAIL_BYTES_MAX:
        return None
    tail = head[found.end() :]
    names, lengths, at = [KEY] * (len(found.groups()) - 1), [], 0
    for field in _values(varying).finditer(tail):
        name = field[1].decode("ascii").lower()
        if name in BARRED or not is_plain(field[2]):
            return None
        if name == "content-length" and field[2] == b"0":
            continue  # Some signatures have it in another form, so it is a constant.
        names.append(name)
        lengths += [field.start(2) - at, len(field[2])]
        at = field.end(2)
    layout = _layout((*lengths, len(tail) - at))
    query = tail.partition(b" ")[0]
    return CutHead(found.re, found[1], tuple(names), layout(tail)[::2], len(tail), layout, _marked(found), query)


def _marked(found: re.Match[bytes]) -> bytes:
    """Return the match with a mark in place of each key."""
    line, at = b"", 0
    for group in range(2, len(found.groups()) + 1):
        line += found.string[at : found.start(group)] + mark(group - 2).encode()
        at = found.end(group)
    return line + found.string[at : found.end()]


@lru_cache(maxsize=64)
def _values(varying: frozenset[str]) -> re.Pattern[bytes]:
    """Return what finds the fields of a tail that have values, and those with which it has no template."""
    names = "|".join(sorted(map(re.escape, CHANGING | varying | BARRED)))
    return re.compile(rb"\r\n((?i:%b)): *+([ -~]*+)(?=\r\n)" % names.encode())


@lru_cache(maxsize=1024)
def _layout(lengths: tuple[int, ...]) -> Layout:
    return Struct("".join(f"{length}s" for length in lengths)).unpack


# Signatures.


_AS_SENT, _DECODED = "\0", "\1"


def mark(index: int) -> str:
    """Return what stands for a value in a text that `TextTemplate` cuts."""
    return f"{_AS_SENT}{index}{_AS_SENT}"


def as_sent(text: str) -> str:
    """Return a marked text whose marks stand for values as they were sent, such as a query for a log."""
    return text.replace(_DECODED, _AS_SENT)


def decoded(value: bytes) -> bytes | None:
    """Return a value of a query string, decoded; None if it is not plain then, or has a plus, which means a blank."""
    if b"%" not in value:
        return value
    text = unquote_to_bytes(value)
    return text if is_plain(text) and b"+" not in value else None


def marked_request(head: CutHead, request: Request) -> Request:
    """Return a request with a mark in place of each value of its head."""
    _, _, target = (head.line + head.query).decode("ascii").partition(" ")
    path, _, query = target.partition("?")
    query = query.replace(_AS_SENT, _DECODED)  # A signature covers the values of a query as they are decoded.
    headers = dict(request.headers)
    for index, name in enumerate(head.names):
        if name != KEY:
            headers[name] = mark(index)
    return Request(request.method, path, query, headers, scheme=request.scheme, client=request.client)


def _none(_: Sequence[bytes]) -> tuple[bytes, ...]:
    return ()


class TextTemplate:
    """A text of constants and values, such as one that is signed.

    Args:
        text: with marks in place of the values.
    """

    __slots__ = ("_chosen", "_decoded", "_form", "has_values")

    def __init__(self, text: str) -> None:
        parts = _MARK.split(text)
        self._form = b"%b".join(constant.encode("latin-1").replace(b"%", b"%%") for constant in parts[::3])
        indexes = tuple(map(int, parts[2::3]))
        self.has_values = bool(indexes)
        """Whether texts differ by their values."""
        self._chosen: Callable[[Sequence[bytes]], object] = itemgetter(*indexes) if indexes else _none
        """Returns the values of a head that the text has: one, or a tuple."""
        self._decoded = tuple(
            int(index) for kind, index in zip(parts[1::3], parts[2::3], strict=True) if kind == _DECODED
        )

    def of(self, values: Sequence[bytes]) -> bytes | None:
        """Return the text with these values; None if one of a query is not of the usual form (`decoded`)."""
        for index in self._decoded:
            text = decoded(values[index])
            if text is None:
                return None
            values = (*values[:index], text, *values[index + 1 :])
        return self._form % self._chosen(values)
