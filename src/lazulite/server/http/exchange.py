"""A request of a connection that the service works on, and its response: whole, or in windows while its body is made.

Invariants:
- A request with good credentials and a complete body runs to its end, whether or not its client still listens. Only the
  end of a drain cancels it, and a query that waits for the scheduler for a client that has left. A request whose
  credentials are not checked yet is cancelled when its client leaves, or its connection is evicted.
- A request whose response is ready has no task, and is over when `begin` returns.
- A request has one response at most, and any failure of a service gets a response and a log line. A response tells
  whether another may follow; after the last one the connection ends. After a rejection that ends it, input is read and
  dropped for a while, as `outbound` says.
- The head of a response in windows is sent when the first window is there, so what keeps that from being read fails the
  request. An exception after the head, or a wrong length, ends the connection, so that no client takes a part for the
  whole. A response whose head was sent is logged, with the bytes that were sent of it.
- No more is made than the client takes. Memory for a window is reserved before it is made, and given to others that
  wait once the client has taken it. A client that takes too long is disconnected while others wait
  (`crowded_window_seconds`).
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from http import HTTPStatus

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fault import DELIVERY
from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import ClientDisconnectedError, Request, Response, ResponseContent, Window, response_of
from lazulite.protocol.template import END_OF_HEAD, Answer, HeadValues, Miss, Template
from lazulite.server.admission.scheduler import SLICE_SECONDS, run_metered, schedule_fairly
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.faulty_content import Delivery, Ending, FaultyContent, delivery_of
from lazulite.server.http.outbound import body_of, content_of, encode_head, send_windows
from lazulite.server.http.pending_request import PendingRequest, Reader, ReceivedBody
from lazulite.server.http.states import Event, State
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.service.time_slice import TimeSlice

_READS = frozenset({"GET", "HEAD"})
_SERVING = frozenset({State.SERVICE, State.BODY, State.SENDING, State.SENDING_BLOCKED})
_POLL_SECONDS = 0.005
_POLLS_MAX = 1000
"""The most checks whether a client has taken all that comes before a reset."""
_ON_REQUEST_STARTED = Event.REQUEST_STARTED
_ON_RESPONDED = Event.RESPONDED


def reject(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Respond to a request that has an error."""
    assert pending.error is not None
    server = connection.server
    connection.gate.account.rejected()
    pending.started_s = server.clock()
    pending.release(server.bodies)
    respond(connection, pending, server.service.reject(pending.request, pending.error))


def respond(connection: ConnectionParts, pending: PendingRequest, response: Response, *, linger: bool = False) -> None:
    """Send a response without content."""
    head = begin_response(connection, pending, response)
    body = body_of(response, pending.request.method)
    if connection.outbound is not None:
        connection.outbound.write(head, body)
    end_response(connection, pending, response, len(head), len(body), linger=linger)
    if pending.head:
        _learn(connection, pending, response)


def _learn(connection: ConnectionParts, pending: PendingRequest, response: Response) -> None:
    """Make a template of a request that succeeded, and count it if none was looked for."""
    templates, request, missed = connection.server.templates, pending.request, connection.inbound.missed
    if templates is None or request.repeat is None or missed is None or response.status >= HTTPStatus.MULTIPLE_CHOICES:
        return
    if missed is Miss.BUSY:
        templates.miss(missed)
    templates.learn(pending.head, request, missed)


def begin_response(connection: ConnectionParts, pending: PendingRequest, response: Response) -> bytes:
    """Return a response's head; from now on, the request has its response."""
    pending.answered = True
    if not pending.complete and not pending.discards:
        _drop_body(connection, pending)
    keep_alive = pending.keep_alive and not connection.server.stopping
    pending.keep_alive = keep_alive
    return encode_head(response, keep_alive=keep_alive, http_1_0=pending.http_1_0)


def end_response(
    connection: ConnectionParts,
    pending: PendingRequest,
    response: Response,
    head_bytes: int,
    body_bytes: int,
    *,
    linger: bool = False,
) -> None:
    """Log a response that was written, and end the connection if it was the last one."""
    server = connection.server
    if server.logs:
        is_whole = connection.outbound is not None
        log_response(connection, pending, response, server.clock(), head_bytes, body_bytes, is_whole=is_whole)
    if not pending.keep_alive:
        end_connection(connection, pending, linger=linger)


