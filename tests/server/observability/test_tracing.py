"""One span for each request: its attributes, its parent, and that no request waits for a collector."""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.server.observability import tracing
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.tracing import EXPORTERS, PATH_CHARACTERS_MAX, TraceLog
from tests.collector import attributes, collecting

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
WELL_FORMED = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
NOW_NS = 1_795_184_329_123_000_000


def request(method: str = "GET", path: str = "/a/t", headers: Mapping[str, str] | None = None) -> Request:
    return Request(
        method,
        path,
        "sig=SECRET",
        headers or {},
        b"SECRET",
        client="192.0.2.1",
        id="i",
        record=RequestRecord(account="a"),
    )


def spans_of(*exchanges: Exchange, report: Callable[[str], None] = print) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    log = TraceLog([lambda: exporter], "1.2.3", report, lambda: NOW_NS)
    for exchange in exchanges:
        log.record(exchange)
    log.close()
    return exporter.get_finished_spans()


def test_a_query() -> None:
    asked = request()
    asked.record = RequestRecord("", "a", "QueryEntities", "row range", 7, 5)
    (span,) = spans_of(Exchange(asked, Response(200), 1.5, 10, 20))
    assert (span.name, span.kind, span.status.status_code) == ("GET QueryEntities", SpanKind.SERVER, StatusCode.UNSET)
    assert (span.start_time, span.end_time, span.parent) == (NOW_NS - 1_500_000, NOW_NS, None)
    assert span.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "url.path": "/a/t",
        "url.scheme": "http",
        "client.address": "192.0.2.1",
        "db.namespace": "a",
        "db.operation.name": "QueryEntities",
        "db.response.returned_rows": 5,
        "lazulite.query_class": "row range",
        "lazulite.request_id": "i",
        "lazulite.rows_scanned": 7,
    }
    assert span.resource.attributes["service.name"] == "lazulite"
    assert span.resource.attributes["service.version"] == "1.2.3"


def test_an_injected_fault_is_marked() -> None:
    asked = request()
    asked.record = RequestRecord(fault=Fault("busy", Effect.ERROR, "ServerBusy"))
    (span,) = spans_of(Exchange(asked, Response(503), 1, 0, 0))
    assert span.attributes is not None
    assert (span.attributes["lazulite.fault.rule"], span.attributes["lazulite.fault.effect"]) == ("busy", "error")


@pytest.mark.parametrize(("status", "expected"), [(404, StatusCode.UNSET), (500, StatusCode.ERROR)])
def test_an_error(status: int, expected: StatusCode) -> None:
    (span,) = spans_of(Exchange(request(), Response(status, error_code="Code"), 1, 0, 0))
    assert span.attributes is not None
    assert (span.name, span.attributes["error.type"], span.status.status_code) == ("GET", "Code", expected)


def test_a_method_that_nobody_knows_names_no_span() -> None:
    merge, other = spans_of(*(Exchange(request(method), Response(405), 1, 0, 0) for method in ("MERGE", "PROPFIND")))
    assert merge.attributes is not None
    assert other.attributes is not None
    assert (merge.name, merge.attributes["http.request.method"]) == ("MERGE", "MERGE")
    assert (other.name, other.attributes["http.request.method"]) == ("HTTP", "_OTHER")


def test_nothing_secret_is_in_a_span() -> None:
    headers = {"authorization": "SharedKey a:SECRET", "x": "SECRET", "tracestate": "SECRET", "baggage": "k=SECRET"}
    paths = ["/a/t", "/a/t?sig=SECRET", "/a/t%3Fsv%3D1%26sig%3DSECRET", "/a/" + "x" * PATH_CHARACTERS_MAX + "SECRET"]
    answer = Response(403, [("x", "SECRET")], b"SECRET", "Code")
    spans = spans_of(*(Exchange(request(path=path, headers=headers), answer, 1, 0, 0) for path in paths))
    assert len(spans) == len(paths)
    assert "SECRET" not in "".join(span.to_json() for span in spans)


