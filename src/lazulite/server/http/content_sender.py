"""Sends a response in windows: one whose body is made while it is sent, and one with a long body.

Invariants: the head is sent when the first window is there, so what keeps that from being read fails the request. An
exception after the head, or a wrong length, ends the connection, so that no client takes a part for the whole. No
more is made than the client takes. A response whose head was sent is logged, with the bytes that were sent of it.

Memory for a window is reserved before it is made, and given to others that wait once the client has taken it. A client
that takes too long is disconnected while others wait (`crowded_window_seconds`).
"""

from lazulite.protocol.body import ResponseContent, Window
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Response
from lazulite.server.admission.scheduler import SLICE_SECONDS
from lazulite.server.content_windows import send_windows
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.response_sender import begin_response, end_connection, log_response
from lazulite.server.http.states import Event, State
from lazulite.service.time_slice import TimeSlice


async def send_content(
    connection: ConnectionParts, pending: PendingRequest, response: Response, content: ResponseContent
) -> None:
    """Send a response and its content, unless the client has one already or has gone.

    Raises:
        ServiceError: `ServerBusy`, there was no memory for a window in time.
        EngineError: the first window cannot be read.
        ValueError: the content has not the length that it announced.
        ClientDisconnectedError: the client has gone meanwhile.
    """
    try:
        if pending.answered:
            return
        if connection.outbound is None:
            log_response(connection, pending, response, connection.server.clock(), 0)
            return
        memory = connection.memory
        memory.is_authenticated = memory.is_authenticated or pending.request.authenticated
        try:
            if content.held_bytes:
                memory.made_bytes = content.held_bytes
                connection.charge()
            elif pending.request.method != "HEAD":
                await _reserve_window(connection, pending)
            await _Sending(connection, pending, response).send(content)
        finally:
            memory.release_window()
            if memory.made_bytes:
                memory.made_bytes = 0
                connection.charge()
    finally:
        await content.aclose()


class _Sending:
    """One response on its way."""

    def __init__(self, connection: ConnectionParts, pending: PendingRequest, response: Response) -> None:
        self._connection = connection
        self._pending = pending
        self._response = response
        self._begun_s = 0.0
        self._sent_bytes = 0
        self._has_begun = False

    async def send(self, content: ResponseContent) -> None:
        """Send it. Raises as `send_content`."""
        connection, pending = self._connection, self._pending
        whole = False
        try:
            if pending.request.method == "HEAD":
                self._begin()
            else:
                time_slice = TimeSlice(SLICE_SECONDS, connection.server.clock)
                await send_windows(content, self._send_window, time_slice)
                self._begin()
            whole = True
        finally:
            if self._has_begun:
                if not whole:
                    connection.abort()
                log_response(connection, pending, self._response, self._begun_s, self._sent_bytes)
        if not pending.keep_alive:
            end_connection(connection, pending)

    def _begin(self) -> None:
        """Send the head, unless it was sent."""
        connection = self._connection
        if self._has_begun:
            return
        if connection.outbound is None or connection.ending or self._pending.answered:
            raise ClientDisconnectedError
        self._has_begun = True
        self._begun_s = connection.server.clock()
        head = begin_response(connection, self._pending, self._response)
        self._sent_bytes = len(head)
        connection.on(Event.CONTENT_STARTED)
        connection.outbound.write(head, b"")

    async def _send_window(self, window: Window) -> None:
        connection = self._connection
        self._begin()
        outbound = connection.outbound
        if outbound is None or connection.ending:
            raise ClientDisconnectedError
        outbound.write(b"", window)
        if outbound.blocked:
            connection.on(Event.WRITES_BLOCKED)
            await outbound.writable()
            connection.on(Event.WRITES_RESUMED)
        else:
            connection.enter(State.SENDING)
        self._sent_bytes += len(window)
        window_budget = connection.memory.window_budget
        if window_budget is not None and window_budget.is_crowded:
            connection.memory.release_window()
            await _reserve_window(connection, self._pending)


async def _reserve_window(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Reserve memory for a window, perhaps after others.

    Raises:
        ServiceError: `ServerBusy`, others had it all the time.
        ClientDisconnectedError: the client has gone meanwhile.
    """
    outbound, memory, budgets = connection.outbound, connection.memory, connection.server.budgets
    if outbound is None:
        raise ClientDisconnectedError
    budget = budgets.windows if memory.is_authenticated else budgets.public_windows
    pending.waits_for_room = True
    try:
        is_reserved = await budget.reserve(memory.window_bytes, connection.server.limits.request_seconds, outbound.turn)
    except TimeoutError:
        raise ServiceError("ServerBusy") from None
    finally:
        pending.waits_for_room = False
    if not is_reserved:
        raise ClientDisconnectedError
    memory.window_budget = budget
    connection.enter(connection.state)  # The wait was not the client's, nor the service's.
