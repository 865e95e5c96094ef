"""The short way to read a request that came in one piece and is usual in every respect.

Invariants: this reader knows a part of the grammar that llhttp and `head` accept, and reads that part as they do. It
leaves everything else to them, from the first byte (`read` returns None), and rejects nothing. It caches lines that
clients repeat, never a credential, and none of a request that it leaves to them.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from lazulite.protocol.fields import CHANGING, Fields, lower_name
from lazulite.protocol.message import Request
from lazulite.server.http.head import is_known_host
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
_changing = {form.encode(): name for name in CHANGING for form in (name, name.title(), name.capitalize())}
"""Names of changing fields as clients write them."""


def _read_field(line: bytes) -> tuple[str, str] | None:
    """Return name and value of a field that is not cached; None if it is not for this reader."""
    raw_name, separator, raw_value = line.partition(b": ")
    changing = _changing.get(raw_name)
    if changing is not None and separator and raw_value.isascii():
        text = raw_value.decode("ascii")
        if text.isprintable():
            return changing, text.strip(" ")
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


class WholeReader:
    """Of one connection.

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

    def read(self, data: bytes) -> PendingRequest | None:
        """Return the request that `data` is from its first byte to its last; None if it is not for this reader."""
        line = _REQUEST_LINE.match(data)
        if line is None or len(data) > self._bytes_max or self._new_request is None:
            return None
        end = data.find(b"\r\n\r\n", line.end() - 2)
        headers = self._read_fields(data[line.end() : end]) if end > 0 else None
        if headers is None:
            return None
        method, path, query = line.groups(b"")
        body = data[end + 4 :]
        length = headers.get("content-length")
        if length is None:
            if body or method in _WITH_BODY:
                return None
        elif method not in _WITH_BODY or _LENGTH.fullmatch(length) is None or int(length) != len(body):
            return None
        request = self._new_request(_METHODS[method], headers)
        request.path, request.query = path.decode("ascii"), query.decode("ascii")
        pending = PendingRequest(request, bytes_max=self._body_bytes_max, length=len(body), served=True)
        if body:
            pending.receive(body)
        pending.complete = True
        return pending

    def close(self) -> None:
        """Let go of the connection, which refers to this object."""
        self._new_request = None

    def _read_fields(self, block: bytes) -> Fields | None:
        if block.count(b"\r\n") >= self._fields_max:
            return None
        lines = block.split(b"\r\n")
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
        # A field that came again is joined or rejected by the long way.
        if len(headers) < len(lines) or not is_known_host(headers.get("host")):
            return None
        if new:
            _cache(new)
        headers.steady = tuple(steady)
        return headers
