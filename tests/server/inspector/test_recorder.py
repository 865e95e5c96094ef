"""What is recorded, within its bounds, and what is never: bodies, keys, signatures."""

import asyncio
import gc
import tracemalloc
from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.protocol.secret_headers import SECRET_HEADERS
from lazulite.protocol.template import Answer, Template
from lazulite.server.inspector import recorder as module
from lazulite.server.inspector.recorded import RecordedRequest, RequestFilter, read
from lazulite.server.inspector.recorder import REQUESTS_MAX, RequestRecorder
from lazulite.server.observability.exchange import Exchange, ExchangeLog, RepeatedExchange

TIMING = 'query;desc="row range";dur=1.500, scanned;desc="3", returned;desc="2"'


def exchange(
    service: str = "table",
    path: str = "/acct/T",
    query: str = "",
    headers: Mapping[str, str] = {},
    status: int = 200,
    **record: object,
) -> Exchange:
    facts = {"service": service, "account": "acct", "operation": "QueryEntities", **record}
    request = Request("GET", path, query, headers, b"BODY", client="192.0.2.1", id="id", record=RequestRecord(**facts))  # type: ignore[arg-type]  # of a test
    response = Response(status, [("Server-Timing", TIMING)], b"BODY", "Code" if status >= 400 else "")
    return Exchange(request, response, 1.5, 2, 3, total_ms=2.5)


EVERYTHING = RequestFilter()
NAMES = ["sig=", "SIG=", "%73ig=", "a=b&sig=", "x=", "$filter=sig%3d", "popreceipt="]


class Recording:
    """A recorder that is on, with a clock."""

    def __init__(self, bytes_max: int = module.BYTES_MAX) -> None:
        self.ticks = UNIX_EPOCH_TICKS
        self.logs: list[ExchangeLog] = []
        self.recorder = RequestRecorder(self.logs, self.clock, bytes_max=bytes_max)
        self.recorder.start(for_good=True)

    def clock(self) -> int:
        self.ticks += 1
        return self.ticks

    def found(self, wanted: RequestFilter = EVERYTHING) -> list[RecordedRequest]:
        held = [each for ring in self.recorder.held(wanted.service) for each in ring]
        return [read(name, each) for name, each in held if wanted.may_be(each) and wanted.is_in(read(name, each))]


def test_a_request_is_read_without_secrets() -> None:
    recording = Recording()
    headers = {
        "host": "h",
        "authorization": "SharedKey acct:SECRET",
        "x-ms-copy-source": "https://a/b?sig=SECRET",
        "x-ms-client-request-id": "mine",
        "x-own": "SECRET",
    }
    fault = Fault("slow", Effect.DELAY)
    recording.recorder.record(exchange("table", "/acct/T", "$top=1&sig=SECRET%3d&x=SECRET", headers, 404, fault=fault))
    (found,) = recording.found()
    assert (found.path, found.query) == ("/acct/T", "?$top=1&sig=REDACTED&REDACTED")
    assert (found.status, found.error_code, found.authorization) == (404, "Code", "Shared Key")
    assert (found.client_request_id, found.client, found.fault) == ("mine", "192.0.2.1", "slow: delay_seconds")
    assert (found.ms, found.total_ms, found.time) == (1.5, 2.5, "1970-01-01T00:00:00.000Z")
    assert found.cost is not None
    assert found.cost.line == "row range · 3 rows read · 2 returned · 1.5 ms · no index"
    assert dict(found.request_fields)["x-ms-copy-source"] == "https://a/b?REDACTED"
    assert "authorization" not in dict(found.request_fields)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["sig=", "SIG=", "%73ig=", "a=b&sig=", "x=", "$filter=sig%3d", "popreceipt="]), max_size=4
    ),
    st.dictionaries(st.sampled_from([*sorted(SECRET_HEADERS), "x-own", "referer", "x-ms-meta-a"]), st.just("")),
)
def test_nothing_secret_is_held_or_shown(names: list[str], headers: dict[str, str]) -> None:
    recording = Recording()
    query = "&".join(f"{name}SECRET" for name in names)
    recording.recorder.record(exchange(query=query, headers=dict.fromkeys(headers, "http://SECRET@a/?sig=SECRET")))
    (found,) = recording.found()
    assert "SECRET" not in str(found)
    (((_, held),),) = recording.recorder.held()
    shown_alone = {"x-own", "referer", "x-ms-meta-a"}
    if not {"x=", "popreceipt="} & set(names) and not shown_alone & set(headers):
        assert "SECRET" not in str(held)
    assert "BODY" not in str(held)


