"""One HTTP/1.1 connection: requests in, responses out, in order, one at a time.

Invariants:
- Responses leave strictly in the order of their requests; the service sees one request of a connection at a time.
- A request is handed to the service when its head is complete. No more of its body than two slices is read before the
  service accepts it, which it does when the credentials are good; if the service answers first, the rest is dropped.
- A request with good credentials and a complete body runs to its end, whether or not its client still listens. Only the
  end of a drain cancels it, and a query that waits in the slow lane (`scheduler`) for a client that has left. A request
  whose credentials are not checked yet is cancelled when its client leaves, or its connection is evicted.
- While no request of a connection has had good credentials, all its buffers count in a budget that such connections
  share, and so do the bodies of all requests before they are accepted; the oldest connection of a full one is closed.
- A connection that owes much to the lane (for slow requests, for bulk, for requests that are refused) is read no
  further until its turn has come.
- Every phase has a deadline (`Phase`), so no connection stays for ever; every buffer has a bound (`Limits`).
- After a refusal that ends the connection, input is read and dropped for a while: closing a socket with unread input
  would reset it and could take the refusal away from the client (RFC 9112 section 9.6).
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Request, Response
from lazulite.server.admission.gate import Place
from lazulite.server.admission.scheduler import paced
from lazulite.server.http.encoder import CONTINUE, encode
from lazulite.server.http.inbound import Inlet
from lazulite.server.http.outbound import Outlet, client_address
from lazulite.server.http.pending_request import Incoming
from lazulite.server.http.server_state import Shared
from lazulite.server.http.timeouts import TICK_SECONDS, Phase
from lazulite.server.observability.exchange import Exchange

_OVERFLOW_CONNECTIONS = 256
"""Connections over the limit that are told so at a time; beyond them, a connection is just closed."""

_SMALL_BODY_BYTES = 16 * 1024
"""A body of no more does not wait for room."""

_TLS_BYTES = 28 * 1024
"""What a TLS connection holds at rest, as measured; each read grows its buffers to twice its own size."""

_TLS_WAITING_BYTES = 64 * 1024
"""What may wait encrypted, where it cannot be seen, while some waits in clear."""

_NO_HEADERS: Mapping[str, str] = {}
_READING = frozenset({"GET", "HEAD"})

_IDLE, _BODY, _SERVICE, _READER, _LINGER = Phase.IDLE, Phase.BODY, Phase.SERVICE, Phase.READER, Phase.LINGER


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
        self._authenticated = False
        self._charged = False
        self._charge_is_due = False
        self._tls_bytes = _TLS_BYTES if scheme == "https" else 0
        self._waits_for_room = False
        self._body_began_s = 0.0
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
        elif self._tls_bytes:
            self._charge()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._ending:
            self._place.debt.read(len(data))
            if self._outlet is not None:
                self._outlet.discard(len(data))
                self._place.free(self._outlet)
            return
        if self._tls_bytes:
            self._tls_bytes = max(self._tls_bytes, _TLS_BYTES + 2 * len(data))
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
        if self._running is not None:
            self._running.leave()
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
        if self._running is not None:
            self._running.leave()
        self._charge()
        self.deadline_s = math.inf
        if self._task is None:
            self._shared.forget(self)
        elif self._running is not None and self._is_in_vain(self._running):
            self._running.drop()
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
        if not self._place.waits and not self._waits_for_room:
            _EXPIRED[self._phase](self)

    def evict(self) -> None:
        """Disconnect, so that others have room, if anything is still held that credentials have not been shown for.

        Without an answer: thousands that hold little may have to go for one that holds much.
        """
        if self._unearned_bytes() == (0, 0):
            return
        self._ending = True
        self._inlet.close()
        running = self._running
        if running is not None:
            running.leave()
            if self._task is not None and not running.request.authenticated:
                running.drop()
                self._cancel(self._task)
        if self._outlet is not None:
            self._outlet.abort()

    # From input to service.

    def _new_request(self, method: str = "", headers: Mapping[str, str] = _NO_HEADERS) -> Request:
        return Request(method, "", "", headers, b"", self._scheme, self._client, self._shared.new_request_id())

    def _advance(self) -> None:
        """Do all that can be done now: answer or start the next request, parse more input, say what is waited for."""
        inlet, place = self._inlet, self._place
        queue = inlet.queue
        while not self._ending:
            if (place.held or place.debt.seconds) and not place.free(self._outlet):
                break
            if queue and self._running is None and not self._write_paused:
                incoming = queue.popleft()
                if incoming.served:
                    self._start(incoming)
                else:
                    self._refuse(incoming)
                continue
            if not (inlet.unread and inlet.read_on()):
                self._settle()
                break
        running = self._running
        if running is not None and not running.request.authenticated:
            if not self._charge_is_due:  # The request's first step comes before, and mostly shows its credentials.
                self._charge_is_due = True
                asyncio.get_running_loop().call_soon(self._charge)
        elif self._charged or not self._authenticated or queue or inlet.parser.incoming is not None:
            self._charge()

    def _unearned_bytes(self) -> tuple[int, int]:
        """Return what is held for a client that has shown no good credentials; and of bodies that were not accepted."""
        inlet, running, outlet = self._inlet, self._running, self._outlet
        unaccepted_bytes = inlet.unaccepted_bytes
        if running is not None:
            unaccepted_bytes += running.unaccepted_bytes
            self._authenticated = self._authenticated or running.request.authenticated
        if self._authenticated:
            return 0, unaccepted_bytes
        held_bytes = 0 if running is None else running.head_bytes + running.unaccepted_bytes
        if outlet is not None:
            waiting_bytes = outlet.waiting_bytes
            held_bytes += inlet.held_bytes + waiting_bytes
            if self._tls_bytes and waiting_bytes:
                held_bytes += _TLS_WAITING_BYTES
            if not self._ending:
                held_bytes += self._tls_bytes
        return held_bytes, unaccepted_bytes

    def _charge(self) -> None:
        """Account for what the client has not earned by credentials."""
        self._charge_is_due = False
        held_bytes, unaccepted_bytes = self._unearned_bytes()
        self._charged = held_bytes > 0 or unaccepted_bytes > 0
        # The second comes first: where this connection is evicted itself, all is accounted for anew.
        self._shared.unaccepted.update(self, unaccepted_bytes)
        self._shared.unauthenticated.update(self, held_bytes if not self._ending else self._unearned_bytes()[0])

    def _is_in_vain(self, incoming: Incoming) -> bool:
        """Say whether the work on a request is of no use once its client has left."""
        request = incoming.request
        return not request.authenticated or (self._place.meter.waits and request.method in _READING)

    def _send_continue(self, incoming: Incoming) -> None:
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
        elif self._phase is _BODY and self._running.complete:
            self._running.started_s = self._shared.clock()
            self._enter(_SERVICE, self._running.started_s)
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
        self._body_began_s += waited_s
        if not self._ending:
            self._advance()
        elif self._outlet is not None:
            self._outlet.read(True)

    def _start(self, incoming: Incoming) -> None:
        incoming.started_s = self._shared.clock()
        self._running = incoming
        if incoming.length != 0:
            incoming.request.body_to_come = partial(self._receive_body, incoming)
        self._enter(_SERVICE, incoming.started_s)
        self._task = asyncio.get_running_loop().create_task(self._serve(incoming), name="request")

    async def _serve(self, incoming: Incoming) -> None:
        shared = self._shared
        response = None
        try:
            try:
                response = await paced(shared.service.handle(incoming.request), shared.lane, self._place.meter)
            except ClientDisconnectedError:
                pass
            except Exception as failure:  # noqa: BLE001 - the last line of defence: any failure gets an answer and a log line
                response = self._fail(incoming.request, failure)
            finally:
                self._task = None
                shared.release(incoming)
                if self._outlet is None:
                    shared.forget(self)
            self._answer(incoming, response)
        except MemoryError:  # There is none left for an answer: better no connection than one that hangs.
            if self._outlet is not None:
                self._outlet.abort()

    async def _receive_body(self, incoming: Incoming) -> bytes:
        """Let the rest of a body come, as `Request.receive_body` says."""
        bodies = self._shared.bodies
        if incoming.complete:
            incoming.accepted = True
            incoming.reserved_bytes = len(incoming.request.body)
            bodies.take(incoming.reserved_bytes)
        else:
            if self._charged:
                self._charge()
            await self._accept(incoming)
        if self._charged:
            self._charge()
        body = await incoming.whole()
        bodies.release(incoming.reserved_bytes - len(body))
        incoming.reserved_bytes = len(body)
        return body

    async def _accept(self, incoming: Incoming) -> None:
        """Reserve memory for a whole body, and read on.

        Raises:
            ServiceError: `ServerBusy`, there was no memory in time.
        """
        limits, bodies = self._shared.limits, self._shared.bodies
        reserved_bytes = limits.body_bytes if incoming.length is None else incoming.length
        if reserved_bytes <= _SMALL_BODY_BYTES:
            bodies.take(reserved_bytes)
        else:
            self._waits_for_room = True
            try:
                admitted = await bodies.reserve(reserved_bytes, limits.request_seconds, incoming.change)
            except TimeoutError:
                raise ServiceError("ServerBusy") from None
            finally:
                self._waits_for_room = False
            if not admitted:  # It is whole by now, or never will be.
                reserved_bytes = len(await incoming.whole())
                bodies.take(reserved_bytes)
        incoming.reserved_bytes = reserved_bytes
        incoming.accepted = True
        if self._ending or incoming.complete:
            return
        if incoming.expects_continue:
            self._send_continue(incoming)
        self._enter(_BODY, self._shared.clock())
        self._advance()

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        task.cancel()
        task.add_done_callback(self._cancelled)

    def _cancelled(self, task: "asyncio.Task[None]") -> None:
        """Tidy up after a request that was cancelled, perhaps before it began, and so could not do it itself."""
        self._running = None
        self._charge()
        if self._task is task:
            self._task = None
            if self._outlet is None:
                self._shared.forget(self)

    def _fail(self, request: Request, failure: Exception) -> Response:
        for log in self._shared.logs:
            log.failed(request.id, failure)
        return self._shared.service.refuse(request, ServiceError("InternalError"))

    def _answer(self, incoming: Incoming, response: Response | None) -> None:
        """Send a response, unless there is none as the client has gone; go on with the next request."""
        place, request = self._place, incoming.request
        self._authenticated = self._authenticated or request.authenticated
        if response is not None and place.debt.answered(
            request.method, response.status, len(response.body), place.meter
        ):
            self._shared.lane.passed()
        if self._outlet is None:
            place.leave()
        if self._running is incoming:
            self._running = None
        if response is not None and not incoming.answered:
            self._respond(incoming, response)
        if not self._ending:
            self._advance()
        elif self._charged:
            self._charge()

    # From response to output.

    def _refuse(self, incoming: Incoming) -> None:
        assert incoming.error is not None
        self._place.debt.refused()
        incoming.started_s = self._shared.clock()
        self._shared.release(incoming)
        self._respond(incoming, self._shared.service.refuse(incoming.request, incoming.error))

    def _respond(self, incoming: Incoming, response: Response, *, linger: bool = False) -> None:
        incoming.answered = True
        if not incoming.complete and not incoming.discards:
            self._drop_body(incoming)
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
            linger = linger or not incoming.complete or incoming.error is not None
            self._end(linger=linger and not self._eof)

    def _drop_body(self, incoming: Incoming) -> None:
        """Read no more of a body that the service did not want, but to find the next request behind it."""
        if incoming.expects_continue and not incoming.received_bytes:
            incoming.keep_alive = False  # Its client may or may not send the body: only closing is clear to both.
        incoming.discards = True
        self._inlet.parser.discard()

    # The end, and deadlines.

    def _enter(self, phase: Phase, now_s: float) -> None:
        self._phase = phase
        seconds: float = getattr(self._shared.limits, phase.limit)
        self.deadline_s = now_s + seconds
        if phase is _BODY:
            self._body_began_s = now_s
            self.deadline_s = now_s + min(seconds, TICK_SECONDS)
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
        self._charge()

    def _check_body(self) -> None:
        """Give up a body that takes too long or comes too slowly; while others wait for room, it has to come fast."""
        limits, now_s = self._shared.limits, self._shared.clock()
        took_s = now_s - self._body_began_s
        asked_bytes = (took_s - limits.slow_body_seconds) * limits.body_bytes_per_second
        if self._shared.bodies.is_crowded:
            asked_bytes = max(asked_bytes, (took_s - TICK_SECONDS) * limits.crowded_body_bytes_per_second)
        coming = self._inlet.parser.incoming
        if coming is None or took_s >= limits.body_read_seconds or coming.received_bytes < asked_bytes:
            self._give_up_reading()
        else:
            self.deadline_s = min(now_s + TICK_SECONDS, self._body_began_s + limits.body_read_seconds)

    def _give_up_reading(self) -> None:
        """Answer 408, unless the request that never ends is a refused one that has its answer."""
        inlet = self._inlet
        if self._running is not None:
            self._running.refuse(ServiceError("OperationTimedOut", status=408), close=True)
            inlet.parser.discard()
            return
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
        timed_out = self._shared.service.refuse(incoming.request, ServiceError("OperationTimedOut"))
        self._respond(incoming, timed_out, linger=True)

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
    Phase.BODY: Connection._check_body,
    Phase.SERVICE: Connection._give_up_waiting,
    Phase.READER: Connection._check_progress,
    Phase.LINGER: Connection._check_progress,
    Phase.FAREWELL: Connection._take_leave,
}
