"""What a browser gets at `/`."""

import pytest

from lazulite.protocol.message import Request, Response, response_of
from lazulite.server.middleware.health import Health
from lazulite.server.middleware.landing_page import LandingPage

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8", "host": "127.0.0.1:10002"}


class InnerService:
    """A service that says that it was asked."""

    def respond(self, _: Request) -> Response:
        return Response(418)

    def reject(self, *_: object) -> Response:
        raise AssertionError


async def check() -> None:
    """Find all well."""


def front() -> Health:
    return Health(InnerService(), check, page=LandingPage("table", lambda host: host.startswith("orders.")))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_browser_is_shown_what_this_is_and_where_the_documentation_lies(method: str) -> None:
    request = Request(method, "/", headers=BROWSER)
    response = front().respond(request)
    assert isinstance(response, Response)
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
    assert (await response_of(front(), request_)).status == 418
    without = Health(InnerService(), check)
    assert (await response_of(without, Request("GET", "/", headers=BROWSER))).status == 418
