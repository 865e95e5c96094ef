"""What a fault does before and after an operation, without a server: waits are counted, not waited for."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lazulite.faults.rule import Subject
from lazulite.faults.rules import NO_FAULTS, NoFaults
from lazulite.protocol.addressing import Address
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fault import FAULT_HEADER, Effect, Fault, Moment
from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import Request, Response
from lazulite.service.fault_injection import Addressed, FaultInjection, mark
from lazulite.table.routes import ROUTES


class Content(JoinedContent):
    """Tells whether it was closed."""

    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True
        await super().aclose()


class Sleeper:
    """Counts the seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Source(NoFaults):
    """Decides the same about each request."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    async def decide(self, _: Subject) -> Fault:
        return self._fault


@pytest.mark.parametrize(("moment", "seconds"), [(Moment.BEFORE, 2.5), (Moment.AFTER, 0)])
async def test_a_request_waits_as_long_as_its_rule_says(moment: Moment, seconds: float) -> None:
    sleeper = Sleeper()
    fault = Fault("r", Effect.DELAY, 2.5, moment)
    injection = FaultInjection(Source(fault), "table", sleeper.sleep)
    request = Request("GET", "/a/Orders")
    call: Any = SimpleNamespace(
        account="a", request=request, record=request.record, address=Address("a", False, "Orders", "", "")
    )
    route = next(each for each in ROUTES.rows if each.operation == "QueryEntities")
    await injection.before(call, route, Addressed("Orders"), is_part=False)
    assert sleeper.seconds == seconds
    assert request.record.fault == fault


async def test_an_answer_waits_as_long_as_its_rule_says() -> None:
    sleeper = Sleeper()
    injection = FaultInjection(NO_FAULTS, "table", sleeper.sleep)
    await injection.after(Fault("r", Effect.DELAY, 2.5, Moment.AFTER), Response(200))
    assert sleeper.seconds == 2.5
    await injection.after(Fault("r", Effect.DELAY, 2.5), Response(200))
    assert sleeper.seconds == 2.5


async def test_a_success_is_answered_by_an_error() -> None:
    injection = FaultInjection(NO_FAULTS, "table")
    content = Content([b"abc"])
    response = Response(200, content=content)
    await injection.after(Fault("r", Effect.ERROR, "ServerBusy"), response)
    assert not content.is_closed
    with pytest.raises(ServiceError) as raised:
        await injection.after(Fault("r", Effect.ERROR, "ServerBusy", Moment.AFTER), response)
    assert raised.value.code == "ServerBusy"
    assert content.is_closed


async def test_the_content_of_an_answer_that_waits_is_closed_when_its_request_is_cancelled() -> None:
    async def cancelled(_: float) -> None:
        raise asyncio.CancelledError

    content = Content([b"abc"])
    injection = FaultInjection(NO_FAULTS, "table", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await injection.after(Fault("r", Effect.DELAY, 1, Moment.AFTER), Response(200, content=content))
    assert content.is_closed


def test_a_response_is_marked_if_it_is_to_be() -> None:
    response = Response(200)
    mark(Fault("r", Effect.DELAY), response)
    assert response.headers == []
    mark(Fault("r", Effect.DELAY, shown=True), response)
    assert response.headers == [(FAULT_HEADER, "r")]
