"""Exchanges as the request path leaves them, for tests."""

from collections.abc import Sequence

from lazulite.analytics.exchange_buffer import ExchangeBuffer, KeptExchange
from lazulite.analytics.requests import LoggedRequest, RequestReader
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.server.observability.exchange import Exchange
from lazulite.service.properties import Logging, ServiceProperties

NOW = 135_000_000_000_000_000
ALL = ServiceProperties(logging=Logging(read=True, write=True, delete=True))
ACCOUNT = "acct"
SHARED_KEY = {"host": "127.0.0.1:10002", "authorization": "SharedKey acct:c2ln"}


def request_of(
    service: str,
    operation: str,
    method: str = "GET",
    path: str = "/acct/orders",
    query: str = "",
    headers: dict[str, str] | None = None,
) -> Request:
    """Return a request that a service has routed."""
    record = RequestRecord("2020-12-06", ACCOUNT, operation, service=service)
    sent = SHARED_KEY if headers is None else headers
    return Request(
        method, path, query, sent, client="10.1.2.3", id="b59c6c2a-0000-0000-0000-000000000000", record=record
    )


def recorded(exchange: Exchange, properties: ServiceProperties = ALL) -> list[KeptExchange]:
    """Return what a buffer keeps of an exchange."""
    buffer = ExchangeBuffer([], lambda: NOW)
    buffer.note(exchange.request.record.service, ACCOUNT, properties)
    buffer.record(exchange)
    return buffer.take(10)


def read(exchange: Exchange, properties: ServiceProperties = ALL) -> Sequence[LoggedRequest]:
    """Return an exchange as analytics sees it."""
    wanted = {(exchange.request.record.service, ACCOUNT): properties}
    addressings = {name: Addressing([f"{name}.localhost"]) for name in ("table", "queue", "blob")}
    reader = RequestReader(addressings, wanted)
    found = reader.read(recorded(exchange, properties))
    return [request for request in found if isinstance(request, LoggedRequest)]


def answered(request: Request, response: Response, *, is_whole: bool = True) -> Exchange:
    """Return the exchange of a request that took 12 ms, 7 of them in the service, with bodies of 5 and 100 bytes."""
    return Exchange(request, response, 7.0, 5, 300, 200, 12.0, is_whole)