def test_a_span_is_the_child_of_the_callers() -> None:
    headers = {"traceparent": TRACEPARENT, "tracestate": "vendor=1"}
    (span,) = spans_of(Exchange(request(headers=headers), Response(200), 1, 0, 0))
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (int(TRACE, 16), int(PARENT, 16), True)
    assert span.context is not None
    assert span.context.trace_id == int(TRACE, 16)


def test_what_the_caller_does_not_sample_is_not_sampled() -> None:
    headers = {"traceparent": TRACEPARENT[:-1] + "0"}
    assert spans_of(Exchange(request(headers=headers), Response(200), 1, 0, 0)) == ()


@settings(max_examples=50, deadline=None)
@given(st.text() | st.sampled_from([TRACEPARENT, TRACEPARENT[:-4], TRACEPARENT.replace("0", "x"), "00-"]), st.text())
def test_any_header_will_do(traceparent: str, tracestate: str) -> None:
    headers = {"traceparent": traceparent, "tracestate": tracestate}
    spans = spans_of(Exchange(request(headers=headers), Response(200), 1, 0, 0), report=pytest.fail)
    if not WELL_FORMED.search(traceparent):
        assert [span.parent for span in spans] == [None]


class Stuck(SpanExporter):
    """Takes no span until it is let go."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.count = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.begun.set()
        self.gate.wait(60)
        self.count += len(spans)
        return SpanExportResult.SUCCESS


def test_nobody_waits_for_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SHUTDOWN_SECONDS", 0.01)
    said: list[str] = []
    stuck = Stuck()
    log = TraceLog([lambda: stuck], "1", said.append)
    for _ in range(10_000):
        log.record(Exchange(request(), Response(200), 1, 0, 0))
    assert stuck.begun.wait(60)
    log.close()
    assert stuck.count == 0
    assert [line for line in said if "Queue full" in line] == said[:1]
    (worker,) = [thread for thread in threading.enumerate() if thread.name == "lazulite-traces"]
    stuck.gate.set()
    worker.join()
    assert 0 < stuck.count < 10_000


def test_spans_reach_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
        log = TraceLog([EXPORTERS["otlp"]], "1.2.3", pytest.fail)
        log.record(Exchange(request(headers={"traceparent": TRACEPARENT}), Response(200), 1, 0, 0))
        log.close()
    (span,) = collector.spans
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(span.attributes)["url.path"] == "/a/t"
    assert collector.resource["service.name"] == "orders"
    assert b"SECRET" not in b"".join(collector.bodies)


def test_what_a_collector_rejects_is_reported_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with collecting(status=400) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/v1/traces")
        log = TraceLog([EXPORTERS["otlp"]], "1", said.append)
        log.record(Exchange(request(), Response(200), 1, 0, 0))
        log.close()
    (line,) = said
    assert line.startswith("traces: Failed to export")
    assert "\n" not in line


def test_a_malformed_header_for_the_collector_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "SECRET")
    said: list[str] = []
    TraceLog([EXPORTERS["otlp"]], "1", said.append).close()
    (line,) = said
    assert "Header format invalid" in line
    assert "SECRET" not in line + "".join(capfd.readouterr())


def test_the_same_complaint_is_made_once_a_minute() -> None:
    said: list[str] = []
    log = TraceLog([InMemorySpanExporter], "1", said.append)
    for at, name in ((1000.0, "sdk"), (1059.9, "sdk"), (1060.1, "sdk"), (1060.1, "trace.span")):
        record = logging.makeLogRecord(
            {"name": f"opentelemetry.{name}", "msg": "a\n%s", "args": ("b",), "levelno": logging.ERROR, "created": at}
        )
        logging.getLogger("opentelemetry").handle(record)
    assert said == ["traces: a b", "traces: a b"]
    for number in range(1000):
        logging.getLogger("opentelemetry.sdk").error("%d" % number)  # noqa: UP031 - a text that is new each time
    assert len(log._sdk_log._reported_s) <= 100
    log.close()
    logging.getLogger("opentelemetry.sdk").warning("unheard")
    assert "traces: unheard" not in said


def test_a_failure_makes_no_span_of_its_own() -> None:
    exporter = InMemorySpanExporter()
    log = TraceLog([lambda: exporter], "1", pytest.fail)
    log.failed("i", KeyError())
    log.close()
    assert exporter.get_finished_spans() == ()
