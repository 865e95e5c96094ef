"""A fault that a rule has injected into one request, as its request and its response carry it.

The rules are in `lazulite.faults`. The kernel of the services applies what happens before and after an operation, the
operations what happens to their results, and the HTTP server what happens to the connection.
"""

from enum import StrEnum
from typing import NamedTuple


class Effect(StrEnum):
    """What a fault does. The value is the name in rules."""

    DELAY = "delay_seconds"
    """The request waits, or its answer does."""
    ERROR = "error"
    """The request is rejected, or its success is answered by an error."""
    OVERTAKEN = "overtaken"
    """The request is rejected as if another writer had been faster."""
    RESET = "reset"
    """The connection is reset."""
    TRUNCATE = "truncate"
    """The connection ends when a part of the body was sent."""
    SLOW = "bytes_per_second"
    """The body comes slowly."""
    PAGE = "page_entries"
    """A list ends after so many entries, and has a token for the rest."""
    DUPLICATE = "duplicate"
    """Messages are delivered, and stay visible."""
    STALE = "stale"
    """A secondary answers from what was stored before the rule."""
    CLOCK = "clock_seconds"
    """The clock of the server is off."""


class Moment(StrEnum):
    """When an effect comes. The value is the name in rules."""

    BEFORE = "before"
    AFTER = "after"


class Break(StrEnum):
    """Where the connection is reset. The value is the name in rules."""

    REQUEST = "request"
    """Before the operation: nothing was done."""
    ANSWER = "answer"
    """After the operation: its answer is lost."""
    HEAD = "head"
    """After the head of the response, before its body."""
    MIDDLE = "middle"
    """After half of the body."""
    END = "end"
    """After the whole response."""


DELIVERY = frozenset({Effect.RESET, Effect.TRUNCATE, Effect.SLOW})
"""The effects that the HTTP server applies, when it sends the response."""

FAULT_HEADER = "x-lazulite-fault"
"""The response header with the name of the rule, if rules ask for it."""


class Fault(NamedTuple):
    """What happens to one request."""

    rule: str
    """The name of the rule."""
    effect: Effect
    value: float | str = 0
    """By the effect: seconds, a code of the catalogue, a `Break`, a part from 0 to 1, bytes per second, a number."""
    moment: Moment = Moment.BEFORE
    shown: bool = False
    """Whether the response has `FAULT_HEADER`."""
