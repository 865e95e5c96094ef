"""Fair scheduling of requests for servers that do none themselves, such as those of ASGI."""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, Service
from lazulite.server.admission.scheduler import Lane, Meter, paced


class Scheduled:
    """A service whose requests go through a lane once they have had more than a time slice of the event loop.

    Args:
        inner: the service that answers the requests.
        lane: lets one slow request on at a time, and short requests past.
    """

    def __init__(self, inner: Service, lane: Lane) -> None:
        self._inner = inner
        self._lane = lane

    async def handle(self, request: Request) -> Response:
        """See `Service`."""
        meter = Meter()
        response = await paced(self._inner.handle(request), self._lane, meter)
        if not meter.turns:
            self._lane.passed()
        return response

    def refuse(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.refuse(request, error)
