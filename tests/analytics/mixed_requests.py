"""Mixed requests to all services: metrics, the lines of `$logs` and the request log must agree.

`python -m tests.analytics.mixed_requests 100000` makes so many requests, and prints what was counted.
"""

import asyncio
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple, TypeAlias

from azure.storage.blob import BlobServiceClient
from benchmarks.requests import account_sas, shared_key

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.metrics import MetricsCounter, partition_of
from lazulite.analytics.metrics_upkeep import MetricsUpkeep
from lazulite.analytics.metrics_writer import MetricsWriter
from lazulite.app.servers import ServerGroup, open_servers
from lazulite.app.stores import open_store
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.engine.contract import Engine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.server.observability.access_log import RequestLog
from lazulite.settings.addresses import SERVICES
from lazulite.settings.config import Settings
from tests.analytics.counted import ACCOUNT, HOUR, MINUTE, START
from tests.analytics.world import logged
from tests.table.client import Client, values
from tests.torture.http_client import Answer, Connection

CONNECTIONS = 8
JSON = "application/json"
CHANGES = 2
"""Of each batch of entities."""
BEGIN = datetime(2024, 10, 4, tzinfo=UTC)
PHASES = (0, MINUTE, 2 * MINUTE, HOUR, HOUR + 3 * MINUTE)
"""When the requests come, from `START` on."""
LATE = 59 * TICKS_PER_SECOND
"""The clock stands late in a minute: the requests of a phase begin and end in it."""
SAS = {name: account_sas("9999-12-31T23:59:59Z", name[0], "rwdlacup") for name in SERVICES}
WRONG = f"{SAS['blob']}x"
SOURCE = f"http://127.0.0.1/{ACCOUNT}/docs/source?{SAS['blob']}"
NAMES = {"GetMessages": "GetMessage", "PeekMessages": "PeekMessage", "": "Unknown"}
"""Name of an operation in the request log -> its name in metrics, where they differ."""
PROPERTIES = (
    '<?xml version="1.0"?><StorageServiceProperties>'
    "<Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
    + "".join(
        f"<{kind}><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
        f"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></{kind}>"
        for kind in ("HourMetrics", "MinuteMetrics")
    )
    + "</StorageServiceProperties>"
)


class Sent(NamedTuple):
    """A request."""

    service: str
    bytes_: bytes
    is_known: bool = True
    """Whether analytics knows of it: all but failures of requests without credentials."""


