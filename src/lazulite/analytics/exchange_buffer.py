"""Exchanges as the request path leaves them: one tuple for each, in a bounded buffer.

Invariants:
- the buffer is among the logs of the servers only while the properties of some account ask for logging or metrics;
- the request path formats nothing, reads no head and waits for nothing. What costs more is done by the collector;
- what is kept is bounded in bytes. What does not fit is dropped and counted;
- a tuple holds no body. The exchange of a template holds none, so it is kept as it is.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lazulite.protocol.clock import Clock
from lazulite.protocol.message import RequestRecord
from lazulite.server.observability.exchange import Exchange, ExchangeLog, RepeatedExchange
from lazulite.service.properties import ServiceProperties

BYTES_MAX = 32 * 1024 * 1024
"""What the tuples that wait may take."""
_TUPLE_BYTES = 1024
"""What one takes beside the texts of its heads."""
_FIELD_BYTES = 64


class RecordedExchange(NamedTuple):
    """One exchange, without bodies."""

    record: RequestRecord
    id: str
    client: str
    scheme: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    is_authenticated: bool
    status: int
    error_code: str
    fields: Sequence[tuple[str, str]]
    """The header fields of the response, behind those of `opening`."""
    opening: str
    elapsed_ms: float
    total_ms: float
    bytes_in: int
    """The bytes of the body."""
    bytes_out: int
    """The bytes of head and body."""
    head_bytes_out: int
    is_whole: bool


KeptExchange: TypeAlias = tuple[int, int, RecordedExchange | RepeatedExchange]
"""An exchange that waits to be read: the tick when it ended; roughly the bytes that it takes; and the one of a template
as it is, or what is kept of others. A named tuple takes longer to make."""


@dataclass(slots=True)
class AnalyticsCounts:
    """What analytics has done, and what it could not do."""

    lines: int = 0
    """The lines of logs that were published."""
    blobs: int = 0
    """With these lines."""
    dropped_lines: int = 0
    """For which there was no room, or that could not be written."""
    refused_lines: int = 0
    """The lines of refused requests without good credentials, beyond their share."""
    dropped_exchanges: int = 0
    """Requests for which there was no room before they were read."""
    uncounted: int = 0
    """Requests that metrics do not count, as there were too many counters."""
    failed_rounds: int = 0
    """Attempts to write metrics that the store did not take; a later one makes up for each."""


class ExchangeBuffer:
    """Takes the exchanges that some account asks for. Implements `ExchangeLog`.

    Args:
        logs: of the servers; the buffer adds itself to them, and removes itself.
        clock: the time now.
        bytes_max: what the waiting tuples may take.

    Attributes:
        counts: what became of the exchanges.
        on_first: called when a tuple is there and was none before.
        wanted: the properties that ask for analytics, by service and account.
    """

    reads_heads = False

    def __init__(self, logs: list[ExchangeLog], clock: Clock, bytes_max: int = BYTES_MAX) -> None:
        self._logs = logs
        self._clock = clock
        self._bytes_max = bytes_max
        self._waiting: deque[KeptExchange] = deque()
        self._held_bytes = 0
        self.counts = AnalyticsCounts()
        self.on_first: Callable[[], None] = lambda: None
        self.wanted: dict[tuple[str, str], ServiceProperties] = {}

    def note(self, service: str, account: str, properties: ServiceProperties) -> None:
        """Take what an account asks for from now on: a `PropertiesObserver`."""
        had = bool(self.wanted)
        if properties.asks_for_analytics:
            self.wanted[service, account] = properties
        else:
            self.wanted.pop((service, account), None)
        if bool(self.wanted) != had:
            self._logs.remove(self) if had else self._logs.append(self)

    def record(self, exchange: Exchange) -> None:
        """Keep an exchange, if its account asks for it and there is room."""
        record = exchange.request.record
        if (record.service, record.account) in self.wanted:
            self._keep(_size_of(exchange), _without_bodies(exchange))

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Likewise, of a request that a template has answered."""
        record = exchange.template.record
        if (record.service, record.account) in self.wanted:
            self._keep(exchange.sizes[0], exchange)

    def _keep(self, size: int, exchange: RecordedExchange | RepeatedExchange) -> None:
        size += _TUPLE_BYTES
        if self._held_bytes + size > self._bytes_max:
            self.counts.dropped_exchanges += 1
            return
        self._held_bytes += size
        waiting = self._waiting
        waiting.append((self._clock(), size, exchange))
        if len(waiting) == 1:
            self.on_first()

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Do nothing: the exchange follows."""

    def take(self, count: int) -> list[KeptExchange]:
        """Return the oldest exchanges, so many at most, and keep them no more."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        self._held_bytes -= sum([size for _, size, _ in taken])
        return taken


def _size_of(exchange: Exchange) -> int:
    """Return the bytes of what is kept of an exchange."""
    request, response = exchange.request, exchange.response
    record, headers, fields = request.record, request.headers, response.headers
    size = len(request.path) + len(request.query) + _FIELD_BYTES * (len(headers) + len(fields))
    size += sum(map(len, headers)) + sum(map(len, headers.values())) + sum([len(value) for _, value in fields])
    if record.operations or record.parts:
        size += 2 * exchange.bytes_in + _TUPLE_BYTES * len(record.parts)
    return size


def _without_bodies(exchange: Exchange) -> RecordedExchange:
    request, response = exchange.request, exchange.response
    return RecordedExchange(
        request.record,
        request.id,
        request.client,
        request.scheme,
        request.method,
        request.path,
        request.query,
        request.headers,
        request.authenticated,
        response.status,
        response.error_code,
        response.headers,
        response.opening,
        exchange.elapsed_ms,
        exchange.total_ms,
        exchange.bytes_in,
        exchange.bytes_out,
        exchange.head_bytes_out,
        exchange.is_whole,
    )
