"""What the service does, as numbers for Prometheus: the only module that knows `prometheus_client`.

Invariants: no number and no label has anything of a client in it, and there are only so many labels: operations, query
classes, statuses and error codes that are not known beforehand count as `other`. Numbers are written down without
waiting; a scrape renders them in a thread, so that it delays no request. What is read from elsewhere (the store, the
connections) is read at a scrape, on the loop's thread.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lazulite.engine.rocksdb.flush_stats import Flush
from lazulite.protocol.errors import CATALOGUE, REASONS
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.server.observability.families import Families, Family

NONE, OTHER = "none", "other"
"""Labels of what was rejected before its operation was known, and of what is none of the known ones."""

REQUEST_SECONDS = (
    *(0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
FLUSH_SECONDS = (0.0001, *REQUEST_SECONDS[:14])
FLUSH_COMMITS = tuple(2**power for power in range(11))
FLUSH_BYTES = tuple(256 * 4**power for power in range(8))

READINGS = {
    "connections": "Connections of clients now.",
    "connections_max": "Connections of clients that are accepted at a time.",
    "buffered_bytes": "Request bodies held now.",
    "metered_read_total": "Entities read by their keys, messages, and reads of blobs.",
    "metered_scanned_total": "Rows that queries and lists of blobs have read.",
    "metered_written_total": "Entities, messages and blobs written.",
    "metered_bytes_in_total": "Bodies of requests for tables' entities, queues and blobs.",
    "metered_bytes_out_total": "Bodies of their responses.",
    "metered_requests_total": "Requests for tables' entities, queues and blobs.",
    "metered_refused_total": "Requests that a target refused.",
    "analytics_lines_total": "Lines of Storage Analytics' logs that were published.",
    "analytics_blobs_total": "Blobs with these lines.",
    "analytics_dropped_lines_total": "Lines that were dropped: no room, or they could not be written.",
    "analytics_refused_lines_total": "Lines of refused requests without good credentials, beyond their share.",
    "analytics_dropped_exchanges_total": "Requests that analytics has dropped unread: no room.",
    "analytics_uncounted_total": "Requests that the metrics tables do not count: too many counters.",
    "analytics_failed_rounds_total": "Attempts to write metrics tables that failed, and are repeated.",
    "store_writable": "1 while the store takes writes; 0 after a failure, until it has been opened again.",
    "store_file_bytes": "The store's tables on disk.",
    "store_memtable_bytes": "What the store holds in memory until it is written to tables.",
    "store_cache_bytes": "Blocks of tables kept in memory.",
    "store_keys_estimate": "Rows in the store, roughly; those of containers count twice.",
    "store_compactions": "Compactions that run now.",
    "store_compaction_debt_bytes": "What compactions still have to rewrite, roughly.",
    "store_writes_stopped": "1 while the store takes no writes because compactions are behind.",
    "forwarded_rows_total": "Rows whose commit another process of a database was asked for.",
    "index_builds": "Indexes that are being built now.",
    "index_build_rows_total": "Rows that builds of indexes have gone through.",
    "index_builds_finished_total": "Builds of indexes that were finished.",
    "index_builds_failed_total": "Builds of indexes that an error ended.",
    "replica_reads_total": "Reads of rows that workers answered from their replicas.",
    "primary_reads_total": "Reads of rows for which workers asked the primary.",
    "overtaken_rows_total": "Rows sent to a database in vain, as another process had changed their partition.",
}
"""Gauges, counters (`_total`) and what they mean; they are handed in at each scrape, under these names."""


TEMPLATES = "template_outcomes", "Requests that came alone on a connection at rest, by what their template did."
"""The name and the meaning of the counter of `http.templates`, which is handed in likewise."""


class _OperationMetrics(NamedTuple):
    """What counts one operation that ended with one status."""

    requests: Counter
    seconds: Histogram
    name: str
    """The operation's label."""


class _ReadingCollector(Collector):
    """What was read last: gauges, counters, and the outcomes of templates."""

    def __init__(self) -> None:
        self.values: Mapping[str, float] = {}
        self.outcomes: Mapping[str, int] = {}

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Yield a gauge or a counter for each value, and a counter with a sample for each outcome."""
        for name, value in self.values.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"lazulite_{name}", READINGS[name], value)
        name, text = TEMPLATES
        counter = CounterMetricFamily(f"lazulite_{name}", text, labels=("outcome",))
        for outcome, count in self.outcomes.items():
            counter.add_metric((outcome,), count)
        yield counter


class _CollectedFamilies(Collector):
    """Families that were collected elsewhere."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        for name, (kind, text, samples) in self._families.items():
            metric = Metric(name, text, kind)
            for (sample, labels), value in samples.items():
                metric.add_sample(sample, dict(labels), value)
            yield metric


async def page_of(families: Families) -> bytes:
    """Return families in Prometheus' text format, version 0.0.4."""
    return await asyncio.to_thread(generate_latest, _CollectedFamilies(families))


