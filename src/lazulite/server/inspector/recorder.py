"""Keeps the last requests of each service, while that is on.

Invariants:
- off, it is in no list of logs, and holds nothing;
- it holds so many requests of each service, and so many bytes in all. The oldest ones make room;
- it holds no body, and no credentials: of a head, the values of secret headers and signatures are left out when it is
  recorded. What a template answered is held as its values, as the template has the rest. Its signature is left out
  within `SWEEP_SECONDS`;
- the request path formats nothing. What templates answer is only appended to a list, which is swept: so at a high rate
  most of it is dropped before it costs more. The rest is done when the requests are read (`recorded`).
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lazulite.protocol.clock import TICKS_PER_SECOND, Clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, RequestRecord
from lazulite.protocol.secret_headers import CREDENTIAL_HEADERS, SOURCE_HEADER
from lazulite.protocol.template import HeadValues, Template
from lazulite.server.observability.exchange import Exchange, ExchangeLog, RepeatedExchange
from lazulite.server.observability.redaction import SIGNATURE, shown_field

if TYPE_CHECKING:
    # Needed while requests are recorded.
    from lazulite.auth.explain.explainer import Explainer

REQUESTS_MAX = 1000
"""The requests of each service."""
BYTES_MAX = 32 * 1024 * 1024
"""What the requests of all processes of a server may take."""
SECONDS_MAX = 15 * 60.0
"""How long requests are recorded after the last look, unless they always are."""
SWEEP_SECONDS = 0.25
"""How long what a template answered stays as it is."""
_SWEPT_HEAD_BYTES = 2048
"""The longest head of what is swept."""
_SHARES = 8
"""The shares of one half of the recorder's memory. The responses of one waiting service take one share at most."""
_REPEAT_BYTES = 1024
_REQUEST_BYTES = 3072
"""What one takes beside its texts."""
_FIELD_BYTES = 160
"""What Python needs for a field beside its characters."""
_AUTHORIZATION = "authorization"
_WEB = "web"
SCHEMES = {
    "sharedkey": "Shared Key",
    "sharedkeylite": "Shared Key Lite",
    "bearer": "bearer token",
    "other": "unknown scheme",
}
"""The schemes of Authorization headers, and what they are called. Any other may be a misplaced secret."""


class HeldRequest(NamedTuple):
    """A request, without body and credentials."""

    size: int
    """The bytes that it takes, roughly."""
    ended: int
    """In ticks."""
    record: RequestRecord
    id: str
    client: str
    scheme: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    authorization: str
    """The scheme of the Authorization header, a key of `SCHEMES`; "" for none."""
    status: int
    error_code: str
    opening: str
    fields: tuple[tuple[str, str], ...]
    """The header fields of the response, behind those of `opening`."""
    elapsed_ms: float
    total_ms: float
    bytes_in: int
    bytes_out: int
    is_whole: bool


class HeldAnswer(NamedTuple):
    """A request that a template has answered."""

    size: int
    ended: int
    template: Template
    values: HeadValues
    """Without the signature."""
    status: int
    opening: str
    sizes: tuple[int, int, int, int]
    id: str
    client: str
    elapsed_ms: float
    rows: int | None


Held: TypeAlias = HeldRequest | HeldAnswer


