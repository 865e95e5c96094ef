"""Fair scheduling of requests for servers that do none themselves, such as those of ASGI."""

from collections.abc import Coroutine

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service
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

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        response = self._inner.respond(request)
        if not isinstance(response, Response):
            return self._scheduled(response)
        self._scheduler.note_short_request()
        return response

    async def _scheduled(self, work: Coroutine[object, None, Response]) -> Response:
        meter = CpuMeter()
        response = await schedule_fairly(work, self._scheduler, meter)
        if not meter.slices:
            self._scheduler.note_short_request()
        return response

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)
