"""The services of the registry fit the server that serves them."""

from lazulite.app.registry import SERVICES
from lazulite.server.limits import Limits


def test_the_server_holds_the_longest_body_of_each_operation() -> None:
    routes = [route for service in SERVICES for route in service.routes.rows if not route.streams]
    assert max(route.body for route in routes) == Limits().body_bytes
