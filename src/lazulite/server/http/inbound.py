"""The reading half of a connection: what has come, and the requests in it.

Invariants:
- What is kept is bounded: one read of the transport that is not parsed yet, the requests that `Limits` lets wait, two
  slices of a body that the service has not accepted, and a window of one that it reads in chunks. Nothing is kept after
  `close`.
- `WholeMessageReader` knows a part of the grammar that llhttp and `head` accept, and reads that part as they do. It
  leaves everything else to them, from the first byte (`read` returns None), and rejects nothing. It caches lines that
  clients repeat, and heads of such lines, never a credential, and nothing of a head that it leaves to them.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, cast

from lazulite.protocol.fields import CHANGING, Fields, lower_name
from lazulite.protocol.message import Request
from lazulite.protocol.template import Miss
from lazulite.server.admission.accounts import BULK_BYTES, CostAccount
from lazulite.server.http.head import is_known_host
from lazulite.server.http.parser import RequestParser
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.limits import Limits

BYTES_MAX = 16 * 1024
"""Longer input is parsed in slices."""

_TARGET = rb"[A-Za-z0-9._~:/\[\]@!$&'()*+,;=%-]"
_REQUEST_LINE = re.compile(
    rb"(GET|HEAD|POST|PUT|DELETE|MERGE|PATCH) (/" + _TARGET + rb"*+)(?:\?((?:" + _TARGET + rb"|\?)*+))? HTTP/1\.1\r\n"
)
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++):[ \t]*+([ -~\t]*+)")
_LENGTH = re.compile(r"[0-9]{1,9}")
_METHODS = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "MERGE", "PATCH")}
_WITH_BODY = frozenset({b"POST", b"PUT", b"MERGE", b"PATCH"})
_UNUSUAL = frozenset({"transfer-encoding", "upgrade", "expect", "proxy-connection", "trailer", "te"})
"""Fields that tell how the message or the connection goes on."""


_CACHED_MAX = 1024
_CACHED_BYTES_MAX = 256
_NOT_CACHED = CHANGING | {"if-match", "if-none-match"}
_fields: dict[bytes, tuple[str, str]] = {}
"""Fields by their lines, of requests that this reader took."""

_HEADS_MAX = 256
_HEAD_BYTES_MAX = 4096
_HEAD_FIELDS_MAX = 32
_heads: dict[bytes, Fields] = {}
"""Heads of such requests without their unique fields, by the lines that are left; the lines but dates are cached."""
_UNIQUE = CHANGING - {"date", "x-ms-date"}
"""Fields that differ even among requests of one second."""
_UNIQUE_LINES = re.compile(rb"\r\n((?i:%b)): *+([ -~]*+)(?=\r\n)" % "|".join(sorted(_UNIQUE)).encode())

_SLICE_BYTES = 16 * 1024
"""Input is parsed in slices of this size, so that one read of many small requests cannot overrun the queue by much."""

_NOTHING = b""


def _read_field(line: bytes) -> tuple[str, str] | None:
    """Return name and value of a field that is not cached; None if it is not for this reader."""
    match = _FIELD.fullmatch(line)
    if match is None:
        return None
    name, value = lower_name(match[1].decode("ascii")), match[2].decode("ascii").rstrip(" \t")
    if name in _UNUSUAL or (name == "connection" and value.lower() != "keep-alive"):
        return None
    return name, value


def _cache(lines: Iterable[tuple[bytes, tuple[str, str]]]) -> None:
    for line, field in lines:
        if len(line) <= _CACHED_BYTES_MAX and field[0] not in _NOT_CACHED:
            if len(_fields) >= _CACHED_MAX:
                _fields.clear()
            _fields[line] = field


def _cache_head(lines: bytes, headers: Fields, unique_count: int) -> None:
    """Cache a head without its unique fields, given the lines that are left and how many unique ones were taken out."""
    head = Fields((name, value) for name, value in headers.items() if name not in _UNIQUE)
    if len(head) + unique_count != len(headers) or not all(line in _fields for line in headers.steady):
        return
    if len(lines) <= _HEAD_BYTES_MAX and len(head) <= _HEAD_FIELDS_MAX:
        if len(_heads) >= _HEADS_MAX:
            _heads.clear()
        head.steady = headers.steady
        _heads[lines] = head


class Head(NamedTuple):
    """A head that `WholeMessageReader` has read."""

    line: re.Match[bytes]
    headers: Fields
    end: int
    """Where the body begins."""


class WholeMessageReader:
    """Reads the whole messages of one connection.

    Args:
        limits: the bounds.
        new_request: as `RequestParser` has it.
    """

    __slots__ = ("_body_bytes_max", "_bytes_max", "_fields_max", "_new_request")

    def __init__(self, limits: Limits, new_request: Callable[[str, Mapping[str, str]], Request]) -> None:
        self._body_bytes_max = limits.body_bytes
        self._bytes_max = min(BYTES_MAX, limits.url_bytes, limits.headers_bytes, limits.body_bytes)
        self._fields_max = limits.header_count
        self._new_request: Callable[[str, Mapping[str, str]], Request] | None = new_request

    def read_head(self, data: bytes) -> Head | None:
        """Return the head that `data` begins with; None if it is not for this reader."""
        line = _REQUEST_LINE.match(data)
        if line is None or len(data) > self._bytes_max:
            return None
        end = data.find(b"\r\n\r\n", line.end() - 2)
        headers = self._read_fields(data[line.end() - 2 : end + 2]) if end > 0 else None
        return None if headers is None else Head(line, headers, end + 4)

    def read(self, data: bytes, head: Head) -> PendingRequest | None:
        """Return the request if `data`, which begins with `head`, is exactly one; else None."""
        method, path, query = head.line.groups(b"")
        headers, body = head.headers, data[head.end :]
        length = headers.get("content-length")
        if length is None:
            if body or method in _WITH_BODY:
                return None
        elif _LENGTH.fullmatch(length) is None or int(length) != len(body) or (body and method not in _WITH_BODY):
            return None
        if self._new_request is None:
            return None
        request = self._new_request(_METHODS[method], headers)
        request.path, request.query = path.decode("ascii"), query.decode("ascii")
        pending = PendingRequest(request, True, self._body_bytes_max, len(body), served=True)
        pending.head = data[: head.end]
        if body:
            pending.receive(body)
        pending.complete = True
        return pending

    def close(self) -> None:
        """Let go of the connection, which refers to this object."""
        self._new_request = None

    def _read_fields(self, block: bytes) -> Fields | None:
        """Return the fields of a block of lines, which begins with the end of the line before it."""
        head = _heads.get(block)
        if head is not None:
            return head if len(head) <= self._fields_max else None
        parts = _UNIQUE_LINES.split(block)
        lines = b"".join(parts[::3])
        head = _heads.get(lines)
        if head is None:
            headers = self._read_lines(block)
            if headers is not None:
                _cache_head(lines, headers, len(parts) // 3)
            return headers
        headers = Fields(head)
        headers.steady = head.steady
        for at in range(1, len(parts), 3):
            headers[parts[at].decode("ascii").lower()] = parts[at + 1].decode("ascii").rstrip(" ")
        count = len(head) + len(parts) // 3
        return headers if count == len(headers) <= self._fields_max else None

    def _read_lines(self, block: bytes) -> Fields | None:
        if block.count(b"\r\n") > self._fields_max + 1:
            return None
        lines = block[2:-2].split(b"\r\n")
        headers = Fields()
        steady: list[bytes] = []
        new: list[tuple[bytes, tuple[str, str]]] = []
        cached = _fields
        for line in lines:
            field = cached.get(line)
            if field is not None:
                steady.append(line)
            else:
                field = _read_field(line)
                if field is None:
                    return None
                if field[0] not in CHANGING:
                    steady.append(line)
                    new.append((line, field))
            headers[field[0]] = field[1]
        # A field that came again is joined or rejected by the whole parser.
        if len(headers) < len(lines) or not is_known_host(headers.get("host")):
            return None
        if new:
            _cache(new)
        headers.steady = tuple(steady)
        return headers


class InboundBuffer:
    """The input of one connection.

    Args:
        limits: the bounds.
        new_request: as `RequestParser` has it.
        account: the connection's cost; charged for bulk, and for bodies in small fragments.

    Attributes:
        queue: the requests that have begun to come and are not served yet, oldest first.
        parser: says what is being read.
        unread: what has come and is not parsed yet.
        missed: why no template has answered what has come.
    """

    __slots__ = ("_account", "_limits", "_whole", "missed", "parser", "queue", "unread")

    def __init__(
        self, limits: Limits, new_request: Callable[[str, Mapping[str, str]], Request], account: CostAccount
    ) -> None:
        self._limits = limits
        self._account = account
        self.unread: bytes | memoryview = _NOTHING
        self.queue: deque[PendingRequest] = deque()
        self.parser = RequestParser(limits, self.queue, new_request)
        self._whole = WholeMessageReader(limits, new_request)
        self.missed: Miss | None = Miss.BUSY

    def receive(self, data: bytes) -> None:
        """Keep what has come."""
        if len(data) >= BULK_BYTES:
            self._account.read(len(data))
        self.unread = bytes(self.unread) + data if self.unread else data

    def take(self) -> bytes:
        """Return what is not parsed yet, and keep it no more."""
        data, self.unread = bytes(self.unread), _NOTHING
        return data

    def read_on(self) -> bool:
        """Parse a slice of what has come; False if there is none, no room for it, or it is not accepted yet."""
        part, parser = self.unread, self.parser
        if not part or parser.stopped or (len(self.queue) > 1 and self._is_crowded()):
            return False
        head = None
        if not self.queue and parser.is_between and isinstance(part, bytes):
            head = self._whole.read_head(part)
            whole = None if head is None else self._whole.read(part, head)
            if whole is not None:
                self.unread = _NOTHING
                parser.message_count += 1
                self.queue.append(whole)
                return True
        coming = parser.incoming
        if coming is not None and (coming.is_held_back(_SLICE_BYTES) or coming.is_full):
            return False
        if len(part) > _SLICE_BYTES:
            part = memoryview(part)
            part, self.unread = part[:_SLICE_BYTES], part[_SLICE_BYTES:]
        else:
            self.unread = _NOTHING
        parser.feed(part)
        if head is not None and [parser.incoming] == [*self.queue]:
            # Its body is to come. Lines that repeat tell more than fields do.
            self.queue[0].request.headers, self.queue[0].head = head.headers, bytes(part[: head.end])
        if parser.fragment_count:
            self._account.charge_fragments(parser.fragment_count)
            parser.fragment_count = 0
        return True

    @property
    def has_room(self) -> bool:
        """Whether more may come."""
        return not self.unread and (len(self.queue) < 2 or not self._is_crowded())

    @property
    def unaccepted_bytes(self) -> int:
        """What is held of bodies that the service has not accepted, but for those of requests that were taken out."""
        coming = self.parser.incoming
        unread_bytes = 0 if coming is None or coming.is_welcome or coming.discards else self._unread_bytes
        return unread_bytes + sum(incoming.unaccepted_bytes for incoming in self.queue)

    @property
    def held_bytes(self) -> int:
        """Memory that all takes that has come, roughly; likewise."""
        heads_bytes = sum(incoming.head_bytes for incoming in self.queue) + self.parser.head_bytes
        return heads_bytes + max(self.unaccepted_bytes, self._unread_bytes)

    @property
    def _unread_bytes(self) -> int:
        """Memory of what is unread: a slice keeps all that it is cut from."""
        unread = self.unread
        return len(cast(bytes, unread.obj)) if isinstance(unread, memoryview) else len(unread)

    def read_again(self, data: bytes) -> PendingRequest | None:
        """Return a request that was answered by its template; None if nothing more is read."""
        head = self._whole.read_head(data)
        return None if head is None else self._whole.read(data, head)

    def end(self) -> None:
        """Nothing more comes: half a request gets no response."""
        self.parser.close()
        queue = self.queue
        while queue and not (queue[-1].complete or queue[-1].error):
            queue.pop()

    def close(self) -> None:
        """Drop all that has come."""
        self.queue.clear()
        self.unread = _NOTHING
        self._whole.close()
        self.parser.close()

    def _is_crowded(self) -> bool:
        """Say whether several requests are too many; one may always come."""
        queue, limits = self.queue, self._limits
        return len(queue) >= limits.pipelined_requests or sum(i.received_bytes for i in queue) > limits.body_bytes
