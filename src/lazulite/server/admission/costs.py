"""Cost accounting of connections: for bulk, for long requests, and for requests that are rejected.

Invariant: ordinary requests of good clients cost nothing here, however many there are. The unsettled cost of a closed
connection is carried over to new ones, so a connection for each request does not evade the scheduler. The prices are
orders of magnitude, not measurements: enough to tell a client that sends little from one that sends much.
"""

from collections.abc import Callable

from lazulite.server.admission.scheduler import SLICE_SECONDS, CpuMeter

BULK_BYTES = 16 * 1024
"""What comes at once and is less is no bulk."""
_BULK_SECONDS_PER_BYTE = 0.5e-9
"""What reading a large piece of input costs, which is copied twice and looked through once, or sending one."""

_SHORT_BYTES = 256 * 1024
"""A larger response takes about a time slice, or would on another machine."""

_FRAGMENTS_FREE = 16
"""Of a slice of input: short bodies, and the ends of those that came in two reads."""

_FRAGMENT_SECONDS = 1e-6
"""What a part of a body costs that is hardly longer than its framing."""

_FRAMING_SECONDS = 60e-6
"""What a request costs beside the service's part."""

_COMING_SECONDS = 200e-6
"""What it costs that a connection comes and goes."""

_TRY_SECONDS_FREE = SLICE_SECONDS / 4
"""What it may cost to find that a request cannot be responded to at once. An ordinary one takes a fraction of it, also
on a slow or busy machine."""

_REJECTION_SECONDS = 200e-6
"""What it costs to reject a request that the service has not seen."""

_CARRIED_OVER_SECONDS_MAX = 100 * SLICE_SECONDS
_CARRIED_SECONDS = 1.0
"""New connections after an attack are not charged for it."""

CHARGED_STATUSES = frozenset({400, 401, 403, 405, 411, 413, 414, 415, 431, 501})
"""Answers that no good client gets often: a client that causes many of them waits for the scheduler."""


class CostAccount:
    """Of one connection; `seconds` of the event loop's time, charged once they are a time slice."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0

    def read(self, size: int) -> None:
        """Account for so many bytes that arrived at once."""
        if size >= BULK_BYTES:
            self.seconds += size * _BULK_SECONDS_PER_BYTE

    def charge_fragments(self, count: int) -> None:
        """Account for so many parts of bodies in a slice of input that are hardly worth their framing."""
        if count > _FRAGMENTS_FREE:
            self.seconds += count * _FRAGMENT_SECONDS

    def rejected(self) -> None:
        """Account for a request that the service has not seen."""
        self.seconds += _REJECTION_SECONDS

    def tried(self, meter: CpuMeter) -> None:
        """Account for work on a request that has to be done anew, as its response was not ready."""
        if meter.total_s > _TRY_SECONDS_FREE:
            self.seconds += meter.total_s

    def answered(self, method: str, status: int, size: int, meter: CpuMeter) -> bool:
        """Account for a request that the service has answered; return whether it was a short one, and good.

        `size`: of what is to be sent, in bytes.
        """
        is_short = meter.total_s < SLICE_SECONDS and size < _SHORT_BYTES
        if is_short and status not in CHARGED_STATUSES and method != "OPTIONS":
            return True
        self.seconds += meter.unsettled_s + _FRAMING_SECONDS + size * _BULK_SECONDS_PER_BYTE
        return False

    def streamed(self, meter: CpuMeter) -> None:
        """Account for a request whose response was sent in windows: `meter` has measured the sending, too."""
        self.seconds += meter.unsettled_s + _FRAMING_SECONDS

    def settle(self) -> float:
        """Return the cost, and begin anew."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def left(self, meter: CpuMeter) -> float:
        """Return what a connection that ends leaves unpaid: nothing, if it never asked for anything that costs."""
        seconds = self.settle() + (meter.total_s if meter.waits else 0.0)
        return seconds + _COMING_SECONDS if seconds else 0.0


class CarriedOverCost:
    """The unsettled cost of closed connections, dropped a second after the last of them.

    While it exceeds a time slice, new connections are queued before their input is parsed. Less is charged to the
    next connection.

    Args:
        clock: monotonic seconds.

    Attributes:
        seconds: of the event loop's time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._dropped_s = 0.0

    def exceeds_slice(self) -> bool:
        """Return whether a new connection has to wait."""
        if self.seconds >= SLICE_SECONDS and self._clock() >= self._dropped_s:
            self.seconds = 0.0
        return self.seconds >= SLICE_SECONDS

    def leave(self, seconds: float) -> None:
        """Add the unsettled cost of a connection that closes."""
        if seconds:
            self.seconds = min(self.seconds + seconds, _CARRIED_OVER_SECONDS_MAX)
            self._dropped_s = self._clock() + _CARRIED_SECONDS

    def take_over(self) -> float:
        """Return the cost that one connection takes over: a time slice at most."""
        seconds = min(self.seconds, SLICE_SECONDS)
        self.seconds -= seconds
        return seconds
