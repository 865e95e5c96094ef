"""What a connection owes to the slow lane: for bulk, for slow requests, and for requests that are refused.

Invariant: what good clients do costs nothing here, however often they do it. A connection that ends leaves its debt to
those that come; so coming anew for each request is no way around the lane. The prices are no measurements but
their order of magnitude, enough to tell a client that sends little from one that sends much.
"""

from collections.abc import Callable

from lazulite.server.admission.scheduler import TURN_SECONDS, Meter

BULK_BYTES = 16 * 1024
"""What comes at once and is less is no bulk."""
_BULK_SECONDS_PER_BYTE = 0.5e-9
"""What reading a large piece of input costs, which is copied twice and looked through once, or sending one."""

_SHORT_BYTES = 256 * 1024
"""An answer of more has taken about a turn, or would have on another machine."""

_CRUMBS_FREE = 16
"""Of a slice of input: short bodies, and the ends of those that came in two reads."""

_CRUMB_SECONDS = 1e-6
"""What a part of a body costs that is hardly longer than its framing."""

_FRAMING_SECONDS = 60e-6
"""What a request costs beside the service's part."""

_COMING_SECONDS = 200e-6
"""What it costs that a connection comes and goes."""

_REFUSAL_SECONDS = 200e-6
"""What it costs to refuse a request that the service has not seen."""

_ESTATE_SECONDS_MAX = 100 * TURN_SECONDS
_REMEMBERED_SECONDS = 1.0
"""Those who come after an attack do not pay for it."""

_UNWELCOME = frozenset({400, 401, 403, 405, 411, 413, 414, 415, 431, 501})
"""Answers that no good client gets often: who asks for them time and again goes by the slow lane."""


class Debt:
    """Of one connection; `seconds` of the event loop's time, to be paid once they are a turn."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self, size: int) -> None:
        """Account for so many bytes that arrived at once."""
        if size >= BULK_BYTES:
            self.seconds += size * _BULK_SECONDS_PER_BYTE

    def crumbs(self, count: int) -> None:
        """Account for so many parts of bodies in a slice of input that are hardly worth their framing."""
        if count > _CRUMBS_FREE:
            self.seconds += count * _CRUMB_SECONDS

    def refused(self) -> None:
        """Account for a request that the service has not seen."""
        self.seconds += _REFUSAL_SECONDS

    def answered(self, method: str, status: int, size: int, meter: Meter) -> bool:
        """Account for a request that the service has answered; return whether it was a short one, and good.

        `size`: of what is to be sent, in bytes.
        """
        is_short = meter.total_s < TURN_SECONDS and size < _SHORT_BYTES
        if is_short and status not in _UNWELCOME and method != "OPTIONS":
            return True
        self.seconds += meter.unpaid_s + _FRAMING_SECONDS + size * _BULK_SECONDS_PER_BYTE
        return False

    def pay(self) -> float:
        """Return what is owed, which it is no more."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def left(self, meter: Meter) -> float:
        """Return what a connection that ends leaves unpaid: nothing, if it never asked for anything that costs."""
        seconds = self.pay() + (meter.total_s if meter.waits else 0.0)
        return seconds + _COMING_SECONDS if seconds else 0.0


class Estate:
    """What connections that have ended owe together, as long as more of them do so.

    Less than a turn is for the next one that comes. While it is more, all that come wait for their turn before they are
    listened to: however many they are, and however fast they leave again, none goes past the lane.

    Args:
        clock: monotonic seconds.

    Attributes:
        seconds: of the event loop's time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._forgotten_s = 0.0

    def is_heavy(self) -> bool:
        """Say whether who comes now has to wait."""
        if self.seconds >= TURN_SECONDS and self._clock() >= self._forgotten_s:
            self.seconds = 0.0
        return self.seconds >= TURN_SECONDS

    def leave(self, seconds: float) -> None:
        """Add what a connection that ends has not paid."""
        if seconds:
            self.seconds = min(self.seconds + seconds, _ESTATE_SECONDS_MAX)
            self._forgotten_s = self._clock() + _REMEMBERED_SECONDS

    def inherit(self) -> float:
        """Return what one connection takes over: a turn at most."""
        seconds = min(self.seconds, TURN_SECONDS)
        self.seconds -= seconds
        return seconds
