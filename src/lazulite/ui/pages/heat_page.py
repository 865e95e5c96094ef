"""The heat map of a table, queue or container, and what its traffic says about the keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from lazulite.app.commands import KEY_SAMPLE, TRAFFIC, KeySampleArguments, TrafficArguments
from lazulite.control.command import ControlError
from lazulite.settings.addresses import BLOB, QUEUE, TABLE
from lazulite.traffic.codec import decode
from lazulite.traffic.findings import Finding, busiest, findings, shares_of
from lazulite.traffic.heat_map import HeatMap, HotRange, heat_map
from lazulite.traffic.key_sample import KeySample
from lazulite.traffic.meter import ResourceTraffic
from lazulite.traffic.picture import joined, shown
from lazulite.ui.calls import Context, PageCall, PageError

NOUNS = {TABLE: "table", QUEUE: "queue", BLOB: "container"}
PERIODS = {600: "10 minutes", 3600: "1 hour", 21600: "6 hours", 86400: "1 day", 604800: "7 days", 2419200: "28 days"}
"""Seconds that a map can show -> their text."""
DEFAULT_SECONDS = 3600
NAMES_MAX = 100
RANGES_MAX = 20
PARTITIONS_MAX = 10


@dataclass(frozen=True, slots=True)
class HeatPanel:
    """The reads or the writes: entities per second by range and time."""

    title: str
    rows: Sequence[Sequence[float]]
    most: float


@dataclass(frozen=True, slots=True)
class HeatView:
    """A heat map, its neighbours without traffic joined, as the page shows it."""

    begin: int
    """The Unix time of the first column."""
    seconds: int
    """The time of a column."""
    columns: int
    starts: Sequence[str]
    panels: Sequence[HeatPanel]
    hottest: Sequence[HotRange]
    partitions: Sequence[tuple[str, float]]
    """Keys with their share of the traffic."""


async def show_heat(call: PageCall) -> Context:
    """Return the heat map of the resource that the query names; without one, the names of resources."""
    service = call.query.get("service", TABLE)
    if service not in NOUNS:
        raise PageError(HTTPStatus.BAD_REQUEST, f"there is no service {service[:20]!r}")
    last = next((each for each in PERIODS if str(each) == call.query.get("last")), DEFAULT_SECONDS)
    name = call.query.get("name", "")
    context: dict[str, Any] = {"service": service, "name": name, "last": last, "periods": PERIODS, "nouns": NOUNS}
    context |= {"names": await names_of(call, service), "view": None, "findings": [], "problem": ""}
    if not name:
        return context
    try:
        items: Any = await call.command(TRAFFIC, TrafficArguments(name, call.account, service))
    except ControlError as error:
        if error.code not in ("no-meter", "no-traffic"):
            raise
        return {**context, "problem": error.code}
    traffic = decode(items)
    found = heat_map(name, traffic, items[0]["time"], float(last))
    return {
        **context,
        "view": _view(service, found, traffic),
        "findings": await _findings(call, service, name, traffic),
    }


async def names_of(call: PageCall, service: str) -> Sequence[str]:
    """Return the first names of a service's tables, queues or containers; none if it is not served."""
    if service not in call.backend.services:
        return []
    client = call.service(service)
    if service == TABLE:
        headers = {"Accept": "application/json;odata=nometadata"}
        found = await client.send("GET", "Tables", {"$top": str(NAMES_MAX)}, headers)
        return [each["TableName"] for each in found.json()["value"]]
    root = (await client.send("GET", "", {"comp": "list", "maxresults": str(NAMES_MAX)})).xml()
    tag = "Queue" if service == QUEUE else "Container"
    return [each.findtext("Name") or "" for each in root.iter(tag)]


def _view(service: str, found: HeatMap, traffic: ResourceTraffic) -> HeatView:
    starts, rows = joined(found)
    panels = [HeatPanel(title, each, max(map(max, each), default=0.0)) for title, each in rows.items()]
    shares = shares_of(service, traffic, PARTITIONS_MAX)
    texts = [shown(each) for each in starts]
    return HeatView(found.begin, found.seconds, found.columns, texts, panels, found.hottest(RANGES_MAX), shares)


async def _findings(call: PageCall, service: str, name: str, traffic: ResourceTraffic) -> Sequence[Finding]:
    sample = KeySample()
    if service == TABLE:
        (item,) = await call.command(KEY_SAMPLE, KeySampleArguments(name, call.account, busiest(traffic)))
        sample = KeySample.of(item)
    return list(findings(traffic, sample))