def raw(
    service: str, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: str = ""
) -> bytes:
    """Return the bytes of a request; `path` is below the account."""
    fields = {"Host": "127.0.0.1", "x-ms-version": "2019-02-02", "Content-Length": str(len(body)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    account = f"{ACCOUNT}-secondary" if path.startswith("-") else ACCOUNT
    target = f"/{account}/{path.removeprefix('-')}{'?' if query else ''}{query}"
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n{body}".encode()


def signed(
    service: str, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = "", more: str = ""
) -> Sent:
    """Return a request with a SAS."""
    return Sent(service, raw(service, method, path, f"{more}{'&' if more else ''}{SAS[service]}", headers, body))


def mixed(random: Random, now: int) -> Iterator[Sent]:
    """Yield requests without end."""
    json_ = {"Content-Type": JSON, "Accept": "application/json;odata=nometadata"}
    block = {"x-ms-blob-type": "BlockBlob"}
    date = (datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=now // 10)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    while True:
        key = random.randrange(200)
        entity, body = f"Things(PartitionKey='p',RowKey='{key}')", json.dumps({"PartitionKey": "p", "RowKey": str(key)})
        keyed = {**json_, "x-ms-date": date, "Authorization": shared_key("GET", f"/{ACCOUNT}/{entity}", date, JSON)}
        yield signed("table", "POST", "Things", json_, body)
        yield signed("table", "GET", entity, json_)
        yield Sent("table", raw("table", "GET", entity, headers=keyed))
        yield signed("table", "GET", f"-{entity}", json_)
        yield signed("table", "PUT", entity, json_, "{}")
        yield signed("table", "DELETE", entity, {**json_, "If-Match": "*"})
        yield signed("table", "GET", "Things()", json_, more="$top=3")
        yield signed("table", "POST", "$batch", {"Content-Type": "multipart/mixed; boundary=b"}, change_set(key))
        yield Sent("table", raw("table", "GET", entity), is_known=False)
        yield signed("queue", "POST", "jobs/messages", body="<QueueMessage><MessageText>m</MessageText></QueueMessage>")
        yield signed("queue", "GET", "jobs/messages")
        yield signed("queue", "GET", "jobs/messages", more="peekonly=true")
        yield signed("queue", "GET", "none/messages")
        yield signed("blob", "PUT", f"docs/{key}", block, "x" * key)
        yield signed("blob", "GET", f"docs/{key}")
        yield signed("blob", "HEAD", f"docs/{key + 100}")
        yield signed("blob", "GET", f"docs/{key}", {"If-Modified-Since": date})
        yield Sent("blob", raw("blob", "GET", f"docs/{key}"), is_known=False)
        refused = key % 4 == 0  # Seldom enough for the share that refused requests have of the lines.
        yield Sent("blob", raw("blob", "GET", f"docs/{key}", WRONG if refused else SAS["blob"]))
        yield signed("blob", "PUT", f"copies/{key}", {"x-ms-copy-source": SOURCE})
        yield signed("blob", "DELETE", f"docs/{key}")
        yield signed("blob", "GET", "docs", more="restype=container&comp=list&maxresults=3")


def change_set(key: int) -> str:
    """Return the body of a batch of two writes."""
    part = (
        "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"PUT http://127.0.0.1/{ACCOUNT}/Things(PartitionKey='b',RowKey='{{}}') HTTP/1.1\r\n"
        "Content-Type: application/json\r\n\r\n{{}}\r\n"
    )
    parts = part.format(key) + part.format(key + 1)
    return f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--b--\r\n"


Fact: TypeAlias = tuple[str, int, int]
"""A line of `$logs`: the id of its request, its number and its HTTP status."""


class Outcome(NamedTuple):
    """What was counted: by table, interval and RowKey."""

    by_log: Counter[tuple[str, str, str]]
    by_metrics: Counter[tuple[str, str, str]]
    lines_expected: Counter[Fact]
    """By the request log."""
    lines: Counter[Fact]
    """Of `$logs`."""
    requests: int
    """That the log has, and analytics knows."""
    dropped: int


class Clock:
    """The time of the server."""

    def __init__(self) -> None:
        self.now = START - HOUR

    def __call__(self) -> int:
        return self.now


async def count_requests(count: int, seed: int = 1) -> Outcome:
    """Make requests on a new server in memory, and return what was counted."""
    clock, output, unknown = Clock(), io.BytesIO(), set[str]()
    settings = Settings(accounts={ACCOUNT: DEVELOPMENT_ACCOUNT}, accept_clock_jump=True, log_requests=False)
    log = RequestLog(output, clock, lines_max=count + 100)
    async with open_store(settings, clock=clock) as store:
        async with open_servers(settings, store, logs=[log], clock=clock) as servers:
            await servers.start()
            await _prepare(servers)
            for number, offset in enumerate(PHASES):
                clock.now = START + offset + LATE
                requests = mixed(Random(seed + number), clock.now)
                unknown |= await _load(servers, requests, count // len(PHASES))
            await servers.stop()
        log.close()
        counts = servers.analytics
        dropped = counts.dropped_exchanges + counts.uncounted + counts.dropped_lines + counts.refused_lines
        clock.now = START + 2 * HOUR
        await _publish(store.engine, clock)
        by_metrics = await _by_metrics(store.engine)
        async with open_servers(settings, store, clock=clock) as servers:
            await servers.start()
            logged_lines = await asyncio.to_thread(_lines, servers.ports["blob"].http)
            await servers.stop()
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    known = [line for line in lines if line["time"] >= "2024-10-04" and line["id"] not in unknown]
    expected = Counter(fact for line in known for fact in _facts(line))
    return Outcome(_by_log(known), by_metrics, expected, logged_lines, len(known), dropped)


async def _prepare(servers: ServerGroup) -> None:
    connections = await _connect(servers)
    for service in SERVICES:
        more = "restype=service&comp=properties"
        request = signed(service, "PUT", "", {"x-ms-version": "2019-02-02"}, PROPERTIES, more)
        assert (await connections[service].ask(request.bytes_)).status == 202
    for request in (
        signed("table", "POST", "Tables", {"Content-Type": "application/json"}, '{"TableName":"Things"}'),
        signed("queue", "PUT", "jobs"),
        signed("blob", "PUT", "docs", more="restype=container"),
        signed("blob", "PUT", "copies", more="restype=container"),
        signed("blob", "PUT", "docs/source", {"x-ms-blob-type": "BlockBlob"}, "x"),
    ):
        answer = await connections[request.service].ask(request.bytes_)
        assert answer.status in (201, 204), answer
    for connection in connections.values():
        await connection.close()


async def _connect(servers: ServerGroup) -> dict[str, Connection]:
    return {name: await Connection.open(f"127.0.0.1:{ports.http}") for name, ports in servers.ports.items()}


async def _load(servers: ServerGroup, requests: Iterator[Sent], count: int) -> set[str]:
    """Make requests on several connections, and return the ids of requests that analytics does not know."""
    left = iter(range(count))

    async def one() -> set[str]:
        connections, unknown = await _connect(servers), set[str]()
        for _ in left:
            request = next(requests)
            answer = await _ask(connections[request.service], request)
            assert (answer.status == 403) == (WRONG.encode() in request.bytes_), "only these are refused"
            if not request.is_known:
                assert answer.status >= 400
                unknown.add(answer.headers["x-ms-request-id"])
        for connection in connections.values():
            await connection.close()
        return unknown

    return set[str]().union(*await asyncio.gather(*(one() for _ in range(CONNECTIONS))))


async def _ask(connection: Connection, request: Sent) -> Answer:
    if not request.bytes_.startswith(b"HEAD ") and b"If-Modified-Since" not in request.bytes_:
        return await connection.ask(request.bytes_)
    connection.writer.write(request.bytes_)  # An answer to HEAD, and a 304, has no body.
    head = await connection.reader.readuntil(b"\r\n\r\n")
    status = int(head.split()[1])
    if request.bytes_.startswith(b"GET ") and status != 304:
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await connection.reader.readexactly(int(length.split(b":")[1]))
    return Answer(status, {}, b"")


async def _publish(engine: Engine, clock: Clock) -> None:
    """Do what the next process does when it starts."""
    counts = AnalyticsCounts()
    writer = MetricsWriter(engine, MetricsCounter(counts), clock, "next", lambda _: True, counts)
    await MetricsUpkeep(engine, writer, clock, "next", lambda _: True).maintain()
    assert counts.failed_rounds == 0


async def _by_metrics(engine: Engine) -> Counter[tuple[str, str, str]]:
    client, found = Client(engine), Counter[tuple[str, str, str]]()
    for service in SERVICES:
        for period in ("Minute", "Hour"):
            for place in ("Primary", "Secondary"):
                table = f"$Metrics{period}{place}Transactions{service.title()}"
                response = await client("GET", f"{table}()", f"$filter=PartitionKey%20ge%20'{partition_of(START)}'")
                for row in values(response) if response.status == 200 else ():
                    found[service + period, row["PartitionKey"], row["RowKey"]] += int(row["TotalRequests"])
    return +found


def _by_log(lines: list[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    found = Counter[tuple[str, str, str]]()
    for line in lines:
        time, service = line["time"], _SERVICE_OF_ID[line["id"].split("-")[1][-1]]
        minute = f"{time[:4]}{time[5:7]}{time[8:10]}T{time[11:13]}{time[14:16]}"
        name = NAMES.get(line["operation"], line["operation"])
        for period, interval in (("Minute", minute), ("Hour", f"{minute[:-2]}00")):
            for row in ("All", name):
                found[service + period, interval, f"user;{row}"] += 1
    return found


def _facts(line: dict[str, Any]) -> Iterator[Fact]:
    """Yield the lines that a request is to have (reference §18.1)."""
    parts = {"EntityGroupTransaction": CHANGES, "CopyBlob": 2}.get(line["operation"], 0)
    for number in range(1 + parts):
        yield line["id"], number, line["status"]


def _lines(port: int | None) -> Counter[Fact]:
    """Return the lines of `$logs` since `START`."""
    with BlobServiceClient(f"http://127.0.0.1:{port}/{ACCOUNT}", credential=SAS["blob"]) as blobs:
        return Counter(
            (line.request_id, line.number, line.http_status or 0) for line in logged(blobs) if line.start >= BEGIN
        )


_SERVICE_OF_ID = {"2": "table", "3": "queue", "e": "blob"}
"""The number of the service in the id of a request."""


def main() -> None:
    """Count so many requests as the command line says."""
    outcome = asyncio.run(count_requests(int(sys.argv[1])))
    assert outcome.by_log == outcome.by_metrics, (
        outcome.by_log - outcome.by_metrics,
        outcome.by_metrics - outcome.by_log,
    )
    assert outcome.lines == outcome.lines_expected, (
        outcome.lines_expected - outcome.lines,
        outcome.lines - outcome.lines_expected,
    )
    total = dict.fromkeys(("Minute All", "Minute operations", "Hour All", "Hour operations"), 0)
    for (table, _, row), found in outcome.by_metrics.items():
        period = "Minute" if table.endswith("Minute") else "Hour"
        total[f"{period} {'All' if row == 'user;All' else 'operations'}"] += found
    print(f"{outcome.requests:,} requests in the log, {outcome.dropped} dropped; rows: {total}")
    print(f"{outcome.lines.total():,} lines in $logs, as many as these requests are to have")
    operations = sorted({row.partition(";")[2] for _, _, row in outcome.by_metrics})
    print(", ".join(operations))


if __name__ == "__main__":
    main()
