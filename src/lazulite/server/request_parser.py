"""Bytes in, requests out: llhttp with this server's bounds and rules around it. No I/O.

Invariants: requests enter the queue in the order of the wire, each as soon as its head is read; what is kept of a
connection's input is bounded whatever the input and however it is cut; after `stopped` no byte is looked at again.
"""

from collections import deque
from collections.abc import Callable

from httptools import HttpParserError, HttpParserInvalidMethodError, HttpParserUpgrade, HttpRequestParser

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.server.incoming import Incoming
from lazulite.server.limits import Limits
from lazulite.server.request_head import SINGLE_FIELDS, HeadError, read_head

_CHUNK_OVERHEAD_RATIO = 16
"""Bytes of chunk framing that one body byte may cost; a chunk of one byte costs five."""

_LINE_OVERHEAD_BYTES = 1024
"""Allowance for what a head holds besides target and fields: method, version, line ends."""

_CRUMB_BYTES = 256
"""Shorter parts of a body are put together as they come: an object for each would take a multiple of their bytes."""

_names: dict[bytes, str] = {}
_NAMES_MAX = 1024


def _lower_name(name: bytes) -> str:
    lower = name.decode("latin-1").lower()
    if len(_names) < _NAMES_MAX and len(name) < 64:
        _names[name] = lower
    return lower


def _meaning(cause: BaseException | None) -> ServiceError:
    """Return what to answer when reading stopped; `cause` is what one of our own callbacks raised, if it was that."""
    if isinstance(cause, HeadError):
        return cause.error
    return ServiceError("ServerBusy" if isinstance(cause, MemoryError) else "InvalidInput")


def _no_more() -> Request:
    raise AssertionError("a request after the end")


