"""What the request path keeps for analytics, and what it does not."""

import sys
from types import FrameType, SimpleNamespace
from typing import cast

from lazulite.analytics.exchange_buffer import ExchangeBuffer, RecordedExchange
from lazulite.protocol.message import RequestRecord, Response
from lazulite.protocol.template import Answer, Template
from lazulite.server.observability.exchange import ExchangeLog, RepeatedExchange
from lazulite.service.properties import Logging, Metrics, ServiceProperties
from tests.analytics.samples import ALL, NOW, answered, request_of


def test_the_buffer_is_among_the_logs_only_while_an_account_asks_for_analytics() -> None:
    logs: list[ExchangeLog] = []
    buffer = ExchangeBuffer(logs, lambda: NOW)
    buffer.note("table", "one", ServiceProperties())
    assert logs == []
    buffer.note("table", "one", ALL)
    buffer.note("queue", "two", ServiceProperties(minute_metrics=Metrics(enabled=True)))
    assert logs == [buffer]
    buffer.note("table", "one", ServiceProperties())
    assert logs == [buffer]
    buffer.note("queue", "two", ServiceProperties())
    assert logs == []


def test_each_switch_alone_asks_for_analytics() -> None:
    asking = [
        ServiceProperties(logging=Logging(read=True)),
        ServiceProperties(logging=Logging(write=True)),
        ServiceProperties(logging=Logging(delete=True)),
        ServiceProperties(hour_metrics=Metrics(enabled=True)),
        ServiceProperties(minute_metrics=Metrics(enabled=True)),
    ]
    assert all(each.asks_for_analytics for each in asking)
    assert not ServiceProperties().asks_for_analytics


def test_exchanges_of_other_accounts_and_services_are_not_kept() -> None:
    buffer = ExchangeBuffer([], lambda: NOW)
    buffer.note("table", "acct", ALL)
    buffer.record(answered(request_of("queue", "GetMessages"), Response(200)))
    assert buffer.take(10) == []
    buffer.record(answered(request_of("table", "QueryEntity"), Response(200)))
    assert [
        exchange.record.operation for _, _, exchange in buffer.take(10) if isinstance(exchange, RecordedExchange)
    ] == ["QueryEntity"]


def test_what_does_not_fit_is_dropped_and_counted_and_room_comes_back() -> None:
    buffer = ExchangeBuffer([], lambda: NOW, bytes_max=20_000)
    buffer.note("table", "acct", ALL)
    exchange = answered(request_of("table", "QueryEntity", headers={"user-agent": "x" * 4000}), Response(200))
    for _ in range(10):
        buffer.record(exchange)
    kept = len(buffer.take(100))
    assert 2 <= kept <= 4
    assert buffer.counts.dropped_exchanges == 10 - kept
    buffer.record(exchange)
    assert len(buffer.take(100)) == 1


def test_the_names_of_headers_count() -> None:
    buffer = ExchangeBuffer([], lambda: NOW, bytes_max=12_000)
    buffer.note("table", "acct", ALL)
    for _ in range(2):
        buffer.record(answered(request_of("table", "QueryEntity", headers={"x" * 9000: ""}), Response(200)))
    assert buffer.counts.dropped_exchanges == 1


def test_the_names_in_a_change_set_and_the_fields_of_a_response_count() -> None:
    big = Response(200, [("x-ms-meta-a", "y" * 9000)])
    buffer = ExchangeBuffer([], lambda: NOW, bytes_max=12_000)
    buffer.note("blob", "acct", ALL)
    buffer.record(answered(request_of("blob", "GetBlob"), big))
    buffer.record(answered(request_of("blob", "GetBlob"), big))
    assert buffer.counts.dropped_exchanges == 1


def test_the_collector_is_woken_by_the_first_exchange_alone() -> None:
    buffer, woken = ExchangeBuffer([], lambda: NOW), list[bool]()
    buffer.on_first = lambda: woken.append(True)
    buffer.note("table", "acct", ALL)
    for _ in range(3):
        buffer.record(answered(request_of("table", "QueryEntity"), Response(200)))
    assert len(woken) == 1


def test_the_request_path_makes_three_calls() -> None:
    """It takes less than 3 µs: what is made of an exchange is made elsewhere."""
    buffer = ExchangeBuffer([], lambda: NOW)
    buffer.note("table", "acct", ALL)
    record = RequestRecord("2020-12-06", "acct", "QueryEntity", service="table")
    template = cast("Template", SimpleNamespace(record=record))
    values = (b"p", b"r")
    exchange = RepeatedExchange(template, values, Answer(200, ""), (100, 0, 200, 10), "id", "10.1.2.3", 0.1, 1.0)
    buffer.repeat(exchange)
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        buffer.repeat(exchange)
    finally:
        sys.setprofile(None)
    assert calls == ["repeat", "_keep", "<lambda>"], "the last one is the clock"
    assert [kept for _, _, kept in buffer.take(10)] == [exchange] * 2
