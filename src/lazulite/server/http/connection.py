"""One HTTP/1.1 connection: requests in, responses out, in order, one at a time.

Invariants:
- Responses leave strictly in the order of their requests; the service sees one request of a connection at a time.
- A request is handed to the service when its head is complete. No more of its body than two slices is read before the
  service accepts it, which it does when the credentials are good; if the service responds first, the rest is dropped.
- All buffers of a connection count in a budget: that of connections of which no request has had good credentials, or
  that of the others. So do the bodies of all requests before they are accepted. The oldest connection of a full one is
  closed.
- A connection with much cost on its account (of slow requests, bulk, rejected requests) is read no further until the
  scheduler has admitted it.
- Each state has a deadline (`states`), so no connection stays forever; every buffer has a bound (`Limits`).
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import cast

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.template import Answer, HeadValues, Miss, Template
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.exchange import (
    TemplateExchange,
    begin,
    cancel,
    leave,
    read_again,
    reject,
    respond,
    send_answer,
)
from lazulite.server.http.inbound import BYTES_MAX
from lazulite.server.http.outbound import CONTINUE, OutboundStream, client_address
from lazulite.server.http.parser import Reading
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.server_state import ServerState
from lazulite.server.http.states import TRANSITIONS, Action, Event, State

_OVERFLOW_CONNECTIONS = 256
"""Connections over the limit that get that answer at a time; beyond them, a connection is just closed."""

_READY_MAX = 16
"""Responses that are sent in one go; then other connections come first. Mostly only a request that came alone
(`WholeMessageReader`) has a response that is ready."""

# Looked up once: members of an Enum are found by Python code, several times for each request.
_BODY = State.BODY
_IDLE = State.IDLE
_SERVICE = State.SERVICE


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
    read_again(connection, pending)
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


class Connection(ConnectionParts, asyncio.Protocol):
    """An asyncio protocol; `deadline_s` and `on_timeout` belong to the sweeper.

    Args:
        server: what the server's connections share.
        scheme: `https` for a TLS transport, else `http`.
        rejection: what every client of this connection gets at once.
    """

    def __init__(self, server: ServerState, scheme: str = "http", rejection: ServiceError | None = None) -> None:
        super().__init__(server, scheme)
        self._rejection = rejection

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        server = self.server
        transport = cast(asyncio.Transport, transport)
        self.client = client_address(transport)
        self.outbound = outbound = OutboundStream(
            transport, server.write_batcher, server.limits.discarded_bytes, is_tls=self.scheme == "https"
        )
        transport.set_write_buffer_limits(1, 0)  # So that the connection knows whenever something waits.
        self.enter(State.IDLE)
        excess = server.add(self)
        if excess > _OVERFLOW_CONNECTIONS:
            outbound.abort()
        elif excess > 0 or self._rejection is not None:
            rejected = PendingRequest(self.new_request())
            rejected.reject(self._rejection or ServiceError("ServerBusy"), close=True)
            reject(self, rejected)
        elif self.memory.is_charged:
            self.charge()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self.ending:
            self.gate.account.read(len(data))
            if self.outbound is not None:
                self.outbound.discard(len(data))
                self.gate.try_admit(self.outbound)
            return
        inbound = self.inbound
        if self.holding:
            self.holding, data = False, inbound.take() + data
            inbound.missed = missed = self._answer(data)
        else:
            inbound.missed = missed = self._answer(data, may_hold=True) if self.at_rest else Miss.BUSY
        if missed is None:
            return
        self.memory.note_read(len(data))
        inbound.receive(data)
        self.advance()

    def _answer(self, data: bytes, *, may_hold: bool = False) -> Miss | None:
        """Answer a request by its template, now or later; or return why there is no answer.

        Args:
            data: what came, from the first byte of the request.
            may_hold: whether a head whose body is to come may be held until the next read.
        """
        templates = self.server.templates
        if templates is None or self.server.stopping or len(data) > BYTES_MAX:
            return Miss.BUSY
        found = templates.find(self.scheme, data)
        if found is None:
            templates.miss(Miss.UNKNOWN)
            return Miss.UNKNOWN
        template, values, body = found
        later = TemplateExchange(self, template, values, data) if template.waits else None
        began_s = self.server.clock()
        try:
            answer = template.begin(values, body, later)
        except Exception:  # noqa: BLE001 - whatever it is, the usual way meets it again, reports it and responds
            answer = Miss.FAILED
        if isinstance(answer, Miss):
            if may_hold and answer is Miss.VALUES and 0 < template.missing_bytes(values, body) <= BYTES_MAX - len(data):
                self._hold(data)
                return None
            templates.miss(answer)
            return answer
        templates.hits += 1
        if answer is None:
            assert later is not None, "it waits"
            self.at_rest = False
            later.start()
        else:
            self._send(template, values, answer, data, len(body), began_s)
        return None

    def _hold(self, data: bytes) -> None:
        """Hold a head until its body comes. Whatever else happens, it then goes the usual way."""
        self.holding, self.at_rest = True, False
        self.inbound.receive(data)
        self.on(Event.HEAD_BEGUN)
        self.charge()

    def _send(
        self, template: Template, values: HeadValues, answer: Answer, data: bytes, body_bytes: int, began_s: float
    ) -> None:
        """Send an answer that was ready, to a request that came as `data`, with so many bytes of a body."""
        parser = self.inbound.parser
        send_answer(self, template, values, answer, self.server.new_request_id(), began_s, data, body_bytes)
        parser.message_count += 1
        if self.at_rest and not self.ending and (self.outbound is None or not self.outbound.hidden_bytes):
            self._message_count = parser.message_count
            self.deadline_s = began_s + self.server.seconds_in[_IDLE]
        elif not self.ending:
            self.advance()

    def eof_received(self) -> bool:
        """See asyncio. A client that has shut down its side still gets its responses, but over TLS asyncio cannot."""
        if self.ending:
            return False
        if self.scheme == "https":
            self.end(linger=False)
            return False
        self.eof = True
        self.inbound.end()
        if self.running is not None:
            self.running.leave()
        self.advance()
        return not self.ending

    def pause_writing(self) -> None:
        """See asyncio: something waits for the client."""
        self.at_rest = False
        if self.outbound is not None:
            self.outbound.pause()
            if self.memory.window_budget is None:
                self.charge()
            if self.running is None and (self.state, Event.WRITES_BLOCKED) in TRANSITIONS:
                self.on(Event.WRITES_BLOCKED)  # Written by the batcher, after the connection went on.

    def resume_writing(self) -> None:
        """See asyncio: nothing waits any more."""
        if self.outbound is not None:
            self.outbound.resume()
            if self.memory.window_budget is None:
                self.charge()
        if not self.ending:
            self.advance()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface has it
        """See asyncio."""
        outbound, running = self.outbound, self.running
        self.outbound = None
        self.ending = True
        self.gate.leave()
        self.inbound.close()
        if outbound is not None:
            outbound.lose()
        if running is not None:
            running.leave()
        self.charge()
        self.deadline_s = math.inf
        if self.task is None:
            self.server.remove(self)
        elif running is not None:
            leave(self, running)

    # What the server calls.

    def begin_drain(self) -> None:
        """End after the requests that have begun to arrive; soon if there are none, at once if there were some."""
        if not self.ending and self.outbound is not None:
            self.advance()

    def abandon(self) -> asyncio.Task[None] | None:
        """Disconnect, cancel what runs, and return it; nothing that has come is begun any more."""
        self.ending = True
        self.inbound.close()
        self.abort()
        if self.task is not None:
            cancel(self, self.task)
        return self.task

    def on_timeout(self) -> None:
        """Act on a passed deadline as the state says, unless the client waits for the server."""
        running = self.running
        if not self.gate.waits and not (running is not None and running.waits_for_room):
            if self.holding:
                self.advance()
                return
            action = TRANSITIONS[self.state, Event.TIMEOUT].action
            assert action is not None
            ACTIONS[action](self)

    def evict(self) -> None:
        """Disconnect, so that others have room, if anything is still held.

        Without a response: thousands that hold little may have to go for one that holds much.
        """
        if self.held_bytes() == (0, 0):
            return
        self.ending = True
        self.inbound.close()
        running = self.running
        if running is not None:
            running.leave()
            if self.task is not None and not running.request.authenticated:
                running.discard()
                cancel(self, self.task)
        self.abort()

    # What a body being received tells: see `pending_request.Reader`.

    def on_body_accepted(self, pending: PendingRequest) -> None:  # noqa: ARG002 - the interface has it
        """Account for a body that is welcome from now on; the wait for room was not the service's."""
        if self.state is _SERVICE:
            self.enter(_SERVICE)
        if self.memory.is_charged:
            self.charge()

    def on_body_awaited(self, pending: PendingRequest) -> None:
        """Read on: the service waits for more of the body."""
        if self.ending or self.state not in (_SERVICE, _BODY):
            return
        if pending.expects_continue:
            if not pending.received_bytes and self.outbound is not None:
                self.outbound.write(CONTINUE, b"")
            pending.expects_continue = False
        if self.state is _SERVICE:
            self.on(Event.BODY_AWAITED)
        self.advance()

    def on_body_taken(self, pending: PendingRequest) -> None:  # noqa: ARG002 - the interface has it
        """Read on, as there is room for more; the timeout of the service for what it has taken stays the same."""
        if self.state is _SERVICE:
            self.enter(_SERVICE)
        if not self.ending:
            self.advance()

    # From input to responses.

    def advance(self) -> None:
        """Do all that can be done now: respond to or start the next request, parse more input, choose the state."""
        self.at_rest = self.holding = False
        inbound, gate, outbound = self.inbound, self.gate, self.outbound
        queue = inbound.queue
        ready_count = 0
        while not self.ending:
            if (gate.blocked or gate.account.seconds) and not gate.try_admit(outbound):
                break
            if queue and self.running is None and not (outbound is not None and outbound.blocked):
                pending = queue.popleft()
                if not pending.served:
                    reject(self, pending)
                else:
                    may_respond = pending.complete and ready_count < _READY_MAX
                    ready_count += begin(self, pending, self, may_respond=may_respond)
                continue
            if not (inbound.unread and inbound.read_on()):
                self.settle()
                break
        self.charge_soon()
        self.at_rest = self.rests()
