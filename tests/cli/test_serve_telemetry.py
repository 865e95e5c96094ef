"""`/metrics` and spans of the real command, and their absence without the flags."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient, TableTransactionError
from prometheus_client.parser import text_string_to_metric_families

from lazulite.app.services import open_logs
from lazulite.app.telemetry import metrics_server, new_metrics, trace_logs
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.cli.announcement import announcement
from lazulite.cli.parser import build_parser
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.server.server import Ports, Server
from lazulite.settings.config import Settings, settings_from
from tests.collector import attributes, collecting
from tests.server.wire import Echo
from tests.server_process import FREE_PORTS, SECONDS_MAX, ServerProcess

from .test_serve import rejected, serving

Series = dict[tuple[str, ...], float]


def page_url(server: ServerProcess) -> str:
    return server.lines[-1].removeprefix("metrics: ").strip()


def scrape(server: ServerProcess) -> str:
    with urlopen(page_url(server), timeout=SECONDS_MAX) as response:
        return str(response.read(), "ascii")


def series(page: str) -> Series:
    """Return what a page says, by name and values of labels."""
    return {
        (sample.name.removeprefix("lazulite_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def work(connection_string: str) -> None:
    """Do things whose numbers are known."""
    with TableServiceClient.from_connection_string(connection_string.strip(), retry_total=0) as service:
        table = service.create_table("orders")
        entities = [{"PartitionKey": "p", "RowKey": str(number), "V": number} for number in range(5)]
        table.create_entity(entities[0])
        with pytest.raises(HttpResponseError):
            table.create_entity(entities[0])
        table.submit_transaction([("create", entity) for entity in entities[1:]])
        with pytest.raises(TableTransactionError):
            table.submit_transaction([("create", entity) for entity in entities])
        assert len(list(table.query_entities("PartitionKey eq 'p' and V gt 2"))) == 2
        assert table.get_entity("p", "0")["V"] == 0
        with pytest.raises(HttpResponseError):
            table.get_entity("p", "SECRETKEY")


def test_requests_are_counted(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--metrics-port", "0", lines=3) as server:
        work(server.lines[1])
        page = scrape(server)
        found = series(page)
        assert {key[1:]: value for key, value in found.items() if key[0] == "requests_total"} == {
            ("CreateTable", "201"): 1,
            ("InsertEntity", "201"): 1,
            ("InsertEntity", "409"): 1,
            ("EntityGroupTransaction", "202"): 2,
            ("QueryEntities", "200"): 1,
            ("QueryEntity", "200"): 1,
            ("QueryEntity", "404"): 1,
        }
        # A rejection inside of a batch is part of its 202.
        assert found["errors_total", "EntityAlreadyExists"] == 1
        assert found["errors_total", "ResourceNotFound"] == 1
        assert found["queries_total", "partition scan"] == 1
        assert found["rows_scanned_total", "QueryEntities"] == 5
        assert found["rows_returned_total", "QueryEntities"] == 2
        assert found["rows_returned_total", "EntityGroupTransaction"] == 4
        assert found["request_seconds_count", "QueryEntity"] == 2
        # The table's creation, the insert, the batch; rejections of what is durable wait for nothing.
        assert found["flush_commits_count",] >= 3
        assert found["flush_sync_seconds_sum",] > 0
        assert found["flush_bytes_sum",] > 0
        assert found["store_memtable_bytes",] > 0
        assert (found["store_writable",], found["connections_max",]) == (1, 20_000)
        assert "SECRET" not in page
        assert "devstoreaccount1" not in page
        assert "orders" not in page
        code, log = server.stop()
        assert code == 0
        assert "/metrics" not in log
        assert log.count("\n") == 8, "scrapes are not logged"


def test_the_port_is_for_the_page_only(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "-s", "--metrics-port", "0", lines=3) as server:
        url = page_url(server)
        assert url.startswith("http://127.0.0.1:")
        assert f":{server.port}/" not in url
        for path in ("", "/", "/health", "/devstoreaccount1/Tables", "/metrics/x"):
            with pytest.raises(HTTPError) as rejection:
                urlopen(url.removesuffix("/metrics") + path, timeout=SECONDS_MAX)
            rejection.value.close()
            assert rejection.value.code == 404
        with pytest.raises(HTTPError) as rejection:
            urlopen(Request(url, b"x", method="POST"), timeout=SECONDS_MAX)
        rejection.value.close()
        assert rejection.value.code == 405
        with pytest.raises(HTTPError) as rejection:
            urlopen(f"{server.url}metrics", timeout=SECONDS_MAX)
        rejection.value.close()
        assert rejection.value.code == 404
        assert server.stop() == (0, "")


def test_a_stop_drains_the_service_and_then_the_page(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "-s", "--metrics-port", "0", lines=3) as server:
        here = ("127.0.0.1", int(server.port))
        with socket.create_connection(here, SECONDS_MAX) as client:
            client.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
            while series(scrape(server))["connections",] < 1:
                pass  # It has not been accepted yet.
            server.process.send_signal(signal.SIGTERM)
            while True:
                try:
                    socket.create_connection(here, SECONDS_MAX).close()
                except ConnectionError:
                    break  # It accepts no more.
            assert series(scrape(server))["connections",] >= 1
            client.sendall(b"b")
            assert client.recv(100).startswith(b"HTTP/1.1 404")
        out, err = server.process.communicate(timeout=SECONDS_MAX)
        assert (server.process.returncode, out, err) == (0, "", "")


def test_a_port_in_use_is_rejected(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        free = [*FREE_PORTS]
        assert port in rejected(1, "serve", "-l", str(tmp_path / "data"), *free, "--metrics-port", port)


def test_a_host_without_a_port_is_rejected() -> None:
    assert "--metrics-port" in rejected(2, "serve", "--metrics-host", "127.0.0.1")


def test_metrics_url_is_announced() -> None:
    settings = asked("--services", "table", "--metrics-port", "1", "--metrics-host", "::1")
    lines = announcement(settings, AccountDirectory({}), "store", {"table": Ports(10002, None)}, 1)
    assert list(lines)[-1] == "metrics: http://[::1]:1/metrics"


def test_requests_become_spans(tmp_path: Path) -> None:
    with (
        collecting() as collector,
        serving(tmp_path / "data", "-s", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as server,
    ):
        work(server.lines[1])
        assert server.stop() == (0, "")
    spans = [(span.name, attributes(span.attributes)) for span in collector.spans]
    assert [name for name, _ in spans] == [
        "POST CreateTable",
        "POST InsertEntity",
        "POST InsertEntity",
        "POST EntityGroupTransaction",
        "POST EntityGroupTransaction",
        "GET QueryEntities",
        "GET QueryEntity",
        "GET QueryEntity",
    ]
    assert [found["http.response.status_code"] for _, found in spans] == [201, 201, 409, 202, 202, 200, 200, 404]
    assert spans[5][1]["db.response.returned_rows"] == 2
    assert collector.resource["service.name"] == "lazulite"


def test_an_unreachable_collector_delays_no_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    data = tmp_path / "data"
    with serving(data, "-s", OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_TIMEOUT="1") as server:
        work(server.lines[1])
        code, err = server.stop()
        assert code == 0
        assert 0 < err.count("lazulite: traces: ") == err.count("\n") < 5


# Nothing when off.


def asked(*arguments: str, **environ: str) -> Settings:
    return settings_from(build_parser().parse_args(["serve", *arguments]), environ)


async def test_without_the_flags_nothing_is_installed() -> None:
    settings = asked("--silent")
    metrics = new_metrics(settings)
    assert metrics is None
    with ExitStack() as stack:
        assert open_logs(settings, stack) == []
    engine = RocksEngine.open(None, system_clock)
    server = Server(Echo(), host="127.0.0.1", port=0, new_request_id=lambda: "")
    async with metrics_server(settings, metrics, server, engine.statistics) as page:
        assert page is None
    await engine.close()


def test_without_the_flags_nothing_is_imported() -> None:
    code = (
        "import sys, asyncio, contextlib\n"
        "from lazulite.app import services, telemetry\n"
        "from lazulite.cli import parser\n"
        "from lazulite.settings.config import settings_from\n"
        "settings = settings_from(parser.build_parser().parse_args(['serve', '-s']), {})\n"
        "services.open_logs(settings, contextlib.ExitStack())\n"
        "telemetry.new_metrics(settings)\n"
        "print([name for name in sys.modules if name.startswith(('prometheus_client', 'opentelemetry'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "[]\n"


# What cannot be had is said.


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lazulite.server.observability.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    said: list[str] = []
    assert trace_logs(asked(OTEL_TRACES_EXPORTER="otlp"), said.append) == []
    (line,) = said
    assert "pip install '.[otel]'" in line


def test_an_unknown_exporter_is_said_and_left_out() -> None:
    said: list[str] = []
    assert trace_logs(asked(OTEL_TRACES_EXPORTER="zipkin", OTEL_EXPORTER_OTLP_PROTOCOL="grpc"), said.append) == []
    (log,) = trace_logs(asked(OTEL_TRACES_EXPORTER="console,zipkin"), said.append)
    log.close()
    assert said == ["no traces to 'zipkin': known are otlp (by http/protobuf) and console"] * 2


def test_variables_that_the_sdk_rejects_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    said: list[str] = []
    assert trace_logs(asked(OTEL_TRACES_EXPORTER="console"), said.append) == []
    (line,) = said
    assert line.startswith("no traces: ")