def test_the_last_requests_of_each_service_are_held() -> None:
    recording = Recording()
    for number in range(REQUESTS_MAX + 5):
        recording.recorder.record(exchange(path=f"/acct/{number}"))
    recording.recorder.record(exchange("queue"))
    recording.recorder.record(exchange(""))
    recording.recorder.record(exchange("", account=""))
    tables = recording.found(RequestFilter("table"))
    assert [found.path for found in (tables[0], tables[-1])] == [f"/acct/{REQUESTS_MAX + 4}", "/acct/5"]
    assert len(tables) == REQUESTS_MAX
    assert sorted({found.service for found in recording.found()}) == ["queue", "table", "web"]
    assert len(recording.found()) == REQUESTS_MAX + 2


def test_bytes_are_bounded_and_counted_generously() -> None:
    recording = Recording(bytes_max=2_000_000)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(300):
            headers = {f"x-ms-meta-{index}": f"{number}" * 50 for index in range(60)}
            headers["x-ms-meta-big"] = "x" * (number * 100)
            recording.recorder.record(exchange(path=f"/acct/{'p' * number}", headers=headers))
            recording.recorder.record(exchange("blob"))
        del headers
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert recording.recorder.held_bytes <= 2_000_000
    assert 10 < len(recording.found()) < 600
    assert taken <= recording.recorder.held_bytes + 200_000
    recording.recorder.stop()
    assert (recording.recorder.held_bytes, recording.found(), recording.logs) == (0, [], [])


async def test_it_stops_a_while_after_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS_MAX", 0.0)
    logs: list[ExchangeLog] = []
    recorder = RequestRecorder(logs, lambda: 1)
    assert not recorder.is_on
    recorder.start()
    recorder.start()
    assert logs == [recorder]
    for _ in range(5):
        await asyncio.sleep(0)
    assert (logs, recorder.is_on) == ([], False)
    recorder.start(for_good=True)
    recorder.start()
    for _ in range(5):
        await asyncio.sleep(0)
    assert recorder.is_on
    recorder.stop()


@pytest.mark.parametrize(
    ("status", "found"),
    [("", [200, 403, 404, 503]), ("4xx", [403, 404]), ("404", [404]), ("failed", [403, 404, 503]), ("refused", [403])],
)
def test_filter_by_status(status: str, found: list[int]) -> None:
    recording = Recording()
    for each in (200, 403, 404, 503):
        recording.recorder.record(exchange(status=each))
    assert sorted(each.status for each in recording.found(RequestFilter(status=status))) == found


def test_other_filters() -> None:
    recording = Recording()
    recording.recorder.record(exchange(path="/acct/Orders", headers={"x-ms-client-request-id": "Mine"}))
    later = (recording.ticks - UNIX_EPOCH_TICKS) / 10_000_000
    recording.ticks += 10_000_000
    recording.recorder.record(exchange(account="other", operation="GetBlob"))
    for wanted in (RequestFilter(text="orders"), RequestFilter(text="mine"), RequestFilter(account="acct")):
        assert [each.path for each in recording.found(wanted)] == ["/acct/Orders"]
    for wanted in (RequestFilter(text="getblob"), RequestFilter(since=later + 0.5)):
        assert [each.operation for each in recording.found(wanted)] == ["GetBlob"]
    assert recording.found(RequestFilter(id="none")) == []
    with pytest.raises(ValueError, match="status is such as"):
        RequestFilter(status="many")


@pytest.mark.parametrize(
    ("query", "headers", "kind"),
    [
        ("", {}, "none"),
        ("sv=1&ss=t&sig=x", {}, "account SAS"),
        ("sv=1&sr=b&sig=x", {}, "service SAS"),
        ("sv=1&skoid=a&sig=x", {}, "user delegation SAS"),
        ("", {"authorization": "Bearer x"}, "bearer token"),
        ("", {"authorization": "SharedKeyLite a:b"}, "Shared Key Lite"),
        ("", {"authorization": "Basic x"}, "unknown scheme"),
    ],
)
def test_kinds_of_credentials(query: str, headers: dict[str, str], kind: str) -> None:
    recording = Recording()
    recording.recorder.record(exchange(query=query, headers=headers))
    assert recording.found()[0].authorization == kind


class StubTemplate:
    """What the recorder asks of a template before its requests are read."""

    names = ("key", "authorization", "x-ms-date")
    record = RequestRecord(service="table", account="acct")


def test_answers_of_templates_wait_without_growing_and_lose_their_signatures() -> None:
    recording = Recording()
    for number in range(REQUESTS_MAX + 5):
        values = (b"%d" % number, b"SharedKey acct:SECRET", b"date")
        answer = Answer(200, "", b"")
        exchange = RepeatedExchange(
            cast("Template", StubTemplate()), values, answer, (300, 0, 100, 0), str(number), "c", 1.0, float(number)
        )
        recording.recorder.repeat(exchange)
    assert recording.recorder.held_bytes == 0
    ((*held,),) = recording.recorder.held()
    assert [each.id for _, each in (held[0], held[-1])] == [str(REQUESTS_MAX + 4), "5"]
    assert "SECRET" not in str(held)
    assert recording.recorder.held_bytes == REQUESTS_MAX * (300 + 100 + 1024)