def log_response(
    connection: ConnectionParts,
    pending: PendingRequest,
    response: Response,
    begun_s: float,
    head_bytes: int,
    body_bytes: int,
    *,
    is_whole: bool,
) -> None:
    """Log a response, given when it began, how many bytes of it were written, and whether those are all."""
    elapsed_ms = (begun_s - pending.started_s) * 1000
    total_ms = (connection.server.clock() - (pending.arrived_s or pending.started_s)) * 1000
    exchange = Exchange(
        pending.request,
        response,
        elapsed_ms,
        pending.received_bytes,
        head_bytes + body_bytes,
        head_bytes_out=head_bytes,
        total_ms=total_ms,
        is_whole=is_whole,
    )
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
            log_response(connection, pending, response, connection.server.clock(), 0, 0, is_whole=False)
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


async def _send_faulty(
    connection: ConnectionParts, pending: PendingRequest, response: Response, delivery: Delivery
) -> None:
    """Send a response as a fault has it, or end the connection. Raises as `send_content`."""
    content = content_of(response) or JoinedContent([body_of(response, "")])

    async def end() -> None:
        if connection.outbound is not None:
            await connection.outbound.flush()
        for _ in range(_POLLS_MAX):  # A reset takes away what has not arrived.
            if connection.outbound is None or not connection.outbound.waits:
                break
            await connection.server.sleep(_POLL_SECONDS)
        if delivery.ending is Ending.RESET:
            connection.reset()
        elif not connection.ending:
            connection.end(linger=False)
        raise ClientDisconnectedError

    if delivery.has_head:
        faulty = FaultyContent(content, delivery, end, connection.server.sleep)
        await send_content(connection, pending, response, faulty)
        if delivery.ending is Ending.RESET:  # A response to HEAD has no body in which to end.
            await end()
        return
    await content.aclose()
    if not pending.answered:
        log_response(connection, pending, response, connection.server.clock(), 0, 0, is_whole=False)
    connection.reset()


class _Sending:
    """One response on its way."""

    def __init__(self, connection: ConnectionParts, pending: PendingRequest, response: Response) -> None:
        self._connection = connection
        self._pending = pending
        self._response = response
        self._begun_s = 0.0
        self._head_bytes = self._sent_bytes = 0
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
                facts = self._begun_s, self._head_bytes, self._sent_bytes
                log_response(connection, pending, self._response, *facts, is_whole=whole)
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
        self._head_bytes = len(head)
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


def begin(connection: ConnectionParts, pending: PendingRequest, reader: Reader, *, may_respond: bool) -> bool:
    """Hand a request to the service; return whether it has its response.

    `reader` reads on when the service asks for more of the body. `may_respond`: a response that is ready may be sent
    before this function returns.
    """
    server, request, memory, gate = connection.server, pending.request, connection.memory, connection.gate
    if pending.length != 0:
        request.body_to_come = ReceivedBody(pending, server.bodies, server.limits, reader)
    pending.arrived_s = pending.started_s = server.clock()
    if not may_respond:
        _start(connection, pending, response_of(server.service, request))
        return False
    try:
        try:
            response = run_metered(server.service.respond, request, server.scheduler, gate.meter)
        except Exception as failure:  # noqa: BLE001 - as in `_serve`
            response = _fail(connection, request, failure)
        if not isinstance(response, Response):
            gate.account.tried(gate.meter)
            _start(connection, pending, response)
            return False
        request.body_to_come = None
        _account(connection, request, response)
        memory.is_authenticated = memory.is_authenticated or request.authenticated
        respond(connection, pending, response)
    except MemoryError:  # There is none left for a response: better no connection than one that hangs.
        connection.abort()
    return True


def send_answer(
    connection: ConnectionParts,
    template: Template,
    values: HeadValues,
    answer: Answer,
    request_id: str,
    began_s: float,
    data: bytes,
    body_bytes: int,
) -> None:
    """Send, and log, the answer of a template to a request that came as `data`, with so many bytes of a body."""
    server, outbound = connection.server, connection.outbound
    head = template.head_of(answer, values, request_id)
    if server.stopping:
        head = b"%bConnection: close\r\n\r\n" % head[:-2]
    body = b"" if template.method == "HEAD" else answer.body
    if outbound is not None:
        outbound.write(head, body)
    server.scheduler.note_short_request()
    if server.logs:
        sizes = len(data) - body_bytes, body_bytes, len(head), len(body)
        ended_s = server.clock()
        elapsed_ms = (ended_s - began_s) * 1000
        exchange = RepeatedExchange(template, values, answer, sizes, request_id, connection.client, elapsed_ms, ended_s)
        for log in server.logs:
            log.repeat(exchange)


