"""What the timeouts of a connection do, by the name that the table of transitions gives them."""

from collections.abc import Callable, Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.parser import Reading
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.response_sender import reject, respond
from lazulite.server.http.states import Action, State


def _close(connection: ConnectionParts) -> None:
    connection.end(linger=False)


def _check_body(connection: ConnectionParts) -> None:
    """Give up a body that makes no progress or comes too slowly; look again at the next tick."""
    if connection.body_is_too_slow():
        _reject_input(connection)


def _reject_input(connection: ConnectionParts) -> None:
    """Respond with 408, unless the request that never ends is a rejected one that has its response."""
    inbound = connection.inbound
    if connection.running is not None:
        connection.running.reject(ServiceError("OperationTimedOut", status=408), close=True)
        inbound.parser.discard()
        return
    pending = inbound.queue.popleft() if inbound.queue else None
    if pending is None and inbound.parser.reading is Reading.BODY:
        connection.end(linger=False)
        return
    pending = pending or PendingRequest(connection.new_request())
    pending.reject(ServiceError("OperationTimedOut", status=408), close=True)
    reject(connection, pending)


def _respond_timed_out(connection: ConnectionParts) -> None:
    """Respond for a service that takes too long; it goes on, and the connection counts until it is done."""
    pending = connection.running
    assert pending is not None
    pending.keep_alive = False
    timed_out = connection.server.service.reject(pending.request, ServiceError("OperationTimedOut"))
    respond(connection, pending, timed_out, linger=True)


def _check_tls_close(connection: ConnectionParts) -> None:
    """Disconnect a client that has everything but does not confirm the end, as TLS would have it."""
    if connection.outbound is not None:
        if connection.outbound.waits:
            connection.enter(State.LINGER)
        else:
            connection.outbound.abort()


def _check_writes(connection: ConnectionParts) -> None:
    """Disconnect a client that has taken nothing of its response for too long; look again at the next tick."""
    if connection.takes_too_little():
        connection.abort()


ACTIONS: Mapping[Action, Callable[[ConnectionParts], None]] = {
    Action.CLOSE: _close,
    Action.REJECT_INPUT: _reject_input,
    Action.CHECK_BODY: _check_body,
    Action.RESPOND_TIMED_OUT: _respond_timed_out,
    Action.CHECK_WRITES: _check_writes,
    Action.CHECK_TLS_CLOSE: _check_tls_close,
    Action.ABORT: ConnectionParts.abort,
}
