"""Middleware around a service whose responses are ready, or wait: it hands on either kind."""

from collections.abc import Callable

import pytest

from lazulite.app.application import LoopbackGuard
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import EventualResponse, Request, Response, Service, response_of
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.middleware.forwarded import Proxied
from lazulite.server.middleware.health import Health
from lazulite.server.middleware.host_guard import HostGuard
from lazulite.server.middleware.scheduling import Scheduled
from lazulite.server.observability.metrics_endpoint import MetricsPage
from tests.server.wire import Echo

from .test_forwarded import PROXIES


async def _well() -> None:
    pass


async def _page() -> bytes:
    return b""


def request(path: str = "/a/t", host: str = "localhost", client: str = "192.0.2.1", **headers: str) -> Request:
    forwarded = {f"x-forwarded-{name}": value for name, value in headers.items()}
    return Request("GET", path, headers=Fields.of({"host": host, **forwarded}), client=client)


def _guard(inner: Service) -> Service:
    return HostGuard(inner, lambda: True, names=["lazulite"], suffixes=[], report=lambda _: None)


WRAPPERS: list[Callable[[Service], Service]] = [
    _guard,
    lambda inner: Health(inner, _well),
    lambda inner: Proxied(inner, PROXIES),
    lambda inner: Scheduled(inner, FairScheduler()),
    lambda inner: LoopbackGuard(inner, lambda: False),
]


def responding(status: int = 200) -> Echo:
    echo = Echo()
    echo.now = lambda _: Response(status)
    return echo


def status(response: EventualResponse) -> int:
    assert isinstance(response, Response), "it is ready"
    return response.status


@pytest.mark.parametrize("wrap", WRAPPERS)
async def test_it_hands_on_what_is_ready_and_what_waits(wrap: Callable[[Service], Service]) -> None:
    assert status(wrap(responding(201)).respond(request())) == 201
    waiting = wrap(Echo()).respond(request())
    assert not isinstance(waiting, Response)
    assert (await waiting).status == 200


def test_a_rejection_is_ready() -> None:
    assert status(_guard(responding()).respond(request(host="rebound.example"))) == 400
    assert status(LoopbackGuard(responding(), lambda: True).respond(request())) == 403
    assert status(LoopbackGuard(responding(), lambda: True).respond(request(client="127.0.0.1"))) == 200


async def test_a_health_check_and_a_page_of_metrics_wait() -> None:
    for service, path in ((Health(responding(), _well), "/health"), (MetricsPage(_page), "/metrics")):
        response = service.respond(request(path))
        assert not isinstance(response, Response)
        assert (await response).status == 200


def test_a_request_is_seen_as_in_front_of_the_proxies() -> None:
    seen = request(host="inside", proto="https", **{"for": "198.51.100.7"})
    seen.headers = Fields.of({**seen.headers, "x-forwarded-host": "lazulite"})
    assert status(Proxied(_guard(responding()), PROXIES).respond(seen)) == 200
    assert (seen.scheme, seen.headers["host"], seen.client) == ("https", "lazulite", "198.51.100.7")
    assert isinstance(seen.headers, Fields)
    untrusted = Fields.of({**seen.headers, "host": "inside"})
    assert seen.headers.steady != untrusted.steady


async def test_a_short_request_counts_as_passed() -> None:
    scheduler = FairScheduler()
    Scheduled(responding(), scheduler).respond(request())
    assert scheduler.short_request_count == 1
    await response_of(Scheduled(Echo(), scheduler), request())
    assert scheduler.short_request_count == 2
