"""What a fault does to a request of a service, before and after its operation; see `lazulite.faults`.

The kernel calls it at one place each, for all services. What happens to the connection is the HTTP server's to do.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, Never, TypeAlias

from lazulite.engine.frozen import FrozenEngine
from lazulite.faults.rule import Subject
from lazulite.faults.rules import FaultSource
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fault import FAULT_HEADER, Break, Effect, Fault, Moment
from lazulite.protocol.message import Request, Response
from lazulite.service.routing import AnyCall, Route

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Waits so many seconds."""


class Addressed(NamedTuple):
    """What a request is about, for conditions of rules; see `Subject`."""

    resource: str
    key: str = ""
    changes: bool | None = None
    """Whether it may change something; None: as its route tells."""


class FaultInjection:
    """Applies faults to the requests of one service.

    Args:
        source: tells what requests suffer from.
        service: the name of the service.
        sleep: waits.
    """

    __slots__ = ("_service", "_sleep", "_source")

    def __init__(self, source: FaultSource, service: str, sleep: Sleep = asyncio.sleep) -> None:
        self._source = source
        self._service = service
        self._sleep = sleep

    def note_clock(self, request: Request) -> None:
        """Mark a request while the clock of the service is off."""
        request.record.fault = self._source.clock_fault(self._service)

    async def before(self, call: AnyCall, route: Route[Never], addressed: Addressed, *, is_part: bool) -> None:
        """Decide about a request whose body was received, and do what comes before its operation.

        Args:
            call: the request.
            route: of it.
            addressed: what it is about.
            is_part: whether it is a part of a batch.

        Raises:
            ServiceError: the request is rejected, or never answered.
        """
        fault = await self._source.decide(
            Subject(
                self._service,
                route.operation,
                call.account,
                addressed.resource.lower(),
                addressed.key,
                call.request.headers,
                secondary=call.address.secondary,
                changes=not route.is_secondary if addressed.changes is None else addressed.changes,
                is_part=is_part,
            )
        )
        if fault is None:
            return
        call.record.fault = fault
        if fault.moment is Moment.AFTER:
            return
        if fault.effect is Effect.DELAY:
            await self._sleep(float(fault.value))
        elif fault.effect in _REJECTIONS:
            raise ServiceError(str(fault.value))
        elif fault.effect is Effect.STALE:
            rows = self._source.rows_before(fault.rule)
            if rows is not None:
                call.context = replace(call.context, engine=FrozenEngine(call.context.engine, rows))
        elif fault.effect is Effect.RESET and fault.value == Break.REQUEST:
            raise ServiceError("InternalError")  # It is not sent: the connection is reset.

    async def after(self, fault: Fault, response: Response) -> None:
        """Do what comes after an operation that has succeeded.

        Args:
            fault: of the request.
            response: of the operation. Its content is closed if it is not to be sent.

        Raises:
            ServiceError: the client is to believe that it has failed.
        """
        if fault.moment is not Moment.AFTER:
            return
        try:
            if fault.effect is Effect.DELAY:
                await self._sleep(float(fault.value))
            elif fault.effect is Effect.ERROR:
                raise ServiceError(str(fault.value))
        except BaseException:
            if response.content is not None:
                await response.content.aclose()
            raise


_REJECTIONS = frozenset({Effect.ERROR, Effect.OVERTAKEN})


def addressed_by_url(call: AnyCall) -> Addressed:
    """Return what the URL of a call is about."""
    resource, _, key = call.resource.name.partition("/")
    return Addressed(resource, key or "/".join(call.resource.keys))


def mark(fault: Fault, response: Response) -> None:
    """Name the rule in a response, if it is to be shown."""
    if fault.shown:
        response.headers.append((FAULT_HEADER, fault.rule))


def page_entries(call: AnyCall, most: int) -> int:
    """Return how many entries a page may have, given how many the request allows."""
    fault = call.record.fault
    return min(most, int(fault.value)) if fault is not None and fault.effect is Effect.PAGE else most
