"""Bytes in, requests out: llhttp with this server's bounds and rules around it. No I/O.

Invariants: requests enter the queue in the order of the wire, each as soon as its head is read; what is kept of a
connection's input is bounded whatever the input and however it is cut; after `stopped` no byte is looked at again.
"""

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum, auto

from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser

from lazulite.protocol.errors import ServiceError, TlsOnPlainPortError
from lazulite.protocol.fields import join_values, lower_name
from lazulite.protocol.message import Request
from lazulite.server.http.head import SINGLE_FIELDS, HeadError, read_head
from lazulite.server.http.pending_request import FIELD_BYTES, FRAGMENT_BYTES, PendingRequest
from lazulite.server.limits import Limits

_NAMES_MAX = 1024
_LENGTH_MAX = 64

_CHUNK_OVERHEAD_RATIO = 16
"""Bytes of chunk framing that one body byte may cost; a chunk of one byte costs five."""

_LINE_OVERHEAD_BYTES = 1024
"""Allowance for what a head holds besides target and fields: method, version, line ends."""

_CONNECTION = frozenset({"connection", "proxy-connection"})
"""Where llhttp reads whether a connection is to be kept alive."""

_TLS_HANDSHAKE = b"\x16\x03"
"""The first bytes of a TLS handshake: the type of the record, and the first half of the version."""


class _FieldNames(dict[bytes, str]):
    """Names in lower case by their bytes."""

    def __missing__(self, name: bytes) -> str:
        lower = lower_name(name.decode("latin-1"))
        if len(self) < _NAMES_MAX and len(name) < _LENGTH_MAX:
            self[name] = lower
        return lower


field_name = _FieldNames()
"""Maps the bytes of any name; keeps the first ones that are short."""


class Reading(Enum):
    """What is being read."""

    __hash__ = object.__hash__  # Enum's own is Python code, and each request looks one up.

    NOTHING = auto()
    """A message has ended, and no byte of another has come."""
    HEAD = auto()
    BODY = auto()


_NOTHING, _HEAD, _BODY = Reading


def _meaning(cause: BaseException | None) -> ServiceError:
    """Return what to answer when reading stopped; `cause` is what one of our own callbacks raised, if it was that."""
    if isinstance(cause, HeadError):
        return cause.error
    return ServiceError("ServerBusy" if isinstance(cause, MemoryError) else "InvalidInput")


def _too_large() -> ServiceError:
    return ServiceError("InvalidHeaderValue", status=431)


def _no_more(_: str, __: Mapping[str, str]) -> Request:
    raise AssertionError("a request after the end")


