"""The operations on a queue, their times and responses: all that the checker knows.

A message is known by the number in its text, `NUMBER.VERSION.`; an update with another text counts the version. Times
are nanoseconds of the true time, in which servers' clocks may be wrong (`Time`).
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

SECOND = 10**9
NEVER = 1 << 62
"""The time to live of a message that never expires, in seconds."""
_BASE = time.time_ns() - time.monotonic_ns()


def true_time() -> int:
    """Return the time now; it never steps."""
    return _BASE + time.monotonic_ns()


class Kind(StrEnum):
    """An operation."""

    PUT = "puts"
    GET = "gets"
    PEEK = "peeks"
    UPDATE = "updates"
    DELETE = "deletes"
    CLEAR = "clears"
    COUNT = "counts"


class Seen(NamedTuple):
    """A message in a response. A response to a put or an update has no dequeue count, and a peek no receipt."""

    number: int
    id: str
    receipt: str = ""
    version: int = 0
    dequeues: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One operation.

    Attributes:
        kind: of the operation.
        began: before it was sent.
        ended: when it was answered; of one that was not, when it can no longer take effect.
        done: whether it succeeded; False: it was rejected and changed nothing; None: it was not answered.
        number: of the message, of a put, an update and a delete.
        seconds: the visibility timeout.
        ttl: the time to live of a put.
        version: of the text of a put or an update; -1: the update kept the text.
        receipt: that an update or a delete named.
        seen: the messages of the response.
        asked: how many messages were asked for.
        count: the approximate number of messages.
        moments: as `began` and `ended`, in calls to the disk; for cuts in hindsight.
    """

    kind: Kind
    began: int
    ended: int = 0
    done: bool | None = None
    number: int = -1
    seconds: int = 0
    ttl: int = NEVER
    version: int = 0
    receipt: str = ""
    seen: tuple[Seen, ...] = ()
    asked: int = 0
    count: int = 0
    moments: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        """Name it in a sentence."""
        done = {True: "done", False: "rejected", None: "unanswered"}[self.done]
        seconds = f"{self.began % 10**13 / SECOND:.3f} to {self.ended % 10**13 / SECOND:.3f} s"
        receipt = f", receipt {self.receipt}" if self.receipt else ""
        return f"the {self.kind.removesuffix('s')} ({done}, {seconds}, for {self.seconds} s{receipt})"


class Time:
    """The time of the servers. Steps come while no server runs.

    Args:
        error: by how many nanoseconds they are wrong at first.
        allowance: how much the clocks of the processes may differ from the known errors, in nanoseconds.
        spread: how long peeks, counts and empty gets of other processes may not know of a clear, in nanoseconds.
    """

    def __init__(self, error: int = 0, allowance: int = SECOND // 4, spread: int = 0) -> None:
        self.spread = spread
        self._allowance = allowance
        self._at = [0]
        self._error = [error]
        self._furthest = [0]

    def __str__(self) -> str:
        """Name the steps."""
        return f"at {self._at}: wrong by {self._error}"

    def step(self, at: int, error: int) -> None:
        """Note that servers' clocks are wrong by so many nanoseconds from now on."""
        self._furthest.append(max(self._furthest[-1], at + self._error[-1]))
        self._at.append(at)
        self._error.append(error)

    def earliest(self, moment: int) -> int:
        """Return a time before which no server thought that it was."""
        return moment + self._error[bisect_right(self._at, moment) - 1] - self._allowance

    def latest(self, moment: int) -> int:
        """Return a time after which no server thought that it was: it may have seen a time that a step took back."""
        index = bisect_right(self._at, moment) - 1
        return max(moment + self._error[index], self._furthest[index]) + self._allowance


class History:
    """The events of one queue, from its creation to its deletion."""

    def __init__(self, moment: Callable[[], int] = lambda: 0) -> None:
        self._moment = moment
        self._open: dict[int, Event] = {}
        self._tokens = 0
        self.events: list[Event] = []

    def begin(self, event: Event) -> int:
        """Note an operation that is about to be sent; return its token."""
        self._tokens += 1
        self._open[self._tokens] = replace(event, moments=(self._moment(), self._moment()))
        return self._tokens

    def end(self, token: int, *, done: bool, seen: Iterable[Seen] = (), count: int = 0) -> Event:
        """Note the response to an operation."""
        event = self._open.pop(token)
        moments = (event.moments[0], self._moment())
        ended = replace(event, ended=true_time(), done=done, seen=tuple(seen), count=count, moments=moments)
        self.events.append(ended)
        return ended

    def settle(self) -> None:
        """Note that operations without a response can no longer take effect; call it while none is under way."""
        now = true_time()
        self.events += [replace(event, ended=now) for event in self._open.values()]
        self._open.clear()

    def go_back(self, moment: int) -> None:
        """Forget what came after a moment: later operations, and responses to operations under way."""
        self.events = [
            event if event.moments[1] <= moment else replace(event, done=None, seen=(), count=0)
            for event in self.events
            if event.moments[0] <= moment
        ]

    def count_anew(self) -> None:
        """Begin another count of moments: all that has happened so far was before its first."""
        self.events = [replace(event, moments=(0, 0)) for event in self.events]
