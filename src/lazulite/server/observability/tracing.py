"""A span for each answered request, for OpenTelemetry: the only module that knows its SDK, an optional extra.

Invariants: the event loop never waits for a collector: spans wait in the SDK's queue, of bounded length, and a thread
of the SDK sends them; when the queue is full, they are dropped. A span has nothing of a query string, a header or a
body. What goes wrong on the way to the collector is a line for people, the same one no more than once a minute.

Source: OpenTelemetry's semantic conventions of HTTP servers and of database operations; W3C Trace Context.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.server.observability.redaction import redact

EXPORTERS: dict[str, Callable[[], SpanExporter]] = {"otlp": OTLPSpanExporter, "console": ConsoleSpanExporter}
"""By their names in `OTEL_TRACES_EXPORTER`; everything else about them is in the SDK's own variables."""

SHUTDOWN_SECONDS = 5.0
"""How long `close` waits for a collector to take the last spans."""

PATH_CHARACTERS_MAX = 1024
"""The greatest length of a path in a span."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "MERGE"})
_SAME_AGAIN_SECONDS = 60.0
_REPORTED_MAX = 100
_LINE_CHARACTERS_MAX = 300
_OF_SECRETS = "opentelemetry.util"
_OF_OURS = (_OF_SECRETS, "opentelemetry.exporter", "opentelemetry.sdk")
"""Loggers of what the operator can mend."""


class TraceLog:
    """Makes a span of each exchange. See `ExchangeLog`.

    A span's parent is the one that the request's `traceparent` names. What is sampled, and how much waits, is for the
    SDK's variables to say.

    Args:
        exporters: make what the spans go to.
        version: of the service.
        report: takes a line for people; called in any thread.
        time_ns: nanoseconds since 1970.

    Raises:
        ValueError: the SDK cannot do what its variables say.
    """

    reads_heads = True

    def __init__(
        self,
        exporters: Sequence[Callable[[], SpanExporter]],
        version: str,
        report: Callable[[str], None],
        time_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._time_ns = time_ns
        self._sdk_log = _SdkLogHandler(report)
        self._sdk_log.listen()  # Before all else, as the SDK would print what is wrong with a secret header.
        named = OTELResourceDetector().detect().attributes
        resource = Resource.create({"service.name": "lazulite", "service.version": version, **named})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        for make in exporters:
            self._provider.add_span_processor(BatchSpanProcessor(make()))
        self._tracer = self._provider.get_tracer("lazulite", version)
        self._propagator = TraceContextTextMapPropagator()

    def record(self, exchange: Exchange) -> None:
        """Make a span of an answered request."""
        ended_ns = self._time_ns()
        request, response = exchange.request, exchange.response
        record = request.record
        headers: Mapping[str, str] = request.headers
        method = request.method if request.method in _METHODS else "HTTP"
        span = self._tracer.start_span(
            f"{method} {record.operation}" if record.operation else method,
            context=self._propagator.extract(headers) if "traceparent" in headers else None,
            kind=SpanKind.SERVER,
            attributes=_attributes(exchange),
            start_time=ended_ns - int(exchange.elapsed_ms * 1_000_000),
        )
        if response.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_ns)

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Note a request that a template has answered."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        """Do nothing: the span of the response, which follows, has the error."""

    def close(self) -> None:
        """Send what waits, and stop waiting after `SHUTDOWN_SECONDS`."""
        shutdown = threading.Thread(target=self._provider.shutdown, name="lazulite-traces", daemon=True)
        shutdown.start()
        shutdown.join(SHUTDOWN_SECONDS)
        self._sdk_log.ignore()


def _attributes(exchange: Exchange) -> dict[str, str | int]:
    request, response = exchange.request, exchange.response
    record = request.record
    attributes: dict[str, str | int] = {
        "http.request.method": request.method if request.method in _METHODS else "_OTHER",
        "http.response.status_code": response.status,
        "url.path": redact(request.path[:PATH_CHARACTERS_MAX]),
        "url.scheme": request.scheme,
        "client.address": request.client,
        "db.namespace": record.account,
        "db.operation.name": record.operation,
        "error.type": response.error_code,
        "lazulite.request_id": request.id,
        "lazulite.query_class": record.query_class,
    }
    attributes = {name: value for name, value in attributes.items() if value != ""}
    if record.rows_scanned or record.query_class:
        attributes["lazulite.rows_scanned"] = record.rows_scanned
        attributes["db.response.returned_rows"] = record.rows_returned
    if record.fault is not None:
        attributes["lazulite.fault.rule"] = record.fault.rule
        attributes["lazulite.fault.effect"] = record.fault.effect.value
    return attributes


class _SdkLogHandler(logging.Handler):
    """Handles log records of the SDK: reports the SDK's own problems and drops records that clients can cause."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._reported_s: dict[str, float] = {}

    def listen(self) -> None:
        """Take it from now on."""
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False

    def ignore(self) -> None:
        """Take no more."""
        logging.getLogger("opentelemetry").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record, unless the same was reported a moment ago."""
        if not record.name.startswith(_OF_OURS):
            return
        known = str(record.msg)
        if record.created - self._reported_s.get(known, 0) < _SAME_AGAIN_SECONDS:
            return
        if len(self._reported_s) == _REPORTED_MAX:
            self._reported_s.clear()
        self._reported_s[known] = record.created
        # The message quotes the faulty header, which may be a key.
        text = known.replace("%s", "…") if record.name.startswith(_OF_SECRETS) else record.getMessage()
        self._report(f"traces: {' '.join(text.split())[:_LINE_CHARACTERS_MAX]}")
