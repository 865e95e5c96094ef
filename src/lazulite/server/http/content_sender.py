"""Sends a response in windows: one whose body is made while it is sent, and one with a long body.

Invariants: an exception before the head is the request's failure; after it, or with a wrong length, the connection
ends, so that no client takes a part for the whole. No more is made than the client takes. A response whose head was
sent is logged, with the bytes that were sent of it.
"""

from lazulite.protocol.body import ResponseContent, Window
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
        ValueError: the content has not the length that it announced.
        ClientDisconnectedError: the client has gone meanwhile.
    """
    try:
        if pending.answered:
            return
        begun_s = connection.server.clock()
        if connection.outbound is None:
            log_response(connection, pending, response, begun_s, 0)
            return
        head = begin_response(connection, pending, response)
        sent_bytes = len(head)
        connection.on(Event.CONTENT_STARTED)
        connection.outbound.write(head, b"")

        async def send(window: Window) -> None:
            nonlocal sent_bytes
            await _send_window(connection, window)
            sent_bytes += len(window)

        whole = False
        try:
            if pending.request.method != "HEAD":
                await send_windows(content, send, TimeSlice(SLICE_SECONDS, connection.server.clock))
            whole = True
        finally:
            if not whole:
                connection.abort()
            log_response(connection, pending, response, begun_s, sent_bytes)
        if not pending.keep_alive:
            end_connection(connection, pending)
    finally:
        await content.aclose()


async def _send_window(connection: ConnectionParts, window: Window) -> None:
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
