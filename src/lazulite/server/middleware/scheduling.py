"""Fair scheduling of requests for servers that do none themselves, such as those of ASGI."""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, Service
from lazulite.server.admission.scheduler import CpuMeter, FairScheduler, schedule_fairly


class Scheduled:
    """A service whose requests are scheduled once they have had more than a time slice of the event loop.

    Args:
        inner: the service that answers the requests.
        scheduler: runs one slow request at a time and yields to short requests.
    """

    def __init__(self, inner: Service, scheduler: FairScheduler) -> None:
        self._inner = inner
        self._scheduler = scheduler

    async def handle(self, request: Request) -> Response:
        """See `Service`."""
        meter = CpuMeter()
        response = await schedule_fairly(self._inner.handle(request), self._scheduler, meter)
        if not meter.slices:
            self._scheduler.note_short_request()
        return response

    def at_once(self, request: Request) -> Response | None:
        """See `Service`."""
        response = self._inner.at_once(request)
        if response is not None:
            self._scheduler.note_short_request()
        return response

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)
