"""Middleware around a service that responds at once: it decides as it does for requests that wait."""

from collections.abc import Callable

import pytest

from lazulite.app.loopback_guard import LoopbackGuard
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, Response, Service
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


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_it_hands_a_request_on(wrap: Callable[[Service], Service]) -> None:
    response = wrap(responding(201)).at_once(request())
    assert response is not None
    assert response.status == 201
    assert wrap(Echo()).at_once(request()) is None


def test_a_rejection_is_left_to_handle() -> None:
    assert _guard(responding()).at_once(request(host="rebound.example")) is None
    assert LoopbackGuard(responding(), lambda: True).at_once(request()) is None
    assert LoopbackGuard(responding(), lambda: True).at_once(request(client="127.0.0.1")) is not None


def test_a_health_check_is_not_answered_at_once() -> None:
    assert Health(responding(), _well).at_once(request("/health")) is None
    assert MetricsPage(_page).at_once(request("/metrics")) is None


def test_a_request_is_seen_as_in_front_of_the_proxies() -> None:
    seen = request(host="inside", proto="https", **{"for": "198.51.100.7"})
    seen.headers = Fields.of({**seen.headers, "x-forwarded-host": "lazulite"})
    assert Proxied(_guard(responding()), PROXIES).at_once(seen) is not None
    assert (seen.scheme, seen.headers["host"], seen.client) == ("https", "lazulite", "198.51.100.7")
    assert isinstance(seen.headers, Fields)
    untrusted = Fields.of({**seen.headers, "host": "inside"})
    assert seen.headers.steady != untrusted.steady


def test_a_short_request_counts_as_passed() -> None:
    scheduler = FairScheduler()
    Scheduled(responding(), scheduler).at_once(request())
    assert scheduler.short_request_count == 1
    Scheduled(Echo(), scheduler).at_once(request())
    assert scheduler.short_request_count == 1