class RequestRecorder:
    """Takes the exchanges of all services. Implements `ExchangeLog`.

    Args:
        logs: of the servers; the recorder adds itself to them while it is on.
        clock: the time now.
        make_explainers: returns what explains the refusals of each service, by its name.
        bytes_max: what the requests may take.
        monotonic: the clock of the servers, in seconds.

    Attributes:
        is_on: whether requests are recorded.
        since: when that began, in ticks.
    """

    reads_heads = False

    def __init__(
        self,
        logs: list[ExchangeLog],
        clock: Clock,
        make_explainers: "Callable[[], Mapping[str, Explainer]]" = dict,
        bytes_max: int = BYTES_MAX,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._make_explainers = make_explainers
        self._explainers: Mapping[str, Explainer] = {}
        self._bytes_max = bytes_max // 2
        self._monotonic = monotonic
        count = min(REQUESTS_MAX, bytes_max // _SHARES // (_SWEPT_HEAD_BYTES + _REPEAT_BYTES))
        self._waiting: defaultdict[str, deque[RepeatedExchange]] = defaultdict(lambda: deque(maxlen=count))
        """By service: what templates answered since the last sweep."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._rings: dict[str, deque[Held]] = {}
        self._held_bytes = 0
        self._is_kept = False
        self._timer: asyncio.TimerHandle | None = None
        self.is_on = False
        self.since = 0

    def start(self, *, for_good: bool = False) -> None:
        """Record requests from now on, for `SECONDS_MAX`, or `for_good`. What is held stays."""
        self._is_kept = self._is_kept or for_good
        if not self.is_on:
            self.is_on = True
            self.since = self._clock()
            self._explainers = self._make_explainers()
            self._logs.append(self)
            self._sweep_on()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_kept:
            self._timer = asyncio.get_running_loop().call_later(SECONDS_MAX, self.stop)

    def stop(self) -> None:
        """Record no more, and forget what is held."""
        with suppress(ValueError):
            self._logs.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._waiting.clear()
        self.is_on = self._is_kept = False
        self._explainers = {}
        self._rings.clear()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What the requests take, roughly."""
        return self._held_bytes

    def held(self, service: str = "") -> Sequence[Sequence[tuple[str, Held]]]:
        """Return the requests that are held, each with its service, the newest first.

        Args:
            service: whose requests these are; "": a sequence for each service.
        """
        self._sweep()
        return [
            [(name, each) for each in sorted(ring, key=_ended_of, reverse=True)]
            for name, ring in self._rings.items()
            if not service or name == service
        ]

    def note_rejection(self, service: str, request: Request, error: ServiceError) -> None:
        """Explain a rejection to the readers of the requests."""
        explainer = self._explainers.get(service)
        if explainer is not None:
            request.record.refusal = explainer.explain(request, error)

    def record(self, exchange: Exchange) -> None:
        """See `ExchangeLog`."""
        request, response = exchange.request, exchange.response
        record = request.record
        service = record.service or (_WEB if record.account else "")
        if not service:
            return
        headers = {name: text for name, text in request.headers.items() if name not in CREDENTIAL_HEADERS}
        if SOURCE_HEADER in headers:
            headers[SOURCE_HEADER] = shown_field(SOURCE_HEADER, headers[SOURCE_HEADER])
        query = SIGNATURE.sub(r"\1REDACTED", request.query) if request.query else ""
        fields = tuple(response.headers)
        texts = len(request.path) + len(query) + len(response.opening) + sum(map(len, headers))
        texts += sum(map(len, headers.values())) + sum([len(name) + len(text) for name, text in fields])
        if record.refusal is not None:
            texts += 2 * len(record.refusal.string_to_sign) + _FIELD_BYTES * len(record.refusal.fields)
        held = HeldRequest(
            texts + _REQUEST_BYTES + _FIELD_BYTES * (len(headers) + len(fields)),
            self._clock(),
            record,
            request.id,
            request.client,
            request.scheme,
            request.method,
            request.path,
            query,
            headers,
            _scheme_of(request.headers.get(_AUTHORIZATION)),
            response.status,
            response.error_code,
            response.opening,
            fields,
            exchange.elapsed_ms,
            exchange.total_ms,
            exchange.bytes_in,
            exchange.bytes_out,
            exchange.is_whole,
        )
        self._hold(service, held)

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`."""
        if exchange.sizes[0] > _SWEPT_HEAD_BYTES:
            self._hold(exchange.template.record.service, self._without_signature(exchange))
        else:
            self._waiting[exchange.template.record.service].append(exchange)

    def _sweep_on(self) -> None:
        """Sweep now and then, where a loop runs."""
        self._sweep()
        with suppress(RuntimeError):
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep_on)

    def _sweep(self) -> None:
        """Hold what templates answered since the last sweep."""
        for service, waiting in self._waiting.items():
            for exchange in waiting:
                self._hold(service, self._without_signature(exchange))
            waiting.clear()

    def _without_signature(self, exchange: RepeatedExchange) -> HeldAnswer:
        template, values, sizes = exchange.template, exchange.values, exchange.sizes
        if _AUTHORIZATION in template.names:
            at = template.names.index(_AUTHORIZATION)
            values = (*values[:at], values[at].partition(b" ")[0], *values[at + 1 :])
        ago = self._monotonic() - exchange.ended_s
        return HeldAnswer(
            _REPEAT_BYTES + sizes[0] + sizes[2],
            self._clock() - int(ago * TICKS_PER_SECOND),
            template,
            values,
            exchange.status,
            exchange.opening,
            sizes,
            exchange.request_id,
            exchange.client,
            exchange.elapsed_ms,
            exchange.rows,
        )

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Do nothing: the exchange follows."""

    def _hold(self, service: str, held: Held) -> None:
        """Hold a request, and let the oldest ones go that are too many."""
        ring = self._rings.get(service)
        if ring is None:
            ring = self._rings[service] = deque()
        ring.append(held)
        self._held_bytes += held[0]
        if len(ring) > REQUESTS_MAX:
            self._held_bytes -= ring.popleft()[0]
        while self._held_bytes > self._bytes_max:
            longest = max(self._rings.values(), key=len)
            self._held_bytes -= longest.popleft()[0]


def _scheme_of(header: str | None) -> str:
    if header is None:
        return ""
    scheme = header.partition(" ")[0].lower()
    return scheme if scheme in SCHEMES else "other"


def _ended_of(held: Held) -> int:
    return held.ended
