"""A collector of spans on loopback: OTLP over HTTP, as OpenTelemetry's own takes it."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What came, in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    @property
    def resource(self) -> dict[str, str | int]:
        return attributes(self.requests[0].resource_spans[0].resource.attributes)

    @property
    def spans(self) -> list[Span]:
        resources = [each for request in self.requests for each in request.resource_spans]
        return [span for each in resources for scope in each.scope_spans for span in scope.spans]


def attributes(pairs: Iterable[KeyValue]) -> dict[str, str | int]:
    """Return attributes, which are texts and numbers other than 0."""
    return {pair.key: pair.value.int_value or pair.value.string_value for pair in pairs}


@contextmanager
def collecting(status: int = 200) -> Iterator[Collector]:
    """Run a collector until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf":
                collector.bodies.append(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
