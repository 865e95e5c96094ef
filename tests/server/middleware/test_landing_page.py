"""What a browser gets at `/`."""

import pytest

from lazulite.protocol.message import Request, Response
from lazulite.server.middleware.health import Health
from lazulite.server.middleware.landing_page import LandingPage

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8", "host": "127.0.0.1:10002"}


class Inner:
    """A service that says that it was asked."""

    def at_once(self, _: Request) -> Response | None:
        return Response(418)

    async def handle(self, _: Request) -> Response:
        return Response(418)

    def reject(self, *_: object) -> Response:
        raise AssertionError


async def check() -> None:
    """Find all well."""


def front() -> Health:
    return Health(Inner(), check, page=LandingPage("table", lambda host: host.startswith("orders.")))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_browser_is_shown_what_this_is_and_where_the_documentation_lies(method: str) -> None:
    request = Request(method, "/", headers=BROWSER)
    at_once, handled = front().at_once(request), await front().handle(request)
    assert at_once is not None
    for response in (at_once, handled):
        assert response.status == 200
        assert dict(response.headers)["Content-Type"].startswith("text/html")
        assert b"This is Lazulite, a server of Azure Table storage" in response.body
        assert b"docs/README.md" in response.body
    assert request.record.operation == "LandingPage"


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/", headers={"accept": "application/json"}),
        Request("GET", "/"),
        Request("PUT", "/", headers=BROWSER),
        Request("GET", "/", "comp=list", headers=BROWSER),
        Request("GET", "/orders", headers=BROWSER),
        Request("GET", "/", headers={**BROWSER, "authorization": "SharedKey a:b"}),
        Request("GET", "/", headers={**BROWSER, "host": "orders.table.localhost"}),
    ],
)
async def test_all_other_requests_are_the_services(request_: Request) -> None:
    at_once = front().at_once(request_)
    assert at_once is not None
    assert at_once.status == (await front().handle(request_)).status == 418
    without = Health(Inner(), check)
    assert (await without.handle(Request("GET", "/", headers=BROWSER))).status == 418
