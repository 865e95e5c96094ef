"""Metrics and traces of a service. Libraries are imported only if the settings need them."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Protocol, get_args

from lazulite import __version__
from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.app.registry import OPERATIONS
from lazulite.protocol.request_id import RequestIds
from lazulite.server.limits import Limits
from lazulite.server.middleware import health, landing_page
from lazulite.server.observability.metrics_endpoint import PAGE_LIMITS, MetricsPage
from lazulite.server.server import Server
from lazulite.server.workers.metrics import WorkerMetrics
from lazulite.settings.config import Settings
from lazulite.settings.extras import how_to_install
from lazulite.table.query.filter import QueryClass

if TYPE_CHECKING:
    from lazulite.server.observability.metrics import Metrics
    from lazulite.server.observability.tracing import TraceLog


def new_metrics(settings: Settings) -> "Metrics | None":
    """Return what counts, None without a port for it."""
    return None if settings.metrics_port is None else empty_metrics()


def empty_metrics() -> "Metrics":
    """Return what counts; the extra `metrics` must be installed."""
    from lazulite.server.observability.metrics import Metrics  # noqa: PLC0415 - see above

    return Metrics(__version__, OPERATIONS | {health.OPERATION, landing_page.OPERATION}, get_args(QueryClass))


class Measured(Protocol):
    """The servers of a process, as far as metrics know them."""

    @property
    def limits(self) -> Limits:
        """Return the bounds of each server."""
        ...

    @property
    def connection_count(self) -> int:
        """Return the number of connections."""
        ...

    @property
    def buffered_bytes(self) -> int:
        """Return the bytes of request bodies."""
        ...

    @property
    def template_outcomes(self) -> Mapping[str, int]:
        """Return how many requests templates have answered, or not, by the outcome."""
        ...


def server_readings(server: Measured) -> Mapping[str, float]:
    """Return the gauges of servers; see `READINGS`."""
    return {
        "connections": server.connection_count,
        "connections_max": server.limits.connections,
        "buffered_bytes": server.buffered_bytes,
    }


def analytics_readings(counts: AnalyticsCounts) -> Mapping[str, float]:
    """Return the counters of Storage Analytics; see `READINGS`."""
    return {f"analytics_{name}_total": value for name, value in asdict(counts).items()}


Readings = Callable[[], Mapping[str, float]]
"""Returns values by their names, see `READINGS`."""


def store_readings(statistics: Readings | None) -> Mapping[str, float]:
    """Return the gauges of a store; none without `statistics`, which a database does not have."""
    if statistics is None:
        return {}
    return {"store_writable": 0, **{f"store_{name}": value for name, value in statistics().items()}}


class MeteredGroup(Protocol):
    """Servers that count beside metrics."""

    @property
    def analytics(self) -> AnalyticsCounts:
        """Return what analytics has done."""
        ...

    @property
    def traffic(self) -> Mapping[str, float]:
        """Return the counters of the meter."""
        ...


def counters_of(store: Readings, servers: MeteredGroup) -> Mapping[str, float]:
    """Return the counters of a store, of analytics and of the meter."""
    metered = {f"metered_{name}_total": value for name, value in servers.traffic.items()}
    return {**store(), **analytics_readings(servers.analytics), **metered}


@asynccontextmanager
async def metrics_server(
    settings: Settings,
    metrics: "Metrics | None",
    server: Measured,
    statistics: Readings | None,
    counters: Readings = dict,
) -> AsyncIterator[Server | None]:
    """Serve the metrics of one process inside the block.

    Args:
        settings: of the service.
        metrics: counts exchanges and flushes; None: there is no port for it.
        server: the service's; its gauges are on the page.
        statistics: of the store; None for a database.
        counters: of a database's engine.

    Raises:
        BindError: the address cannot be listened on.
    """
    if metrics is None:
        yield None
        return
    render = partial(
        metrics.render,
        lambda: {**server_readings(server), **store_readings(statistics), **counters()},
        lambda: server.template_outcomes,
    )
    async with _page(settings, render) as page:
        yield page


@asynccontextmanager
async def workers_metrics_server(
    settings: Settings,
    metrics: "Metrics | None",
    workers: WorkerMetrics,
    statistics: Readings | None,
    counters: Readings = dict,
) -> AsyncIterator[Server | None]:
    """Serve the metrics of the primary and its workers, summed, inside the block.

    Args:
        settings: of the service.
        metrics: counts the primary's flushes; None: there is no port for it.
        workers: gathers the workers' metrics.
        statistics: of the primary's store; None for a database.
        counters: of the primary.

    Raises:
        BindError: the address cannot be listened on.
    """
    if metrics is None:
        yield None
        return
    from lazulite.server.observability.metrics import page_of  # noqa: PLC0415 - see above

    async def render() -> bytes:
        families = await metrics.families(lambda: {**store_readings(statistics), **counters()})
        return await page_of(await workers.families(families))

    async with _page(settings, render) as page:
        yield page


@asynccontextmanager
async def _page(settings: Settings, render: Callable[[], Awaitable[bytes]]) -> AsyncIterator[Server]:
    """Serve `/metrics` inside the block, and so until the service of the block has drained."""
    page = Server(
        MetricsPage(render),
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
        report(f"no traces: OpenTelemetry's variables are set, but not the extra otel; {how_to_install('otel')}")
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
