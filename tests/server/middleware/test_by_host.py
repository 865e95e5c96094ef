"""Several services on one port: the host decides, for whole requests and for malformed ones."""

from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, response_of
from lazulite.server.middleware.by_host import ByHost, HostedService


class Named:
    """A service that responds with its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def respond(self, request: Request) -> EventualResponse:
        return Response(201, reason=self._name) if request.method == "GET" else self._respond()

    async def _respond(self) -> Response:
        return Response(200, reason=self._name)

    def reject(self, request: Request, error: ServiceError) -> Response:
        return Response(error.status, reason=self._name)


SERVICE = ByHost(
    [
        HostedService(Addressing(["table.localhost", "table.example.org"]).names_account, Named("table")),
        HostedService(Addressing(["queue.localhost", "queue.example.org"]).names_account, Named("queue")),
    ]
)
HOSTS = {
    "acct.table.localhost": "table",
    "acct.queue.localhost": "queue",
    "acct.queue.example.org:10002": "queue",
    "ACCT-secondary.QUEUE.localhost.": "queue",
    "queue.localhost": "table",
    ".queue.localhost": "table",
    "acct.queue.localhost.evil.example": "table",
    "127.0.0.1:10002": "table",
    "": "table",
    f"{'a' * 300}.queue.localhost": "queue",
}


async def test_the_host_decides_and_the_first_service_has_all_other_hosts() -> None:
    for host, name in HOSTS.items():
        request = Request("GET", "/", headers={"host": host})
        ready = SERVICE.respond(request)
        assert isinstance(ready, Response)
        assert ready.reason == name, host
        assert SERVICE.reject(request, ServiceError("InvalidUri")).reason == name, host
    put = Request("PUT", "/", headers={"host": "acct.queue.localhost"})
    assert (await response_of(SERVICE, put)).reason == "queue"
    assert (await response_of(SERVICE, Request("GET", "/"))).reason == "table", "HTTP/1.0 has no host"