class RequestParser:
    """The reading half of one connection.

    Args:
        queue: where requests go, oldest first.
        new_request: makes the `Request` that a head fills in; it already has id, client and scheme.
        reserve: asked for room before bytes of a body are kept.
    """

    def __init__(
        self,
        limits: Limits,
        queue: deque[Incoming],
        new_request: Callable[[], Request],
        reserve: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._limits = limits
        self._reserve = reserve
        self._queue = queue
        self._new_request = new_request
        self._llhttp: HttpRequestParser | None = HttpRequestParser(self)
        self._incoming: Incoming | None = None
        self._replaying = False
        self._raw_bytes = 0
        self._url = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._body: list[bytes | bytearray] = []
        self.crumb_count = 0
        """Parts of bodies shorter than `_CRUMB_BYTES`, of refused ones too, since somebody set this to 0."""
        self.stopped = False
        """The input has ended: by its last request, by an error, or by `close`."""
        self.head_begun = False
        """A head is being read."""
        self.message_count = 0
        """Heads begun so far."""

    @property
    def in_body(self) -> bool:
        """Whether a body is being read (perhaps a refused one)."""
        return self._incoming is not None

    def feed(self, data: bytes | memoryview) -> None:
        """Read on. Errors become requests with an `error` in the queue."""
        if self.stopped:
            return
        llhttp, incoming = self._llhttp, self._incoming
        assert llhttp is not None
        self._raw_bytes += len(data)
        upgrade_at = None
        try:
            llhttp.feed_data(data)
        except HttpParserUpgrade as upgrade:
            upgrade_at = upgrade.args[0]
        except HttpParserInvalidMethodError:
            self._fail(ServiceError("InvalidHttpVerb"))
        except HttpParserError as error:
            self._fail(_meaning(error.__context__))
        else:
            if self._incoming is incoming:
                self._check_raw(incoming)
        if upgrade_at is not None:
            # Not in the `except` above: there, an error further on would have the upgrade for its context.
            self._decline_upgrade(data[upgrade_at:])

    def close(self) -> None:
        """Stop, and let go of what is held: llhttp and the connection refer back to this object."""
        self.stopped = True
        self.head_begun = False
        self._incoming = None
        self._body = []
        self._fields = []
        self._url = b""
        self._llhttp = None
        self._new_request = _no_more

    def _fail(self, error: ServiceError) -> None:
        if not self.stopped:
            incoming = self._incoming
            if incoming is None:
                incoming = Incoming(self._new_request())
                self._queue.append(incoming)
            incoming.refuse(error, close=True)
        self.close()

    def _read_fields(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        bytes_count = 0
        for raw_name, raw_value in self._fields:
            bytes_count += len(raw_name) + len(raw_value) + 4
            name = _names.get(raw_name) or _lower_name(raw_name)
            value = raw_value.decode("latin-1").strip(" \t")
            if name in headers:
                if name in SINGLE_FIELDS:
                    raise HeadError(ServiceError(SINGLE_FIELDS[name]))
                value = f"{headers[name]}, {value}"
            headers[name] = value
        self._fields = []
        if bytes_count > self._limits.headers_bytes:
            raise HeadError(ServiceError("InvalidHeaderValue", status=431))
        return headers

    def _check_raw(self, incoming: Incoming | None) -> None:
        """Bound what llhttp holds back or skips without telling: unfinished header fields, chunk extensions."""
        limits = self._limits
        if incoming is None:
            if self._raw_bytes > limits.url_bytes + limits.headers_bytes + _LINE_OVERHEAD_BYTES:
                self._fail(ServiceError("InvalidHeaderValue", status=431))
        elif self._raw_bytes > incoming.received_bytes * _CHUNK_OVERHEAD_RATIO + limits.headers_bytes:
            self._fail(ServiceError("InvalidHeaderValue", status=431))

    def _decline_upgrade(self, rest: bytes | memoryview) -> None:
        """Go on as if no upgrade had been asked for (RFC 9110 section 7.8 allows that).

        llhttp takes what follows such a head for another protocol, the body included; a new parser is told of the body
        by a head of our own.
        """
        self._llhttp = llhttp = HttpRequestParser(self)
        incoming = self._incoming
        if incoming is not None:
            framing = (
                b"Transfer-Encoding: chunked" if incoming.length is None else b"Content-Length: %d" % incoming.length
            )
            self._replaying = True
            llhttp.feed_data(b"POST / HTTP/1.1\r\n" + framing + b"\r\n\r\n")
            self._replaying = False
            self._fields = []
        if rest:
            self.feed(rest)

    # What llhttp calls, in the order of the wire.

    def on_message_begin(self) -> None:
        """See llhttp: the first byte of a request line."""
        if self._replaying:
            return
        self.head_begun = True
        self.message_count += 1
        self._url = b""
        self._fields = []

    def on_url(self, part: bytes) -> None:
        """See llhttp: the request target or a part of it."""
        if self._replaying:
            return
        self._url = url = self._url + part if self._url else part
        if len(url) > self._limits.url_bytes:
            raise HeadError(ServiceError("InvalidUri", status=414))

    def on_header(self, name: bytes, value: bytes) -> None:
        """See llhttp: a header field or, after the body has begun, a trailer field, which is dropped."""
        fields = self._fields
        fields.append((name, value))
        if len(fields) > self._limits.header_count:
            raise HeadError(ServiceError("InvalidHeaderValue", status=431))

    def on_headers_complete(self) -> None:
        """See llhttp: the empty line after the head."""
        if self._replaying:
            return
        llhttp = self._llhttp
        assert llhttp is not None
        request = self._new_request()
        request.method = llhttp.get_method().decode("ascii")
        incoming = Incoming(request, llhttp.should_keep_alive())
        self._incoming = incoming
        self._queue.append(incoming)
        self.head_begun = False
        request.headers = self._read_fields()
        url, self._url = self._url, b""
        read_head(incoming, url.decode("latin-1"), llhttp.get_http_version(), self._limits)
        self._raw_bytes = 0

    def on_body(self, part: bytes) -> None:
        """See llhttp: a part of the body, chunk framing removed."""
        incoming = self._incoming
        assert incoming is not None
        if len(part) < _CRUMB_BYTES:
            self.crumb_count += 1
        incoming.received_bytes += len(part)
        if incoming.error is None:
            if incoming.received_bytes > self._limits.body_bytes:
                incoming.refuse(ServiceError("RequestBodyTooLarge"), close=False)
            elif self._reserve(len(part)):
                incoming.reserved_bytes += len(part)
                self._keep(part)
                return
            else:
                incoming.refuse(ServiceError("ServerBusy"), close=False)
            self._body = []
        if incoming.received_bytes > self._limits.discarded_bytes:
            raise HeadError(ServiceError("RequestBodyTooLarge"))

    def _keep(self, part: bytes) -> None:
        body = self._body
        if len(part) >= _CRUMB_BYTES or not body:
            body.append(part)
            return
        last = body[-1]
        if isinstance(last, bytearray):
            last += part
        else:
            body.append(bytearray(part))

    def on_message_complete(self) -> None:
        """See llhttp: the end of the body, or of the head when there is none."""
        incoming = self._incoming
        assert incoming is not None
        assert self._llhttp is not None
        if incoming.length != 0 and self._llhttp.should_upgrade():
            return  # The body is still to come: see `_decline_upgrade`.
        body = self._body
        if body:
            incoming.request.body = b"".join(body)
            self._body = []
        incoming.complete = True
        self._incoming = None
        self._raw_bytes = 0
        self.stopped = not incoming.keep_alive
