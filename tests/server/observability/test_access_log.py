"""One JSON line a request, and no secrets."""

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.server.observability.access_log import RequestLog
from lazulite.server.observability.exchange import Exchange


def clock() -> int:
    return UNIX_EPOCH_TICKS + 1_795_184_329_123 * 10_000


def logged(exchange: Exchange) -> list[dict[str, object]]:
    output = io.BytesIO()
    log = RequestLog(output, clock)
    log.record(exchange)
    log.close()
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_fields() -> None:
    request = Request(
        "GET",
        "/secretpath",
        "sig=SECRET",
        {"authorization": "SECRET"},
        b"SECRET",
        client="192.0.2.1",
        id="i",
        record=RequestRecord("", "a", "QueryEntities", "row range", 7, 5),
    )
    response = Response(404, [("Location", "SECRET")], b"SECRET", "ResourceNotFound")
    (line,) = logged(Exchange(request, response, 1.23456, 6, 100))
    assert line == {
        "time": "2026-11-20T14:18:49.123Z",
        "id": "i",
        "account": "a",
        "operation": "QueryEntities",
        "method": "GET",
        "status": 404,
        "error": "ResourceNotFound",
        "ms": 1.235,
        "scanned": 7,
        "returned": 5,
        "class": "row range",
        "gate": "",
        "bytes_in": 6,
        "bytes_out": 100,
        "client": "192.0.2.1",
    }
    assert "SECRET" not in json.dumps(line)


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text())
def test_any_text_stays_on_one_line_of_json(account: str, code: str) -> None:
    request = Request(code, "/", id=code, record=RequestRecord(account=account))
    (line,) = logged(Exchange(request, Response(200, [], b"", code), 0, 0, 0))
    assert (line["account"], line["error"], line["method"]) == (account, code, code)


def test_failures_say_where_but_not_what() -> None:
    output = io.BytesIO()
    log = RequestLog(output, clock)
    try:
        _ = {"a": 1}["SECRET"]
    except KeyError as failure:
        log.failed("i", failure)
    log.close()
    line = json.loads(output.getvalue())
    assert (line["id"], line["failure"]) == ("i", "KeyError")
    assert line["at"][-1].startswith("test_access_log.py:")
    assert b"SECRET" not in output.getvalue()


def test_dropped_lines_are_reported_as_json() -> None:
    output = io.BytesIO()
    log = RequestLog(output, clock, lines_max=0)
    log.record(Exchange(Request("GET", "/"), Response(200), 0, 0, 0))
    log.close()
    assert json.loads(output.getvalue()) == {"time": "2026-11-20T14:18:49.123Z", "dropped": 1}


def test_an_injected_fault_is_marked() -> None:
    request = Request("GET", "/", record=RequestRecord(fault=Fault("busy", Effect.ERROR, "ServerBusy")))
    (line,) = logged(Exchange(request, Response(503), 0, 0, 0))
    assert (line["fault"], line["effect"]) == ("busy", "error")