class Metrics:
    """Counts exchanges (see `ExchangeLog`) and flushes.

    Args:
        version: of the service.
        operations: the names that operations have.
        query_classes: the names of classes of queries.
    """

    reads_heads = False

    def __init__(self, version: str, operations: Collection[str], query_classes: Collection[str]) -> None:
        self._operations = frozenset(operations)
        self._query_classes = frozenset(query_classes)
        self._registry = registry = CollectorRegistry()
        self._readings = _ReadingCollector()
        self._known: dict[tuple[str, int], _OperationMetrics] = {}
        # A time of creation for each series would double them.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # it is without annotations

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"lazulite_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"lazulite_{name}", text, labels, registry=registry, buckets=buckets)

        Info("lazulite", "The version that runs.", registry=registry).info({"version": version})
        self._requests = counter("requests", "Requests answered.", "operation", "status")
        seconds = "From a whole request's arrival to its answer's writing."
        self._seconds = histogram("request_seconds", seconds, REQUEST_SECONDS, "operation")
        self._errors = counter("errors", "Requests rejected, by error code.", "code")
        self._failures = counter("internal_errors", "Exceptions that no code expected.")
        self._faults = counter("faults", "Requests that suffered from a rule of faults, by effect.", "effect")
        self._queries = counter("queries", "Queries of entities, by class.", "class")
        self._scanned = counter("rows_scanned", "Rows that queries have read.", "operation")
        self._returned = counter("rows_returned", "Rows that queries returned and batches wrote.", "operation")
        self._gated = counter("gate", "Requests refused or delayed by targets, by what did it.", "limit", "outcome")
        self._received = counter("received_bytes", "Bodies of requests.")
        self._sent = counter("sent_bytes", "Heads and bodies of answers.")
        self._flush_commits = histogram("flush_commits", "Commits made durable together.", FLUSH_COMMITS)
        self._flush_bytes = histogram("flush_bytes", "What they changed, in bytes.", FLUSH_BYTES)
        self._flush_write = histogram("flush_write_seconds", "Writing them to the store's log.", FLUSH_SECONDS)
        self._flush_sync = histogram("flush_sync_seconds", "Syncing that log.", FLUSH_SECONDS)
        registry.register(self._readings)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def record(self, exchange: Exchange) -> None:
        """Count an answered request."""
        request, response, elapsed_ms, bytes_in, bytes_out = exchange[:5]
        record = request.record
        key = record.operation, response.status
        known = self._known.get(key) or self._meet(*key)
        known.requests.inc()
        known.seconds.observe(elapsed_ms / 1000)
        if record.rows_scanned:
            self._scanned.labels(known.name).inc(record.rows_scanned)
        if record.rows_returned:
            self._returned.labels(known.name).inc(record.rows_returned)
        if record.query_class:
            self._queries.labels(_among(self._query_classes, record.query_class)).inc()
        if response.error_code:
            self._errors.labels(_among(CATALOGUE, response.error_code)).inc()
        if record.gate:
            self._gated.labels(record.gate, "delayed" if record.gate_seconds else "refused").inc()
        if record.fault is not None:
            self._faults.labels(record.fault.effect.value).inc()
        if bytes_in:
            self._received.inc(bytes_in)
        self._sent.inc(bytes_out)

    def repeat(self, exchange: RepeatedExchange) -> None:
        """Note a request that a template has answered."""
        self.record(exchange.exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:  # noqa: ARG002 - the interface has them
        """Count an exception that a service should not have let out."""
        self._failures.inc()

    def flushed(self, flush: Flush) -> None:
        """Count what became durable together. Called in any thread."""
        self._flush_commits.observe(flush.commits)
        self._flush_bytes.observe(flush.size_bytes)
        self._flush_write.observe(flush.write_seconds)
        self._flush_sync.observe(flush.sync_seconds)

    async def render(
        self, readings: Callable[[], Mapping[str, float]], outcomes: Callable[[], Mapping[str, int]] = dict
    ) -> bytes:
        """Return everything in Prometheus' text format, version 0.0.4; one call at a time.

        Args:
            readings: returns values for the names of `READINGS`, or for some of them.
            outcomes: returns how many requests templates have answered, or not, by the outcome.
        """
        self._readings.values, self._readings.outcomes = readings(), outcomes()
        return await asyncio.to_thread(generate_latest, self._registry)

    async def families(
        self, readings: Callable[[], Mapping[str, float]], outcomes: Callable[[], Mapping[str, int]] = dict
    ) -> Families:
        """Return everything as plain values; see `render`."""
        self._readings.values, self._readings.outcomes = readings(), outcomes()
        return await asyncio.to_thread(self._collected)

    def _collected(self) -> Families:
        return {
            metric.name: Family(
                metric.type,
                metric.documentation,
                {(each.name, tuple(sorted(each.labels.items()))): each.value for each in metric.samples},
            )
            for metric in self._registry.collect()
        }

    def _meet(self, operation: str, status: int) -> _OperationMetrics:
        """Return what counts an operation and a status that were not seen together before."""
        name = _among(self._operations, operation) if operation else NONE
        code = str(status) if status in REASONS else OTHER
        known = _OperationMetrics(self._requests.labels(name, code), self._seconds.labels(name), name)
        if OTHER not in (name, code):
            self._known[operation, status] = known
        return known


def _among(known: Collection[str], name: str) -> str:
    return name if name in known else OTHER
