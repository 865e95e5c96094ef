"""Operations behind the gate of partitions, and what a request owes it once it has its response.

While the gate is active, cached plans and templates rest: each request is compiled, and passes here.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Generic

from lazulite.partitions.live import Charge, LivePartitions
from lazulite.protocol.message import Request, Response, ResponseContent, Window
from lazulite.service.metered import respond
from lazulite.service.routing import CallT_contra, Keys, PreparedOperation, Route


class GatedOperation(PreparedOperation, Generic[CallT_contra]):
    """The operation of one call, which is prepared once the gate lets it pass.

    Args:
        gate: decides.
        route: of the call.
        call: its request has its body.
    """

    __slots__ = ("_call", "_gate", "_route")

    def __init__(self, gate: LivePartitions, route: Route[CallT_contra], call: CallT_contra) -> None:
        self._gate = gate
        self._route = route
        self._call = call

    @property
    def lasts(self) -> bool:
        """False: it is of one call."""
        return False

    def respond(self, request: Request, keys: Keys) -> Coroutine[object, None, Response]:  # noqa: ARG002 - they are the call's
        """See `PreparedOperation`."""
        coming = request.body_to_come
        size = len(request.body) if coming is None else coming.length or 0
        charge = self._call.charge()._replace(size=size, writes=not self._route.is_secondary)
        return self._respond(request, charge)

    async def _respond(self, request: Request, charge: Charge) -> Response:
        record = request.record
        response = await self._gate.run(charge, record, partial(respond, self._route, self._call))
        more = max(0, record.rows_returned - 1) if charge.counts_rows else 0
        self._gate.owe(charge, more)
        _charge_bytes(response, partial(self._gate.owe, charge, 0))
        return response


def settle(gate: LivePartitions, request: Request, response: Response) -> None:
    """Note in a response what the gate did, and charge the account for its bytes."""
    record = request.record
    if record.gate:
        duration = f";dur={record.gate_seconds * 1000:.3f}" if record.gate_seconds else ""
        response.headers.append(("Server-Timing", f'gate;desc="{record.gate}"{duration}'))
    if record.account and not response.error_code:
        _charge_bytes(response, partial(gate.owe_bytes, record.account))


def _charge_bytes(response: Response, charge: Callable[[int], None]) -> None:
    """Have a charge made for the bytes of a body: of content, for what is sent of it, which is nothing for a HEAD."""
    if response.content is None:
        charge(len(response.body))
    else:
        response.content = ChargedContent(response.content, charge)


class ChargedContent:
    """Content that is charged for as it is sent. Implements `ResponseContent`.

    Args:
        content: closed with this.
        charge: takes a number of bytes.
    """

    def __init__(self, content: ResponseContent, charge: Callable[[int], None]) -> None:
        self._content = content
        self._charge = charge

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return self._content.length

    @property
    def held_bytes(self) -> int:
        """See `ResponseContent`."""
        return self._content.held_bytes

    async def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`."""
        async for chunk in self._content.chunks():
            self._charge(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        await self._content.aclose()