class TemplateExchange:
    """A request whose template waits for its answer. Implements `PendingAnswer`.

    The connection runs it as any other request, but without a task: what it waits for does not need one.

    Args:
        connection: the connection.
        template: of the request.
        values: of its head.
        data: the request, read again for a rejection.
    """

    __slots__ = ("_connection", "_data", "_pending", "_template", "_values")

    def __init__(self, connection: ConnectionParts, template: Template, values: HeadValues, data: bytes) -> None:
        self._connection = connection
        self._template = template
        self._values = values
        self._data = data
        self._pending: PendingRequest | None = None

    def start(self) -> None:
        """Begin to wait."""
        connection, template, data = self._connection, self._template, self._data
        request = connection.new_request(template.method)
        request.authenticated, request.record = True, template.record
        body_bytes = len(data) - data.index(END_OF_HEAD) - len(END_OF_HEAD)
        self._pending = connection.running = pending = PendingRequest(request, length=body_bytes, served=True)
        pending.head, pending.received_bytes, pending.complete = data, body_bytes, True
        connection.inbound.parser.message_count += 1
        connection.reset_pace()
        connection.on(_ON_REQUEST_STARTED)

    def answer(self, answer: Answer) -> None:
        """See `PendingAnswer`."""
        connection, pending = self._connection, self._pending
        assert pending is not None, "started"
        if connection.running is pending:
            connection.running = None
        try:
            if not pending.answered:
                facts = pending.request.id, pending.started_s, pending.head, pending.received_bytes
                send_answer(connection, self._template, self._values, answer, *facts)
                if connection.server.stopping:
                    end_connection(connection, pending)
            _go_on(connection)
        except MemoryError:  # There is none left for a response: better no connection than one that hangs.
            connection.abort()

    def fail(self, failure: BaseException) -> None:
        """See `PendingAnswer`."""
        connection, pending = self._connection, self._pending
        assert pending is not None, "started"
        if not isinstance(failure, Exception):
            connection.abort()
            return
        read_again(connection, pending)
        _finish(connection, pending, _fail(connection, pending.request, failure))


def read_again(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Give a request that a template had its head, for a rejection."""
    known = pending.request
    whole = None if known.path else connection.inbound.read_again(pending.head)
    if whole is not None:
        pending.request = request = whole.request
        request.id, request.authenticated, request.record = known.id, True, replace(known.record)


def _start(connection: ConnectionParts, pending: PendingRequest, work: Coroutine[object, None, Response]) -> None:
    """Begin to wait for the response of a service."""
    connection.running = pending
    connection.reset_pace()
    connection.on(_ON_REQUEST_STARTED)
    connection.task = asyncio.get_running_loop().create_task(_serve(connection, pending, work), name="request")


def leave(connection: ConnectionParts, pending: PendingRequest) -> None:
    """Cancel the work on a request if it is of no use once its client has left."""
    request = pending.request
    waits = connection.gate.meter.waits and request.method in _READS
    if connection.task is not None and (waits or not request.authenticated):
        pending.discard()
        cancel(connection, connection.task)


def cancel(connection: ConnectionParts, task: "asyncio.Task[None]") -> None:
    """Cancel the work on a request once it has begun.

    A task that is cancelled before it begins would never await its response, which Python reports as a defect.
    """

    def tidy_up(_: "asyncio.Task[None]") -> None:
        connection.running = None
        connection.charge()
        if connection.task is task:
            connection.task = None
            if connection.outbound is None:
                connection.server.remove(connection)

    task.get_loop().call_soon(task.cancel)
    task.add_done_callback(tidy_up)


async def _serve(connection: ConnectionParts, pending: PendingRequest, work: Coroutine[object, None, Response]) -> None:
    server, gate = connection.server, connection.gate
    response = None
    try:
        try:
            response = await schedule_fairly(work, server.scheduler, gate.meter)
            fault = pending.request.record.fault
            content = content_of(response)
            if fault is not None and fault.effect in DELIVERY:
                sending, response = _send_faulty(connection, pending, response, delivery_of(fault)), None
                await schedule_fairly(sending, server.scheduler, gate.meter)
            elif content is not None:
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
            pending.release(server.bodies)
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
    _go_on(connection)


def _go_on(connection: ConnectionParts) -> None:
    """Go on with the next request."""
    if not connection.ending:
        if connection.state in _SERVING:
            connection.on(_ON_RESPONDED)
        connection.advance()
    elif connection.memory.is_charged:
        connection.charge()


def _account(connection: ConnectionParts, request: Request, response: Response) -> None:
    gate = connection.gate
    if gate.account.answered(request.method, response.status, len(response.body), gate.meter):
        connection.server.scheduler.note_short_request()
