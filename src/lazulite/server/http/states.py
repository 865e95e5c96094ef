"""The states of a connection and the events that end them: one table, as h11 has it.

Invariants: a pair of state and event that is not in `TRANSITIONS` does not happen; it would raise `KeyError`. A state
names the field of `Limits` that bounds it; `Event.TIMEOUT` is that bound, reached. Only a timeout has an action: other
events are reported by the code that has acted.
"""

from enum import Enum, auto
from typing import NamedTuple


class State(Enum):
    """What a connection waits for."""

    __hash__ = object.__hash__  # Enum's own is Python code, and each request looks up several pairs.

    IDLE = auto(), "keep_alive_idle_seconds"
    """The first byte of a request."""
    FIRST_REQUEST = auto(), "first_request_seconds"
    """The same in a drain, where the client may have sent its first request before it could know."""
    HEAD = auto(), "header_read_seconds"
    """The rest of a head."""
    DISCARDING = auto(), "body_stall_seconds"
    """The rest of a body that is dropped: its request has its response."""
    WRITE_BLOCKED = auto(), "write_stall_seconds"
    """A client that has to take responses before its next request is looked at."""
    SERVICE = auto(), "request_seconds"
    """The service."""
    BODY = auto(), "body_stall_seconds"
    """More of the body that the service reads."""
    SENDING = auto(), "request_seconds"
    """More of the content that the service sends."""
    SENDING_BLOCKED = auto(), "write_stall_seconds"
    """A client that has to take content before the service sends more."""
    LINGER = auto(), "linger_seconds"
    """The client's end of the connection, after the last response. Its input is dropped."""
    TLS_CLOSE = auto(), "tls_close_seconds"
    """The client's end of TLS, in a drain."""

    def __init__(self, _: int, limit: str) -> None:
        self.limit = limit


class Event(Enum):
    """What happens to a connection."""

    __hash__ = object.__hash__  # likewise

    MESSAGE_READ = auto()
    """Input has ended with a message: nothing of another has come."""
    HEAD_BEGUN = auto()
    BODY_UNWANTED = auto()
    """A body comes that no service waits for."""
    DRAIN_BEGUN = auto()
    REQUEST_STARTED = auto()
    BODY_AWAITED = auto()
    BODY_ARRIVED = auto()
    CONTENT_STARTED = auto()
    WRITES_BLOCKED = auto()
    WRITES_RESUMED = auto()
    RESPONDED = auto()
    CLOSED = auto()
    """The server has said all that it will say."""
    CLOSED_IN_DRAIN = auto()
    TIMEOUT = auto()


class Action(Enum):
    """What a timeout does: see `connection.ACTIONS`."""

    CLOSE = auto()
    REJECT_INPUT = auto()
    CHECK_BODY = auto()
    RESPOND_TIMED_OUT = auto()
    CHECK_WRITES = auto()
    CHECK_TLS_CLOSE = auto()
    ABORT = auto()


class Transition(NamedTuple):
    """What an event does in a state."""

    state: State
    action: Action | None = None


_READING = (State.IDLE, State.FIRST_REQUEST, State.HEAD, State.DISCARDING, State.WRITE_BLOCKED)
_SERVING = (State.SERVICE, State.BODY, State.SENDING, State.SENDING_BLOCKED)
_CLOSING = (State.LINGER, State.TLS_CLOSE)

_ROWS: tuple[tuple[tuple[State, ...], Event, State | None, Action | None], ...] = (
    # in one of these states | the event | leads to this state, None for the same | and does this
    (_READING, Event.MESSAGE_READ, State.IDLE, None),
    (_READING, Event.HEAD_BEGUN, State.HEAD, None),
    (_READING, Event.BODY_UNWANTED, State.DISCARDING, None),
    (_READING, Event.WRITES_BLOCKED, State.WRITE_BLOCKED, None),
    (_READING, Event.DRAIN_BEGUN, State.FIRST_REQUEST, None),
    (_READING, Event.REQUEST_STARTED, State.SERVICE, None),
    ((State.SERVICE,), Event.BODY_AWAITED, State.BODY, None),
    ((State.BODY,), Event.BODY_ARRIVED, State.SERVICE, None),
    ((State.SERVICE, State.BODY), Event.CONTENT_STARTED, State.SENDING, None),
    ((State.SENDING,), Event.WRITES_BLOCKED, State.SENDING_BLOCKED, None),
    ((State.SENDING_BLOCKED,), Event.WRITES_RESUMED, State.SENDING, None),
    (_SERVING, Event.RESPONDED, State.IDLE, None),
    ((*_READING, *_SERVING, *_CLOSING), Event.CLOSED, State.LINGER, None),
    ((*_READING, *_SERVING, *_CLOSING), Event.CLOSED_IN_DRAIN, State.TLS_CLOSE, None),
    ((State.IDLE, State.FIRST_REQUEST), Event.TIMEOUT, None, Action.CLOSE),
    ((State.HEAD,), Event.TIMEOUT, None, Action.REJECT_INPUT),
    ((State.DISCARDING, State.BODY), Event.TIMEOUT, None, Action.CHECK_BODY),
    ((State.SERVICE,), Event.TIMEOUT, None, Action.RESPOND_TIMED_OUT),
    ((State.SENDING,), Event.TIMEOUT, None, Action.ABORT),
    ((State.WRITE_BLOCKED, State.SENDING_BLOCKED, State.LINGER), Event.TIMEOUT, None, Action.CHECK_WRITES),
    ((State.TLS_CLOSE,), Event.TIMEOUT, None, Action.CHECK_TLS_CLOSE),
)

TRANSITIONS = {
    (state, event): Transition(following or state, action)
    for states, event, following, action in _ROWS
    for state in states
}
"""What each event does in each state."""
