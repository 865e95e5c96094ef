"""The dashboard and the documentation name the numbers and the spans that there are."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import get_args

from prometheus_client.parser import text_string_to_metric_families

from lazulite.engine.rocksdb.flush_stats import Flush
from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.server.limits import KIB, MIB, Limits
from lazulite.server.observability import tracing
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.metrics import READINGS, Metrics, page_of
from lazulite.server.observability.metrics_endpoint import PAGE_LIMITS
from lazulite.server.workers.metrics import ANSWER_SECONDS_MAX, WorkerMetrics
from lazulite.table.query.filter import QueryClass
from lazulite.table.service import TABLE

from .docs_support import ROOT, page_text, table_rows

DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""


def busy() -> Exchange:
    """Return an exchange that counts in every metric and has every attribute."""
    fault = Fault("r", Effect.DELAY)
    record = RequestRecord("", "a", "QueryEntities", "point", 1, 1, gate="partition", fault=fault)
    request = Request("GET", "/", client="c", id="i", record=record)
    return Exchange(request, Response(500, error_code="InternalError"), 1, 1, 1)


async def scrape() -> dict[str, set[str]]:
    """Return the names of a page's samples, each with its labels."""
    metrics = Metrics("1", TABLE.operations, get_args(QueryClass))
    metrics.record(busy())
    metrics.failed("", ValueError())
    metrics.flushed(Flush(1, 1, 1, 1))
    families = await metrics.families(lambda: dict.fromkeys(READINGS, 1), lambda: {"hit": 1})
    page = await page_of(await WorkerMetrics(1).families(families))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def panels() -> list[dict[str, object]]:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the dashboard with its legend."""
    for panel in panels():
        targets = panel["targets"]
        assert isinstance(targets, list)
        for target in targets:
            yield target["expr"], target["legendFormat"]


async def test_the_dashboard_asks_for_what_there_is() -> None:
    known = await scrape()
    asked: set[str] = set()
    for query, legend in queries():
        found = re.findall(r"\b(\w+)\{([^}]*)\}", query)
        assert found, query
        for name, matchers in found:
            assert name in known, name
            asked.add(name)
            grouped = re.findall(r"by \(([^)]*)\)", query)
            words = {word.strip() for group in grouped for word in group.split(",")}
            labels = {*words, *re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers), *re.findall(r"\{\{(\w+)\}\}", legend)}
            assert labels <= known[name] | SCRAPED, (query, legend)
    for name in known:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if name.startswith("lazulite_"):
            assert {name, f"{base}_bucket", f"{base}_sum", f"{base}_count"} & asked, f"{name} is on no panel"


def test_the_dashboard_can_be_imported() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    identities = [panel["id"] for panel in board["panels"]]
    assert len(set(identities)) == len(identities)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text(encoding="utf-8")))
    assert used == variables | {"__rate_interval", "__all"}
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells), "panels overlap"
    assert max(x for x, _ in cells) < 24
    for query, _ in queries():
        assert query.count("(") == query.count(")"), query
        assert query.count("{") == query.count("}"), query


async def test_every_metric_is_documented() -> None:
    names = {
        name if name.endswith("_total") else re.sub(r"_(bucket|sum|count)$", "", name)
        for name in await scrape()
        if name.startswith("lazulite_")
    }
    rows = [row[0].strip("`") for row in table_rows("docs/operations/monitoring.md")]
    assert sorted(row for row in rows if row.startswith("lazulite_")) == sorted(names)


def test_every_attribute_of_a_span_is_documented() -> None:
    rows = table_rows("docs/operations/monitoring.md")
    documented = {
        name for row in rows for name in re.findall(r"`((?:http|url|client|db|error|lazulite)\.[a-z_.]+)`", row[0])
    }
    assert documented == set(tracing._attributes(busy()))


def test_the_bounds_are_documented() -> None:
    changed = {
        field.name for field in fields(Limits) if getattr(PAGE_LIMITS, field.name) != getattr(Limits(), field.name)
    }
    assert changed == {"connections", "body_bytes", "buffered_bytes", "drain_seconds"}
    rows = {tuple(row) for row in table_rows("docs/limits.md") if len(row) == 2}
    assert {
        ("its `connections`", f"{PAGE_LIMITS.connections}"),
        ("its `body_bytes`", f"{PAGE_LIMITS.body_bytes // KIB} KiB"),
        ("its `buffered_bytes`", f"{PAGE_LIMITS.buffered_bytes // MIB} MiB"),
        ("its `drain_seconds`", f"{PAGE_LIMITS.drain_seconds:g} s"),
    } <= rows
    text = " ".join(page_text("docs/operations/monitoring.md").split())
    assert f"waits for the workers for {ANSWER_SECONDS_MAX:g} second at most" in text
    assert f"waits at most {tracing.SHUTDOWN_SECONDS:g} seconds" in text
    assert f"{tracing.PATH_CHARACTERS_MAX:,} characters at most" in text
