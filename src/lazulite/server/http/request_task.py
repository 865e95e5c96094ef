"""The request of a connection that the service works on.

Invariants:
- A request with good credentials and a complete body runs to its end, whether or not its client still listens. Only the
  end of a drain cancels it, and a query that waits for the scheduler for a client that has left. A request whose
  credentials are not checked yet is cancelled when its client leaves, or its connection is evicted.
- Any failure of a service gets a response and a log line.
- A request that the service responds to at once has no task, and is over when `respond_at_once` returns.
"""

import asyncio

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Request, Response
from lazulite.server.admission.scheduler import run_at_once, schedule_fairly
from lazulite.server.content_windows import content_of
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.content_sender import send_content
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.received_body import Reader, ReceivedBody
from lazulite.server.http.response_sender import respond
from lazulite.server.http.states import Event, State

_READS = frozenset({"GET", "HEAD"})
_SERVING = frozenset({State.SERVICE, State.BODY, State.SENDING, State.SENDING_BLOCKED})
_ON_REQUEST_STARTED = Event.REQUEST_STARTED
_ON_RESPONDED = Event.RESPONDED


def respond_at_once(connection: ConnectionParts, pending: PendingRequest) -> bool:
    """Respond to a request whose service need not wait for anything; return False if it has to."""
    server, request = connection.server, pending.request
    gate, memory = connection.gate, connection.memory
    pending.started_s = server.clock()
    try:
        try:
            response = run_at_once(server.service.at_once, request, server.scheduler, gate.meter)
        except Exception as failure:  # noqa: BLE001 - as in `_serve`
            response = _fail(connection, request, failure)
        if response is None:
            gate.account.tried(gate.meter)
            return False
        _account(connection, request, response)
        memory.is_authenticated = memory.is_authenticated or request.authenticated
        respond(connection, pending, response)
    except MemoryError:  # There is none left for a response: better no connection than one that hangs.
        connection.abort()
    return True


def start(connection: ConnectionParts, pending: PendingRequest, reader: Reader) -> None:
    """Hand a request to the service; `reader` reads on when the service asks for more of the body."""
    connection.running = pending
    connection.reset_pace()
    if pending.length != 0:
        pending.request.body_to_come = ReceivedBody(pending, connection.server, reader)
    connection.on(_ON_REQUEST_STARTED)
    connection.task = asyncio.get_running_loop().create_task(_serve(connection, pending), name="request")


def leave(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Cancel the work on a request if it is of no use once its client has left."""
    request = pending.request
    waits = connection.gate.meter.waits and request.method in _READS
    if connection.task is not None and (waits or not request.authenticated):
        pending.discard()
        cancel(connection, connection.task)


def cancel(connection: ConnectionParts, task: "asyncio.Task[None]") -> None:
    """Cancel the work on a request."""

    def tidy_up(_: "asyncio.Task[None]") -> None:
        # Perhaps it was cancelled before it began, and so could not do it itself.
        connection.running = None
        connection.charge()
        if connection.task is task:
            connection.task = None
            if connection.outbound is None:
                connection.server.remove(connection)

    task.cancel()
    task.add_done_callback(tidy_up)


async def _serve(connection: ConnectionParts, pending: PendingRequest) -> None:
    server, gate = connection.server, connection.gate
    response = None
    try:
        try:
            response = await schedule_fairly(server.service.handle(pending.request), server.scheduler, gate.meter)
            content = content_of(response)
            if content is not None:
                sending, response = send_content(connection, pending, response, content), None
                await schedule_fairly(sending, server.scheduler, gate.meter)
                gate.account.streamed(gate.meter)
        except ClientDisconnectedError:
            pass
        except Exception as failure:  # noqa: BLE001 - the last line of defence: any failure gets an answer and a log line
            response = _fail(connection, pending.request, failure)
        finally:
            connection.task = None
            pending.request.body_to_come = None
            server.release(pending)
            if connection.outbound is None:
                server.remove(connection)
        _finish(connection, pending, response)
    except MemoryError:  # There is none left for a response: better no connection than one that hangs.
        connection.abort()


def _fail(connection: ConnectionParts, request: Request, failure: Exception) -> Response:
    if isinstance(failure, EngineUnavailableError):  # The first window of a content cannot be read now.
        failure = ServiceError("ServerBusy")
    if isinstance(failure, ServiceError):
        return connection.server.service.reject(request, failure)
    for log in connection.server.logs:
        log.failed(request.id, failure)
    return connection.server.service.reject(request, ServiceError("InternalError"))


def _finish(connection: ConnectionParts, pending: PendingRequest, response: Response | None) -> None:
    """Send a response, unless it was sent or there is none as the client has gone; go on with the next request."""
    gate, memory = connection.gate, connection.memory
    memory.is_authenticated = memory.is_authenticated or pending.request.authenticated
    if response is not None:
        _account(connection, pending.request, response)
    if connection.outbound is None:
        gate.leave()
    if connection.running is pending:
        connection.running = None
    if response is not None and not pending.answered:
        respond(connection, pending, response)
    if not connection.ending:
        if connection.state in _SERVING:
            connection.on(_ON_RESPONDED)
        connection.advance()
    elif memory.is_charged:
        connection.charge()


def _account(connection: ConnectionParts, request: Request, response: Response) -> None:
    gate = connection.gate
    if gate.account.answered(request.method, response.status, len(response.body), gate.meter):
        connection.server.scheduler.note_short_request()
