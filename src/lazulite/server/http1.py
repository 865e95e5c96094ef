"""One HTTP/1.1 connection: requests in, responses out, in order, one at a time.

Invariants:
- Responses leave strictly in the order of their requests; the service sees one request of a connection at a time.
- A request handed to the service runs to its end, whether or not its client still listens. Only the end of a drain
  cancels it, and a query that waits in the slow lane (`lane`) for a client that has left.
- Who owes much to the lane (for slow requests, for bulk, for requests that are refused) is read no further until its
  turn has come.
- Every phase has a deadline (`Phase`), so no connection stays for ever; every buffer has a bound (`Limits`).
- After a refusal that ends the connection, input is read and dropped for a while: closing a socket with unread input
  would reset it and could take the refusal away from the client (RFC 9112 section 9.6).
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import cast

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.server.deadlines import Phase
from lazulite.server.exchange_log import Exchange
from lazulite.server.incoming import Incoming
from lazulite.server.inlet import Inlet
from lazulite.server.lane import paced
from lazulite.server.outlet import Outlet, client_address
from lazulite.server.place import Place
from lazulite.server.response import CONTINUE, encode
from lazulite.server.shared import Shared

_OVERFLOW_CONNECTIONS = 256
"""Connections over the limit that are told so at a time; beyond them, a connection is just closed."""

_NO_HEADERS: Mapping[str, str] = {}
_READING = frozenset({"GET", "HEAD"})

_IDLE, _SERVICE, _READER, _LINGER = Phase.IDLE, Phase.SERVICE, Phase.READER, Phase.LINGER


class Connection(asyncio.Protocol):
    """An asyncio protocol; `deadline_s` and `expire` belong to the sweeper.

    Args:
        shared: of the server's connections.
        scheme: `https` for a TLS transport, else `http`.
        refusal: what every client of this connection is told at once.
    """

    def __init__(self, shared: Shared, scheme: str = "http", refusal: ServiceError | None = None) -> None:
        self._shared = shared
        self._scheme = scheme
        self._refusal = refusal
        self._place = Place(shared, self._go_on)
        self._inlet = Inlet(shared, self._new_request, self._place.debt)
        self._outlet: Outlet | None = None
        self._client = ""
        self._running: Incoming | None = None
        self._task: asyncio.Task[None] | None = None
        self._write_paused = False
        self._eof = False
        self._ending = False
        self._phase = Phase.IDLE
        self._message_count = 0
        self._made_s = shared.clock()
        self.deadline_s = 0.0

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        limits = self._shared.limits
        transport = cast(asyncio.Transport, transport)
        self._client = client_address(transport)
        transport.set_write_buffer_limits(limits.response_buffer_bytes)
        self._outlet = outlet = Outlet(transport, self._shared.outbox, limits.discarded_bytes)
        self._enter(Phase.IDLE, self._shared.clock())
        connections = self._shared.connections
        connections.add(self)
        excess = len(connections) - limits.connections
        if excess > _OVERFLOW_CONNECTIONS:
            outlet.abort()
        elif excess > 0 or self._refusal is not None:
            refused = Incoming(self._new_request())
            refused.refuse(self._refusal or ServiceError("ServerBusy"), close=True)
            self._refuse(refused)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._ending:
            self._place.debt.read(len(data))
            if self._outlet is not None:
                self._outlet.discard(len(data))
                self._place.free(self._outlet)
            return
        self._inlet.receive(data)
        self._advance()

    def eof_received(self) -> bool:
        """See asyncio. A client that has shut down its side still gets its answers, but over TLS asyncio cannot."""
        if self._ending:
            return False
        if self._scheme == "https":
            self._end(linger=False)
            return False
        self._eof = True
        self._inlet.end()
        self._advance()
        return not self._ending

    def pause_writing(self) -> None:
        """See asyncio: the client reads too slowly."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """See asyncio."""
        self._write_paused = False
        if not self._ending:
            self._advance()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface has it
        """See asyncio."""
        self._outlet = None
        self._ending = True
        self._place.leave()
        self._inlet.close()
        self.deadline_s = math.inf
        if self._task is None:
            self._shared.forget(self)
        elif self._place.meter.waits and self._running is not None and self._running.request.method in _READING:
            self._cancel(self._task)

    # What the server calls.

    def drain(self) -> None:
        """End after the requests that have begun to arrive; soon if there are none, at once if there were some."""
        if not self._ending and self._outlet is not None:
            self._advance()

    def abandon(self) -> asyncio.Task[None] | None:
        """Disconnect, cancel what runs, and return it; nothing that has come is begun any more."""
        self._ending = True
        self._inlet.close()
        if self._outlet is not None:
            self._outlet.abort()
        if self._task is not None:
            self._cancel(self._task)
        return self._task

    def expire(self) -> None:
        """Act on a passed deadline, as the phase says; not while it is the server that keeps the client waiting."""
        if not self._place.waits:
            _EXPIRED[self._phase](self)

    # From input to service.

    def _new_request(self, method: str = "", headers: Mapping[str, str] = _NO_HEADERS) -> Request:
        return Request(method, "", "", headers, b"", self._scheme, self._client, self._shared.new_request_id())

    def _advance(self) -> None:
        """Do all that can be done now: answer or start the next request, parse more input, say what is waited for."""
        inlet, place = self._inlet, self._place
        queue = inlet.queue
        while not self._ending:
            if (place.held or place.debt.seconds) and not place.free(self._outlet):
                return
            if queue and self._running is None and not self._write_paused:
                first = queue[0]
                if first.error is not None:
                    self._refuse(queue.popleft())
                    continue
                if first.complete:
                    self._start(queue.popleft())
                    continue
                if first.expects_continue:
                    self._invite(first)
            if not (inlet.unread and inlet.read_on()):
                self._settle()
                return

    def _invite(self, incoming: Incoming) -> None:
        """Ask for a body that its client holds back."""
        if not incoming.received_bytes and self._outlet is not None:
            self._outlet.write(CONTINUE, b"")
        incoming.expects_continue = False

    def _settle(self) -> None:
        """Nothing more can be done now: choose what to wait for, or end."""
        inlet, outlet = self._inlet, self._outlet
        if self._running is None:
            parser = inlet.parser
            phase = _READER if self._write_paused else parser.phase
            if parser.stopped and phase is not _READER:
                self._end(linger=not self._eof)
                return
            if self._shared.draining and phase is _IDLE:
                if not self._is_newcomer():
                    self._end_if_silent()
                    return
                phase = Phase.NEWCOMER
            if phase is not self._phase or parser.message_count != self._message_count:
                self._enter(phase, self._shared.clock())
        if outlet is not None and (inlet.unread or inlet.queue or not outlet.reading):
            outlet.read(inlet.has_room)

    def _end_if_silent(self) -> None:
        """End, unless nobody has looked yet whether the client has said something: that takes a turn of the loop."""
        if self._outlet is not None and not self._outlet.read(True):
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self.drain)
        else:
            self._end(linger=False)

    def _is_newcomer(self) -> bool:
        """Say whether the client may have sent its first request before it could know of the drain."""
        age_s = self._shared.clock() - self._made_s
        return not self._inlet.parser.message_count and age_s < self._shared.limits.newcomer_seconds

    def _go_on(self, waited_s: float) -> None:
        """Take the turn that the connection has waited for in the slow lane; its deadline has waited too."""
        self.deadline_s += waited_s
        if not self._ending:
            self._advance()
        elif self._outlet is not None:
            self._outlet.read(True)

    def _start(self, incoming: Incoming) -> None:
        incoming.started_s = self._shared.clock()
        self._running = incoming
        self._enter(_SERVICE, incoming.started_s)
        self._task = asyncio.get_running_loop().create_task(self._serve(incoming), name="request")

    async def _serve(self, incoming: Incoming) -> None:
        shared = self._shared
        try:
            try:
                response = await paced(shared.service.handle(incoming.request), shared.lane, self._place.meter)
            except Exception as failure:  # noqa: BLE001 - the last line of defence: any failure gets an answer and a log line
                response = self._fail(incoming.request, failure)
            finally:
                self._task = None
                if incoming.reserved_bytes:
                    shared.release(incoming)
                if self._outlet is None:
                    shared.forget(self)
            self._answer(incoming, response)
        except MemoryError:  # There is none left for an answer: better no connection than one that hangs.
            if self._outlet is not None:
                self._outlet.abort()

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        task.cancel()
        task.add_done_callback(self._cancelled)

    def _cancelled(self, task: "asyncio.Task[None]") -> None:
        """Tidy up after a request that was cancelled before it began, and so could not do it itself."""
        if self._task is task:
            self._task = None
            if self._running is not None:
                self._shared.release(self._running)
            if self._outlet is None:
                self._shared.forget(self)

    def _fail(self, request: Request, failure: Exception) -> Response:
        for log in self._shared.logs:
            log.failed(request.id, failure)
        return self._shared.service.refuse(request, ServiceError("InternalError"))

    def _answer(self, incoming: Incoming, response: Response) -> None:
        place = self._place
        if place.debt.answered(incoming.request.method, response.status, len(response.body), place.meter):
            self._shared.lane.passed()
        if self._outlet is None:
            place.leave()
        if self._running is incoming:
            self._running = None
        if not incoming.answered:
            self._respond(incoming, response)
        if not self._ending:
            self._advance()

    # From response to output.

    def _refuse(self, incoming: Incoming) -> None:
        assert incoming.error is not None
        self._place.debt.refused()
        incoming.started_s = self._shared.clock()
        self._shared.release(incoming)
        self._respond(incoming, self._shared.service.refuse(incoming.request, incoming.error))

    def _respond(self, incoming: Incoming, response: Response) -> None:
        incoming.answered = True
        shared, request = self._shared, incoming.request
        keep_alive = incoming.keep_alive and not shared.leaving
        head, body = encode(response, method=request.method, keep_alive=keep_alive, http_1_0=incoming.http_1_0)
        if self._outlet is not None:
            self._outlet.write(head, body)
        if shared.logs:
            elapsed_ms = (shared.clock() - incoming.started_s) * 1000
            exchange = Exchange(request, response, elapsed_ms, incoming.received_bytes, len(head) + len(body))
            for log in shared.logs:
                log.record(exchange)
        if not keep_alive and not self._ending:
            self._end(linger=not self._eof and (not incoming.complete or incoming.error is not None))

    # The end, and deadlines.

    def _enter(self, phase: Phase, now_s: float) -> None:
        self._phase = phase
        seconds: float = getattr(self._shared.limits, phase.limit)
        self.deadline_s = now_s + seconds
        self._message_count = self._inlet.parser.message_count
        if (phase is _READER or phase is _LINGER) and self._outlet is not None:
            self._outlet.progress()

    def _end(self, *, linger: bool) -> None:
        """Close once all is written; with `linger`, when the client has closed or the time is up."""
        self._ending = True
        self._inlet.close()
        self._enter(Phase.FAREWELL if self._shared.draining and not linger else Phase.LINGER, self._shared.clock())
        if self._outlet is not None:
            self._outlet.end(linger=linger)

    def _give_up_reading(self) -> None:
        """Answer 408, unless the request that never ends is a refused one that has its answer."""
        inlet = self._inlet
        incoming = inlet.queue.popleft() if inlet.queue else None
        if incoming is None and inlet.parser.phase is Phase.BODY:
            self._end(linger=False)
            return
        incoming = incoming or Incoming(self._new_request())
        incoming.refuse(ServiceError("OperationTimedOut", status=408), close=True)
        self._refuse(incoming)

    def _give_up_waiting(self) -> None:
        """Answer for a service that takes too long; it goes on, and the connection counts until it is done."""
        incoming = self._running
        assert incoming is not None
        incoming.keep_alive = False
        incoming.complete = False
        self._respond(incoming, self._shared.service.refuse(incoming.request, ServiceError("OperationTimedOut")))

    def _take_leave(self) -> None:
        """Disconnect a client that has everything but does not say goodbye, as TLS would have it."""
        if self._outlet is not None:
            if self._outlet.waits:
                self._enter(Phase.LINGER, self._shared.clock())
            else:
                self._outlet.abort()

    def _check_progress(self) -> None:
        """Disconnect a client that has taken nothing of its response since the last look."""
        if self._outlet is not None:
            if self._outlet.progress():
                self._enter(self._phase, self._shared.clock())
            else:
                self._outlet.abort()


_EXPIRED: dict[Phase, Callable[[Connection], None]] = {
    Phase.IDLE: lambda connection: connection._end(linger=False),
    Phase.NEWCOMER: lambda connection: connection._end(linger=False),
    Phase.HEAD: Connection._give_up_reading,
    Phase.BODY: Connection._give_up_reading,
    Phase.SERVICE: Connection._give_up_waiting,
    Phase.READER: Connection._check_progress,
    Phase.LINGER: Connection._check_progress,
    Phase.FAREWELL: Connection._take_leave,
}
