"""What an HTTP/1.1 connection consists of: its halves, the memory that it holds, its state, and its deadline.

Invariants:
- Each state has a deadline, so no connection stays forever. The state changes by `TRANSITIONS` alone, but for what
  `enter` is called with: the same state again, with a new deadline.
- Every byte of input and output counts, whether or not the client has shown good credentials. Only accepted bodies
  (`BodyBudget`), windows of content on their way out (`exchange`) and the buffers of TLS at rest, which have the bound
  of connections, are counted elsewhere.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping

from lazulite.protocol.message import WINDOW_BYTES, Request
from lazulite.server.admission.accounts import AdmissionGate
from lazulite.server.admission.budgets import BodyBudget, BudgetHolder
from lazulite.server.http.inbound import InboundBuffer
from lazulite.server.http.outbound import OutboundStream
from lazulite.server.http.parser import Reading
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.server_state import OpenConnection, ServerState
from lazulite.server.http.states import TRANSITIONS, Event, State
from lazulite.server.http.timeouts import TICK_SECONDS, BodyPace

_TLS_BYTES = 28 * 1024
"""What a TLS connection holds at rest, as measured; each read grows its buffers to twice its own size."""

_TLS_WAITING_BYTES = 64 * 1024
"""What may wait encrypted, where it cannot be seen, while some waits in clear."""

_NO_HEADERS: Mapping[str, str] = {}
_PROGRESS_CHECK_SECONDS = TICK_SECONDS / 2
"""A deadline that has passed by the next tick, so that what a slow reader takes is looked at once a second."""
_PROGRESS_STATES = frozenset({State.WRITE_BLOCKED, State.SENDING_BLOCKED, State.LINGER})
_READ_EVENTS = {
    Reading.NOTHING: Event.MESSAGE_READ,
    Reading.HEAD: Event.HEAD_BEGUN,
    Reading.BODY: Event.BODY_UNWANTED,
}

# Looked up once: members of an Enum are found by Python code, several times for each request.
_BODY = State.BODY
_DISCARDING = State.DISCARDING
_IDLE = State.IDLE
_SERVICE = State.SERVICE
_READING_HEAD = Reading.HEAD
_ON_MESSAGE_READ = Event.MESSAGE_READ
_ON_WRITES_BLOCKED = Event.WRITES_BLOCKED


class ConnectionMemory:
    """The memory of one connection.

    Args:
        inbound: what has come.
        is_tls: whether buffers of TLS count too.

    Attributes:
        is_authenticated: a request of the connection has had good credentials.
        is_charged: a budget counts something.
        made_bytes: of a long response that is made, while it is sent.
        window_bytes: what a window takes: over TLS, one is encrypted while the one before waits.
        window_budget: has a reservation for a window, which is what waits for the client; None: there is none.
    """

    __slots__ = (
        "_inbound",
        "_tls_bytes",
        "is_authenticated",
        "is_charged",
        "made_bytes",
        "window_budget",
        "window_bytes",
    )

    def __init__(self, inbound: InboundBuffer, *, is_tls: bool) -> None:
        self._inbound = inbound
        self._tls_bytes = _TLS_BYTES if is_tls else 0
        self.is_authenticated = False
        self.is_charged = is_tls
        self.made_bytes = 0
        self.window_budget: BodyBudget | None = None
        self.window_bytes = 2 * WINDOW_BYTES if is_tls else WINDOW_BYTES

    def note_read(self, count: int) -> None:
        """Account for the buffers of a read."""
        if self._tls_bytes:
            self._tls_bytes = max(self._tls_bytes, _TLS_BYTES + 2 * count)

    def release_window(self) -> None:
        """Give back the reservation for a window, if there is one."""
        if self.window_budget is not None:
            self.window_budget.release(self.window_bytes)
            self.window_budget = None

    def held_bytes(
        self, running: PendingRequest | None, outbound: OutboundStream | None, *, ending: bool
    ) -> tuple[int, int]:
        """Return what is held; and of bodies whose credentials have not been found good."""
        inbound = self._inbound
        unaccepted_bytes = inbound.unaccepted_bytes
        if running is not None:
            unaccepted_bytes += running.unaccepted_bytes
            self.is_authenticated = self.is_authenticated or running.request.authenticated
        held_bytes = 0 if running is None else running.head_bytes + running.unaccepted_bytes
        if outbound is not None:
            waiting_bytes = 0 if self.window_budget is not None else outbound.waiting_bytes + self.made_bytes
            held_bytes += inbound.held_bytes + waiting_bytes
            if self._tls_bytes and waiting_bytes:
                held_bytes += _TLS_WAITING_BYTES
            if not ending and not self.is_authenticated:
                held_bytes += self._tls_bytes
        return held_bytes, unaccepted_bytes


class ConnectionParts(OpenConnection, BudgetHolder):
    """The parts of one connection; the modules beside this one act on it.

    Args:
        server: what the server's connections share.
        scheme: `https` for a TLS transport, else `http`.

    Attributes:
        at_rest: a request that came alone could be answered at once: no other is under way, the gate is open, and the
            client has not shut down its side.
        client: the client's address, "" when unknown.
        deadline_s: when the sweeper acts, on the server's clock.
        ending: nothing more is said, and what comes is dropped.
        eof: the client has shut down its side.
        gate: admits the connection.
        holding: a head was read whose body is to come, and whose template is known; it is in `inbound.unread`.
        inbound: what has come.
        memory: what is held for the client.
        outbound: the transport; None before there is one and after it was lost.
        running: the request that the service works on.
        state: what the connection waits for.
        task: responds to that request.
    """

    def __init__(self, server: ServerState, scheme: str) -> None:
        self.server = server
        self.scheme = scheme
        self.client = ""
        self.at_rest = self.holding = False
        self.gate = AdmissionGate(server, self._on_admitted)
        self.inbound = InboundBuffer(server.limits, self.new_request, self.gate.account)
        self.memory = ConnectionMemory(self.inbound, is_tls=scheme == "https")
        self.outbound: OutboundStream | None = None
        self.running: PendingRequest | None = None
        self.task: asyncio.Task[None] | None = None
        self.eof = False
        self.ending = False
        self.state = State.IDLE
        self.deadline_s = 0.0
        self._pace: BodyPace | None = None
        self._charge_is_due = False
        self._taken_s = self._blocked_s = 0.0
        self._message_count = 0
        self._made_s = server.clock()

    @abstractmethod
    def advance(self) -> None:
        """Do all that can be done now: respond to or start the next request, parse more input, choose the state."""

    def new_request(self, method: str = "", headers: Mapping[str, str] = _NO_HEADERS) -> Request:
        """Return a request of this connection."""
        return Request(method, "", "", headers, b"", self.scheme, self.client, self.server.new_request_id())

    # Memory.

    def held_bytes(self) -> tuple[int, int]:
        """Return what is held for the client; and of bodies that were not accepted."""
        return self.memory.held_bytes(self.running, self.outbound, ending=self.ending)

    def charge(self) -> None:
        """Account for what is held, in the budget of connections with or without good credentials."""
        self._charge_is_due = False
        held_bytes, unaccepted_bytes = self.held_bytes()
        server, memory = self.server, self.memory
        memory.is_charged = held_bytes > 0 or unaccepted_bytes > 0
        # The others come first: where this connection is evicted itself, all is accounted for again.
        server.unaccepted.update(self, unaccepted_bytes)
        budget = server.unauthenticated
        if memory.is_authenticated:
            budget.update(self, 0)
            budget = server.authenticated
        budget.update(self, held_bytes if not self.ending else self.held_bytes()[0])

    def charge_soon(self) -> None:
        """Account for it, if it may have changed."""
        running, inbound, memory = self.running, self.inbound, self.memory
        parser = inbound.parser
        if (
            running is not None
            and not running.request.authenticated
            and (running.received_bytes or not memory.is_authenticated)
        ):
            if not self._charge_is_due:  # The request's first step comes before, and mostly shows its credentials.
                self._charge_is_due = True
                asyncio.get_running_loop().call_soon(self.charge)
        elif (
            memory.is_charged
            or not memory.is_authenticated
            or inbound.queue
            or parser.incoming is not None
            or parser.reading is _READING_HEAD
        ):
            self.charge()

    # States and deadlines.

    def on(self, event: Event) -> None:
        """Do what the table says."""
        self.enter(TRANSITIONS[self.state, event].state)

    def enter(self, state: State) -> None:
        """Be in a state from now on."""
        server = self.server
        now_s = server.clock()
        seconds = server.seconds_in[state]
        if self._pace is not None or state is _BODY or state is _DISCARDING:
            seconds = self._watch_pace(state, now_s, seconds)
        if state in _PROGRESS_STATES and self.outbound is not None:
            self._watch_progress(state, now_s)
            seconds = min(seconds, _PROGRESS_CHECK_SECONDS)
        if state is _SERVICE and self.running is not None:
            self.running.started_s = now_s
        self.state = state
        self.deadline_s = now_s + seconds
        self._message_count = self.inbound.parser.message_count

    def reset_pace(self) -> None:
        """Begin again with the next body."""
        self._pace = None

    def settle(self) -> None:
        """Choose what to wait for, as nothing more can be done now; or end."""
        inbound, outbound, running = self.inbound, self.outbound, self.running
        if running is None:
            parser = inbound.parser
            blocked = outbound is not None and outbound.blocked
            if parser.stopped and not blocked:
                self.end(linger=not self.eof)
                return
            if outbound is not None and outbound.hidden_bytes and not blocked:
                blocked = True  # As to what is waited for; the next request is not held back.
                self.charge()
            event = _ON_WRITES_BLOCKED if blocked else _READ_EVENTS[parser.reading]
            if self.server.draining and event is _ON_MESSAGE_READ:
                if not self._awaits_first_request():
                    self._end_if_silent()
                    return
                event = Event.DRAIN_BEGUN
            following = TRANSITIONS[self.state, event].state
            if following is not self.state or parser.message_count != self._message_count:
                self.enter(following)
        elif self.state is _BODY and (running.complete or (running.is_streamed and running.kept_bytes)):
            self.on(Event.BODY_ARRIVED)
        if outbound is not None and (inbound.unread or inbound.queue or not outbound.reading):
            outbound.read(inbound.has_room)

    def rests(self) -> bool:
        """Return what `at_rest` is to be now."""
        gate, inbound, memory, outbound = self.gate, self.inbound, self.memory, self.outbound
        return (
            self.state is _IDLE
            and self.running is None
            and memory.is_authenticated
            and not memory.is_charged
            and gate.is_open
            and not (inbound.unread or inbound.queue)
            and inbound.parser.is_between
            and outbound is not None
            and outbound.reading
            and not (outbound.blocked or outbound.hidden_bytes)
            and not self.eof
        )

    def end(self, *, linger: bool) -> None:
        """Close once all is written; with `linger`, when the client has closed or the time is up."""
        self.ending = True
        self.inbound.close()
        self.on(Event.CLOSED_IN_DRAIN if self.server.draining and not linger else Event.CLOSED)
        if self.outbound is not None:
            self.outbound.end(linger=linger)
        self.charge()

    def abort(self) -> None:
        """Disconnect now."""
        if self.outbound is not None:
            self.outbound.abort()

    def reset(self) -> None:
        """Disconnect now by a reset, as a network does that fails. Nothing that has come is begun any more."""
        self.ending = True
        self.inbound.close()
        if self.outbound is not None:
            self.outbound.reset()

    def body_is_too_slow(self) -> bool:
        """Return whether the body that comes makes no progress or comes too slowly."""
        coming, pace, server = self.inbound.parser.incoming, self._pace, self.server
        if coming is None or pace is None:
            return True
        return pace.is_too_slow(coming.received_bytes, server.clock(), crowded=server.bodies.is_crowded)

    def _watch_pace(self, state: State, now_s: float, seconds: float) -> float:
        """Begin or end a wait for a body; return the time until the next look."""
        pace = self._pace
        if self.state is _BODY and pace is not None:
            pace.end_wait(now_s)
        if state is _BODY or state is _DISCARDING:
            if pace is None or state is _DISCARDING:
                self._pace = pace = BodyPace(self.server.limits)
            pace.await_more(now_s)
            return min(seconds, TICK_SECONDS)
        if state is not _SERVICE:
            self._pace = None
        return seconds

    def _watch_progress(self, state: State, now_s: float) -> None:
        """Begin to look at what the client takes; the wait as a whole goes on while the state does."""
        assert self.outbound is not None
        self.outbound.progress()
        self._taken_s = now_s
        if state is not self.state:
            self._blocked_s = now_s

    def takes_too_little(self) -> bool:
        """Return whether the client has taken nothing for too long, or too little of a window for which others wait."""
        now_s, outbound = self.server.clock(), self.outbound
        if outbound is None:
            return False
        if outbound.look_beneath() and self.running is None and not self.ending:
            self.charge()
            self.settle()
            return False
        if outbound.progress():
            self._taken_s = now_s
        self.deadline_s = now_s + _PROGRESS_CHECK_SECONDS
        window_budget = self.memory.window_budget
        is_crowded = window_budget is not None and window_budget.is_crowded
        if is_crowded and now_s - self._blocked_s >= self.server.limits.crowded_window_seconds:
            return True
        return now_s - self._taken_s >= self.server.seconds_in[self.state]

    def _end_if_silent(self) -> None:
        """End, unless it is not known yet whether the client has said something: to know takes a pass of the loop."""
        if self.outbound is not None and not self.outbound.read(True):
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self.begin_drain)
        else:
            self.end(linger=False)

    def _awaits_first_request(self) -> bool:
        """Return whether the client may have sent its first request before it could know of the drain."""
        age_s = self.server.clock() - self._made_s
        return not self.inbound.parser.message_count and age_s < self.server.limits.first_request_seconds

    def _on_admitted(self, waited_s: float) -> None:
        """Go on, as the scheduler has admitted the connection; its deadline has waited too."""
        self.deadline_s += waited_s
        if self._pace is not None:
            self._pace.shift(waited_s)
        if not self.ending:
            self.advance()
        elif self.outbound is not None:
            self.outbound.read(True)