class RequestParser:
    """The reading half of one connection.

    Args:
        queue: where requests go, oldest first.
        new_request: takes method and headers to the `Request` that the rest of a head fills in; it already has id,
            client and scheme.
    """

    def __init__(
        self,
        limits: Limits,
        queue: deque[PendingRequest],
        new_request: Callable[[str, Mapping[str, str]], Request],
    ) -> None:
        self._limits = limits
        self._queue = queue
        self._new_request = new_request
        self._llhttp: HttpRequestParser | None = HttpRequestParser(self)
        self.incoming: PendingRequest | None = None
        """The request whose body is being read."""
        self._replaying = False
        self._raw_bytes = 0
        """The bytes of a message that is not complete, but those that came in one slice with the end of another."""
        self._slice_bytes = 0
        self._begun_in_bytes = 0
        """The bytes of the slice in which the head began behind another message; its own are not in `_raw_bytes`."""
        self._url = b""
        self._headers: dict[str, str] = {}
        self._repeated: list[str] = []
        """Names of fields that came again."""
        self._names_max = limits.header_count
        """How many names there may be beside those."""
        self._trailer_count = 0
        self.fragment_count = 0
        """Parts of bodies shorter than `FRAGMENT_BYTES`, of rejected ones too, since the caller last set this to 0."""
        self.stopped = False
        """The input has ended: by its last request, by an error, or by `close`."""
        self.reading = _NOTHING
        """What is being read; a body perhaps in vain."""
        self.is_between = True
        """Whether all that came so far was whole messages, and another may come."""
        self.message_count = 0
        """Heads begun so far."""

    def feed(self, data: bytes | memoryview) -> None:
        """Read on. Errors become requests with an `error` in the queue."""
        llhttp, incoming = self._llhttp, self.incoming
        if self.stopped or llhttp is None:
            return
        self._slice_bytes = len(data)
        self._raw_bytes += self._slice_bytes
        upgrade_at = None
        try:
            llhttp.feed_data(data)
        except HttpParserUpgrade as upgrade:
            upgrade_at = upgrade.args[0]
        except HttpParserInvalidMethodError:
            is_tls = self.message_count <= 1 and bytes(data[:2]) == _TLS_HANDSHAKE
            self._fail(TlsOnPlainPortError() if is_tls else ServiceError("InvalidHttpVerb"))
        except HttpParserError as error:
            self._fail(_meaning(error.__context__))
        else:
            if self._raw_bytes and self.incoming is incoming:
                self._check_raw(incoming)
        if upgrade_at is not None:
            # Not in the `except` above: there, an error further on would have the upgrade for its context.
            self._decline_upgrade(data[upgrade_at:])
        self.is_between = self.reading is _NOTHING and not self._raw_bytes and not self.stopped

    def close(self) -> None:
        """Stop, and let go of what is held: llhttp and the connection refer back to this object."""
        self.stopped = True
        self.is_between = False
        self.reading = _NOTHING
        self.incoming = None
        self._headers = {}
        self._repeated = []
        self._url = b""
        self._llhttp = None
        self._new_request = _no_more

    def discard(self) -> None:
        """Drop what has come of the body that is being read, and what comes."""
        if self.incoming is not None:
            self.incoming.discard()

    @property
    def head_bytes(self) -> int:
        """Memory that the head takes which is being read, roughly."""
        if self.reading is not _HEAD:
            return 0
        return self._raw_bytes + self._begun_in_bytes + len(self._headers) * FIELD_BYTES

    def _fail(self, error: ServiceError) -> None:
        if not self.stopped:
            incoming = self.incoming
            if incoming is None:
                incoming = PendingRequest(self._new_request("", {}))
                self._queue.append(incoming)
            incoming.reject(error, close=True)
        self.close()

    def _join(self, name: str, value: str) -> str:
        """Return the value of a field that came again together with what came before."""
        self._repeated.append(name)
        self._names_max -= 1
        return join_values(self._headers[name], value)

    def _check_fields(self) -> None:
        """Reject fields that came again and must not, and too long ones, as they came over the wire.

        Blanks behind a value are not counted; `_check_raw` bounds them.
        """
        headers, repeated, limits = self._headers, self._repeated, self._limits
        self._repeated, self._names_max = [], limits.header_count
        for name in repeated:
            if name in SINGLE_FIELDS:
                raise HeadError(ServiceError(SINGLE_FIELDS[name]))
        bytes_count = sum(len(name) + len(value) + 4 for name, value in headers.items())
        bytes_count += sum(len(name) + 2 for name in repeated)  # The comma and the blank are among the values.
        if bytes_count > limits.headers_bytes:
            raise HeadError(_too_large())

    def _check_raw(self, incoming: PendingRequest | None) -> None:
        """Bound what llhttp holds back or skips without telling: unfinished header fields, chunk extensions."""
        limits = self._limits
        if incoming is None:
            if self._raw_bytes > limits.url_bytes + limits.headers_bytes + _LINE_OVERHEAD_BYTES:
                self._fail(_too_large())
        elif self._raw_bytes > incoming.received_bytes * _CHUNK_OVERHEAD_RATIO + limits.headers_bytes:
            self._fail(_too_large())

    def _decline_upgrade(self, rest: bytes | memoryview) -> None:
        """Go on as if no upgrade had been asked for (RFC 9110 section 7.8 allows that).

        llhttp takes what follows such a head for another protocol, the body included; a new parser gets the body
        by a head of our own.
        """
        self._llhttp = llhttp = HttpRequestParser(self)
        incoming = self.incoming
        if incoming is not None:
            framing = (
                b"Transfer-Encoding: chunked" if incoming.length is None else b"Content-Length: %d" % incoming.length
            )
            self._replaying = True
            llhttp.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n\r\n")
            self._replaying = False
            self._trailer_count = 0
        if rest:
            self.feed(rest)

    # What llhttp calls, in the order of the wire.

    def on_message_begin(self) -> None:
        """See llhttp: the first byte of a request line."""
        if self._replaying:
            return
        self.reading = _HEAD
        self.message_count += 1
        self._begun_in_bytes = 0 if self._raw_bytes else self._slice_bytes

    def on_url(self, part: bytes) -> None:
        """See llhttp: the request target or a part of it."""
        if self._replaying:
            return
        self._url = url = self._url + part if self._url else part
        if len(url) > self._limits.url_bytes:
            raise HeadError(ServiceError("InvalidUri", status=414))

    def on_header(self, name: bytes, value: bytes) -> None:
        """See llhttp: a header field or, after the body has begun, a trailer field, which is dropped."""
        if self.incoming is not None:
            self._trailer_count += 1
            if self._trailer_count > self._limits.header_count:
                raise HeadError(_too_large())
            return
        headers = self._headers
        lower = field_name[name]
        text = value.decode("latin-1").strip(" \t")
        headers[lower] = self._join(lower, text) if lower in headers else text
        if len(headers) > self._names_max:
            raise HeadError(_too_large())

    def on_headers_complete(self) -> None:
        """See llhttp: the empty line after the head."""
        if self._replaying:
            return
        llhttp = self._llhttp
        assert llhttp is not None
        headers = self._headers
        request = self._new_request(llhttp.get_method().decode("ascii"), headers)
        keep_alive = llhttp.should_keep_alive()
        self.incoming = incoming = PendingRequest(request, keep_alive, bytes_max=self._limits.body_bytes)
        self._queue.append(incoming)
        self.reading = _BODY
        bytes_max = self._raw_bytes + self._begun_in_bytes
        if self._repeated or bytes_max > self._limits.headers_bytes:
            request.headers = {}  # What is rejected here is rejected by nothing that they say.
            self._check_fields()
            request.headers = headers
        self._headers = {}
        url, self._url = self._url, b""
        # Only since 1.1 a connection is kept alive unless the client says otherwise (RFC 9112 section 9.3).
        is_1_1 = keep_alive and _CONNECTION.isdisjoint(headers)
        version = "1.1" if is_1_1 else llhttp.get_http_version()
        read_head(incoming, url.decode("latin-1"), version, self._limits)
        incoming.served = incoming.error is None
        self._raw_bytes = 0

    def on_body(self, part: bytes) -> None:
        """See llhttp: a part of the body, chunk framing removed."""
        incoming = self.incoming
        assert incoming is not None
        if len(part) < FRAGMENT_BYTES:
            self.fragment_count += 1
        incoming.receive(part)
        if incoming.discarded_bytes > self._limits.discarded_bytes:
            raise HeadError(ServiceError("RequestBodyTooLarge"))

    def on_message_complete(self) -> None:
        """See llhttp: the end of the body, or of the head when there is none."""
        incoming, llhttp = self.incoming, self._llhttp
        assert incoming is not None
        assert llhttp is not None
        if incoming.length != 0:
            if llhttp.should_upgrade():
                return  # The body is still to come: see `_decline_upgrade`.
            self._trailer_count = 0
        incoming.end()
        self.incoming = None
        self.reading = _NOTHING
        self._raw_bytes = 0
        self.stopped = not incoming.keep_alive
