"""What `lazulite serve` tells of itself in numbers and spans. What is not asked for is not imported."""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, get_args

from lazulite import __version__
from lazulite.protocol.request_id import RequestIds
from lazulite.server.middleware import health
from lazulite.server.observability.metrics_endpoint import PAGE_LIMITS, MetricsPage
from lazulite.server.server import Server
from lazulite.settings.config import Settings
from lazulite.table.query.filter import QueryClass
from lazulite.table.routes import OPERATION_NAMES

if TYPE_CHECKING:
    from lazulite.server.observability.metrics import Metrics
    from lazulite.server.observability.tracing import TraceLog


def new_metrics(settings: Settings) -> "Metrics | None":
    """Return what counts, None without a port for it."""
    if settings.metrics_port is None:
        return None
    from lazulite.server.observability.metrics import Metrics  # noqa: PLC0415 - see above

    return Metrics(__version__, OPERATION_NAMES | {health.OPERATION}, get_args(QueryClass))


@asynccontextmanager
async def metrics_server(
    settings: Settings,
    metrics: "Metrics | None",
    server: Server,
    statistics: Callable[[], Mapping[str, float]] | None,
) -> AsyncIterator[Server | None]:
    """Serve `/metrics` inside the block, and so until `server`, which is told of, has drained.

    Args:
        settings: of the service.
        metrics: what counts, if anything does.
        server: see above.
        statistics: the store's numbers; None if it has none.

    Raises:
        BindError: the address cannot be listened on.
    """
    if metrics is None:
        yield None
        return

    def readings() -> Mapping[str, float]:
        store: Mapping[str, float] = {}
        if statistics is not None:
            store = {"store_writable": 0, **{f"store_{name}": value for name, value in statistics().items()}}
        return {
            "connections": server.connection_count,
            "connections_max": server.limits.connections,
            "buffered_bytes": server.buffered_bytes,
            **store,
        }

    page = Server(
        MetricsPage(lambda: metrics.render(readings)),
        host=settings.metrics_host,
        port=settings.metrics_port,
        new_request_id=RequestIds(random.SystemRandom()).next,
        limits=PAGE_LIMITS,
    )
    try:
        await page.start()
        yield page
    finally:
        await page.stop()


def trace_logs(settings: Settings, report: Callable[[str], None]) -> "list[TraceLog]":
    """Return what makes spans; none, and a line for people, if what is asked for is not there."""
    if not settings.trace_exporters:
        return []
    try:
        from lazulite.server.observability.tracing import EXPORTERS, TraceLog  # noqa: PLC0415 - see above
    except ImportError:
        report("no traces: OpenTelemetry's variables are set, but the extra lazulite[otel] is not installed")
        return []
    unknown = [name for name in settings.trace_exporters if name not in EXPORTERS]
    if unknown:
        report(f"no traces to {', '.join(unknown)[:100]!r}: known are otlp (by http/protobuf) and console")
    exporters = [EXPORTERS[name] for name in settings.trace_exporters if name in EXPORTERS]
    try:
        return [TraceLog(exporters, __version__, report)] if exporters else []
    except ValueError as error:
        report(f"no traces: {error}")
        return []
