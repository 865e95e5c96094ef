"""Fair scheduling without connections."""

import asyncio

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, response_of
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.middleware.scheduling import Scheduled
from tests.server.wire import Clock, Echo


async def test_a_slow_request_goes_by_turns_and_a_short_one_counts_as_passed() -> None:
    clock = Clock()
    scheduler = FairScheduler(work_clock=clock, clock=clock, demand_clock=clock)
    turns: list[str] = []
    enter = scheduler.enter

    class Slow(Echo):
        async def echo(self, request: Request) -> Response:
            if request.id == "slow":
                clock.now_s += 0.002
                await asyncio.sleep(0)
            return await super().echo(request)

    def entered(go: object, *, slices: int | None = None) -> None:
        turns.append("turn")
        enter(go, slices=slices)  # type: ignore[arg-type]  # handed on as it is

    scheduler.enter = entered  # type: ignore[method-assign]  # watched
    service = Scheduled(Slow(), scheduler)
    await response_of(service, Request("GET", "/", id="slow"))
    assert (turns, scheduler.short_request_count) == (["turn"], 0)
    await response_of(service, Request("GET", "/", id="short"))
    assert (turns, scheduler.short_request_count) == (["turn"], 1)
    assert service.reject(Request("GET", "/"), ServiceError("ServerBusy")).error_code == "ServerBusy"
