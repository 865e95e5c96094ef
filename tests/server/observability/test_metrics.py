"""What is counted, under which labels, and that there are only so many of them."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.engine.rocksdb.database import STATISTICS
from lazulite.engine.rocksdb.flush_stats import Flush
from lazulite.protocol.errors import CATALOGUE, REASONS
from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response, response_of
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.metrics import NONE, OTHER, READINGS, REQUEST_SECONDS, Metrics
from lazulite.server.observability.metrics_endpoint import MetricsPage
from lazulite.table.query.filter import QueryClass
from lazulite.table.service import TABLE
from tests.fuzz.memory import MemoryEngine
from tests.table.client import Client

CLASSES = get_args(QueryClass)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def new() -> Metrics:
    return Metrics("1.2.3", TABLE.operations, CLASSES)


def parsed(page: bytes) -> Samples:
    """Return the samples of a page by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


async def scraped(metrics: Metrics, readings: Mapping[str, float] | None = None) -> Samples:
    return parsed(await metrics.render(lambda: readings or {}))


def ours(samples: Samples) -> Samples:
    """Return what is not of the process, without the buckets and the version."""
    return {
        key: value
        for key, value in samples.items()
        if key[0].startswith("lazulite_") and not key[0].endswith(("_bucket", "_info"))
    }


def exchange(operation: str, status: int, elapsed_ms: float = 1.0, code: str = "", rows: int = 0) -> Exchange:
    query_class = "row range" if rows else ""
    request = Request("GET", "/p", record=RequestRecord("", "", operation, query_class, rows * 10, rows))
    return Exchange(request, Response(status, error_code=code), elapsed_ms, 100, 1000)


async def test_exchanges_are_counted() -> None:
    metrics = new()
    for each in (
        exchange("InsertEntity", 201, 2),
        exchange("InsertEntity", 201, 4),
        exchange("InsertEntity", 409, 1, "EntityAlreadyExists"),
        exchange("QueryEntities", 200, 100, rows=7),
        exchange("", 403, 0.125, "AuthenticationFailed"),
    ):
        metrics.record(each)
    metrics.failed("id", KeyError("SECRET"))
    insert, query, none = (("operation", name) for name in ("InsertEntity", "QueryEntities", NONE))
    assert ours(await scraped(metrics)) == pytest.approx(
        {
            ("lazulite_requests_total", (insert, ("status", "201"))): 2,
            ("lazulite_requests_total", (insert, ("status", "409"))): 1,
            ("lazulite_requests_total", (query, ("status", "200"))): 1,
            ("lazulite_requests_total", (none, ("status", "403"))): 1,
            ("lazulite_request_seconds_count", (insert,)): 3,
            ("lazulite_request_seconds_sum", (insert,)): 0.007,
            ("lazulite_request_seconds_count", (query,)): 1,
            ("lazulite_request_seconds_sum", (query,)): 0.1,
            ("lazulite_request_seconds_count", (none,)): 1,
            ("lazulite_request_seconds_sum", (none,)): 0.000125,
            ("lazulite_errors_total", (("code", "EntityAlreadyExists"),)): 1,
            ("lazulite_errors_total", (("code", "AuthenticationFailed"),)): 1,
            ("lazulite_internal_errors_total", ()): 1,
            ("lazulite_queries_total", (("class", "row range"),)): 1,
            ("lazulite_rows_scanned_total", (query,)): 70,
            ("lazulite_rows_returned_total", (query,)): 7,
            ("lazulite_received_bytes_total", ()): 500,
            ("lazulite_sent_bytes_total", ()): 5000,
        }
        | {
            (f"lazulite_flush_{name}", ()): 0
            for what in ("commits", "bytes", "write_seconds", "sync_seconds")
            for name in (f"{what}_count", f"{what}_sum")
        }
    )


async def test_an_injected_fault_is_counted_by_its_effect() -> None:
    metrics = new()
    for effect, value in ((Effect.ERROR, "ServerBusy"), (Effect.DELAY, 1.0), (Effect.DELAY, 2.0)):
        record = RequestRecord(fault=Fault("rule", effect, value))
        metrics.record(Exchange(Request("GET", "/p", record=record), Response(200), 1, 0, 0))
    found = await scraped(metrics)
    counted = {labels: value for (name, labels), value in found.items() if name == "lazulite_faults_total"}
    assert counted == {(("effect", "error"),): 1, (("effect", "delay_seconds"),): 2}


async def test_times_fall_into_buckets() -> None:
    metrics = new()
    for elapsed_ms in (0.2, 0.3, 29_000, 31_000):
        metrics.record(exchange("QueryEntity", 200, elapsed_ms))
    samples = await scraped(metrics)
    found = {
        dict(labels)["le"]: value
        for (name, labels), value in samples.items()
        if name == "lazulite_request_seconds_bucket"
    }
    assert (REQUEST_SECONDS[0], REQUEST_SECONDS[-1]) == (0.00025, 30.0)
    assert (found["0.00025"], found["0.0005"], found["10.0"], found["30.0"], found["+Inf"]) == (1, 2, 2, 3, 4)


async def test_flushes_are_counted() -> None:
    metrics = new()
    metrics.flushed(Flush(3, 1000, 0.001, 0.25))
    metrics.flushed(Flush(1, 0, 0.002, 0.5))
    samples = await scraped(metrics)
    sums = [samples[f"lazulite_flush_{name}_sum", ()] for name in ("commits", "bytes", "write_seconds", "sync_seconds")]
    assert sums == pytest.approx([4, 1000, 0.003, 0.75])
    assert samples["lazulite_flush_commits_bucket", (("le", "1.0"),)] == 1
    assert samples["lazulite_flush_commits_count", ()] == 2


