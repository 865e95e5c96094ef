"""Sends the responses of a connection.

Invariants: a request has one response at most. A response tells whether another may follow; after the last one the
connection ends. After a rejection that ends it, input is read and dropped for a while: closing a socket with unread
input would reset it and could take the response away from the client (RFC 9112 section 9.6).
"""

from lazulite.protocol.message import Response
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.encoder import body_of, encode_head
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.observability.exchange import Exchange


def reject(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Respond to a request that has an error."""
    assert pending.error is not None
    server = connection.server
    connection.gate.account.rejected()
    pending.started_s = server.clock()
    server.release(pending)
    respond(connection, pending, server.service.reject(pending.request, pending.error))


def respond(connection: ConnectionParts, pending: PendingRequest, response: Response, *, linger: bool = False) -> None:
    """Send a response without content."""
    head = begin_response(connection, pending, response)
    body = body_of(response, pending.request.method)
    if connection.outbound is not None:
        connection.outbound.write(head, body)
    end_response(connection, pending, response, len(head) + len(body), linger=linger)


def begin_response(connection: ConnectionParts, pending: PendingRequest, response: Response) -> bytes:
    """Return a response's head; from now on, the request has its response."""
    pending.answered = True
    if not pending.complete and not pending.discards:
        _drop_body(connection, pending)
    keep_alive = pending.keep_alive and not connection.server.stopping
    pending.keep_alive = keep_alive
    return encode_head(response, keep_alive=keep_alive, http_1_0=pending.http_1_0)


def end_response(
    connection: ConnectionParts, pending: PendingRequest, response: Response, sent_bytes: int, *, linger: bool = False
) -> None:
    """Log a response that was written, and end the connection if it was the last one."""
    server = connection.server
    if server.logs:
        log_response(connection, pending, response, server.clock(), sent_bytes)
    if not pending.keep_alive:
        end_connection(connection, pending, linger=linger)


def log_response(
    connection: ConnectionParts, pending: PendingRequest, response: Response, begun_s: float, sent_bytes: int
) -> None:
    """Log a response, given when it began and how many bytes of it were written."""
    elapsed_ms = (begun_s - pending.started_s) * 1000
    exchange = Exchange(pending.request, response, elapsed_ms, pending.received_bytes, sent_bytes)
    for log in connection.server.logs:
        log.record(exchange)


def end_connection(connection: ConnectionParts, pending: PendingRequest, *, linger: bool = False) -> None:
    """End the connection after its last response."""
    if not connection.ending:
        linger = linger or not pending.complete or pending.error is not None
        connection.end(linger=linger and not connection.eof)


def _drop_body(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Read no more of a body that the service did not want, but to find the next request behind it."""
    if pending.expects_continue and not pending.received_bytes:
        pending.keep_alive = False  # Its client may or may not send the body: only closing is clear to both.
    elif (pending.length or 0) - pending.received_bytes > connection.server.limits.discarded_bytes:
        pending.keep_alive = False
    pending.discard()
    connection.inbound.parser.discard()
