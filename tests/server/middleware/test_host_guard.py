import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, response_of
from lazulite.server.middleware.forwarded import Proxied
from lazulite.server.middleware.host_guard import REPORTS_MAX, HostGuard
from tests.server.wire import Echo

from .test_forwarded import PROXIES


def guard(inner: Echo, *, guarded: bool = True, reports: list[str] | None = None) -> HostGuard:
    report = [] if reports is None else reports
    return HostGuard(
        inner, lambda: guarded, names=["Lazulite", "2001:db8::5"], suffixes=["tables.test"], report=report.append
    )


async def answer(host: str | None, method: str = "GET", *, guarded: bool = True) -> tuple[int, str]:
    inner = Echo()
    request = Request(method, "/a/Tables", headers={} if host is None else {"host": host})
    response = await response_of(guard(inner, guarded=guarded), request)
    assert inner.requests == ([request] if response.status == 200 else [])
    return response.status, response.error_code


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:10002",
        "192.0.2.7",
        "192.0.2.7.",
        "[::1]",
        "[::1]:10002",
        "[2001:db8::1]:1",
        "localhost",
        "LocalHost:10002",
        "localhost.",
        "orders.table.localhost:10002",
        "any.localhost",
        "lazulite",
        "LAZULITE:10002",
        "lazulite.",
        "tables.test",
        "orders.Tables.Test:80",
        None,
    ],
)
async def test_known_hosts_are_answered(host: str | None) -> None:
    assert (await answer(host))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "rebound.example:10002",
        "xlocalhost",
        "localhost.example",
        "127.0.0.1.example",
        "127.0.0.1.localhost.example",
        "xtables.test",
        "lazulite.example",
        "orders.lazulite",
        "0x7f.1",
        "2130706433",
        "127.1",
        "",
        ":10002",
        ".",
        "a" * 300 + ".localhost",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_other_hosts_are_rejected_while_the_key_is_public(host: str, method: str) -> None:
    assert await answer(host, method) == (400, "InvalidHeaderValue")
    assert (await answer(host, method, guarded=False))[0] == 200


async def test_the_host_in_front_of_a_trusted_proxy_counts() -> None:
    async def status(client: str, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        service = Proxied(guard(Echo()), PROXIES)
        return (await response_of(service, Request("GET", "/", headers=named, client=client))).status

    assert await status("192.0.2.1", host="inside", x_forwarded_host="lazulite") == 200
    assert await status("192.0.2.1", host="127.0.0.1", x_forwarded_host="rebound.example") == 400
    assert await status("198.51.100.1", host="rebound.example", x_forwarded_host="lazulite") == 400
    assert await status("198.51.100.1", host="127.0.0.1", x_forwarded_host="rebound.example") == 200


async def test_each_of_the_first_hosts_that_are_rejected_is_reported_once() -> None:
    reports: list[str] = []
    service = guard(Echo(), reports=reports)
    for number in [*range(REPORTS_MAX + 9), *range(REPORTS_MAX + 9)]:
        await response_of(service, Request("GET", "/", headers={"host": f"h{number}.example:1"}))
    await response_of(service, Request("GET", "/", headers={"host": "a" * 300}))
    assert len(reports) == REPORTS_MAX
    assert "--allowed-host h0.example" in reports[0]


def test_rejections_are_the_inner_services() -> None:
    assert guard(Echo()).reject(Request("", ""), ServiceError("InvalidInput")).body == b"InvalidInput"