async def test_readings_are_as_they_are_at_the_scrape() -> None:
    metrics = new()
    assert (await scraped(metrics, {"connections": 3}))["lazulite_connections", ()] == 3
    later = await scraped(metrics, {"connections": 4, "store_file_bytes": 5})
    assert (later["lazulite_connections", ()], later["lazulite_store_file_bytes", ()]) == (4, 5)
    assert ("lazulite_store_file_bytes", ()) not in await scraped(metrics, {"connections": 4})
    assert {f"store_{name}" for name in (*STATISTICS, "writable")} < set(READINGS)


async def test_readings_whose_names_end_in_total_are_counters() -> None:
    families = await new().families(lambda: {"overtaken_rows_total": 3, "connections": 1})
    overtaken = families["lazulite_overtaken_rows"]
    assert (overtaken.kind, overtaken.samples) == ("counter", {("lazulite_overtaken_rows_total", ()): 3})
    assert families["lazulite_connections"].kind == "gauge"


async def test_the_process_has_metrics() -> None:
    samples = await scraped(new())
    assert samples["process_resident_memory_bytes", ()] > 0
    assert samples["process_open_fds", ()] > 0
    assert samples["lazulite_info", (("version", "1.2.3"),)] == 1
    assert {name.partition("_")[0] for name, _ in samples} == {"lazulite", "process", "python"}
    assert not [name for name, _ in samples if name.endswith("_created")]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(), st.integers(), st.text(), st.text()), max_size=20))
async def test_unknown_names_share_a_label(seen: list[tuple[str, int, str, str]]) -> None:
    metrics = new()
    for operation, status, code, query_class in seen:
        request = Request("GET", "/", record=RequestRecord("", "", operation, query_class, 1, 1))
        metrics.record(Exchange(request, Response(status, error_code=code), 1, 1, 1))
    for _, labels in await scraped(metrics):
        given_labels = dict(labels)
        assert given_labels.get("operation", NONE) in {*TABLE.operations, NONE, OTHER}
        assert given_labels.get("status", OTHER) in {*map(str, REASONS), OTHER}
        assert given_labels.get("code", OTHER) in {*CATALOGUE, OTHER}
        assert given_labels.get("class", OTHER) in {*CLASSES, OTHER}
    assert len(metrics._known) <= len(TABLE.operations) * len(REASONS)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "PUT", "DELETE", "MERGE", "PATCH", "HEAD", "OPTIONS", "TRACE"]),
            st.sampled_from(["Tables", "t", "t()", "t(PartitionKey='a',RowKey='b')", "$batch", "", "Tables('t')"])
            | st.text(),
            st.sampled_from(["", "comp=acl", "comp=properties&restype=service", "$filter=a eq 1"]) | st.text(),
        ),
        max_size=10,
    )
)
async def test_what_clients_send_adds_no_series(sent: list[tuple[str, str, str]]) -> None:
    metrics, client = new(), Client(MemoryEngine(lambda: 0))
    before = len(await scraped(metrics))
    respond = client.service.respond

    async def heard(request: Request) -> Response:
        response = respond(request)
        response = response if isinstance(response, Response) else await response
        metrics.record(Exchange(request, response, 1, 1, 1))
        return response

    client.service.respond = heard  # type: ignore[method-assign]  # it hears what goes through
    for method, path, query in sent:
        await client(method, path, query, headers={"origin": "x"})
    samples = await scraped(metrics)
    assert OTHER not in {value for _, labels in samples for _, value in labels}
    series_max = len(TABLE.operations) * (len(REQUEST_SECONDS) + 6) + len(CATALOGUE) + len(CLASSES)
    assert len(samples) - before <= series_max


async def test_nothing_of_a_request_is_reported() -> None:
    metrics = new()
    request = Request("SECRET", "/SECRET", "sig=SECRET", {"authorization": "SECRET"}, b"SECRET", client="SECRET")
    request.record.account = DEVELOPMENT_ACCOUNT.name
    metrics.record(Exchange(request, Response(403, [("SECRET", "SECRET")], b"SECRET", "SECRET"), 1, 1, 1))
    metrics.failed("SECRET", ValueError("SECRET"))
    page = await metrics.render(dict)
    assert b"SECRET" not in page
    assert DEVELOPMENT_ACCOUNT.name.encode() not in page


class Slow(Collector):
    """A part of the page that takes until it is let go."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.hurried = False

    def collect(self) -> Iterator[GaugeMetricFamily]:
        self.hurried |= not self.gate.wait(10)
        yield GaugeMetricFamily("slow", "", 1)


async def test_a_scrape_holds_up_nobody() -> None:
    metrics, slow = new(), Slow()
    metrics._registry.register(slow)
    slow.gate.clear()
    page = MetricsPage(lambda: metrics.render(dict))
    scrapes = [asyncio.ensure_future(response_of(page, Request("GET", "/metrics"))) for _ in range(20)]
    for _ in range(20):
        await asyncio.sleep(0)
        metrics.record(exchange("QueryEntity", 200))
    assert not any(scrape.done() for scrape in scrapes)
    slow.gate.set()
    assert {response.status for response in await asyncio.gather(*scrapes)} == {200}
    assert not slow.hurried, "the loop waited for the page"
