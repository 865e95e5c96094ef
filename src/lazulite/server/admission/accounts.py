"""The accounts of connections, for bulk, long requests and rejected requests, and the gate at which a connection waits.

Invariants:
- Ordinary requests of good clients cost nothing here, however many there are. A connection is charged for its own cost
  only. The unsettled cost of a closed connection is carried over to new ones, which wait for it while it is more than a
  time slice (`CarriedOverCost`). So a connection for each request does not evade the scheduler.
- The prices are orders of magnitude, not measurements: enough to tell a client that sends little from one that sends
  much.
- Nothing of a blocked connection is looked at before the scheduler admits it. A new connection that is deferred because
  of carried-over cost is read from, up to one read: otherwise its client's leaving would go unnoticed.
"""

from collections.abc import Callable
from typing import Protocol

from lazulite.server.admission.scheduler import SLICE_SECONDS, CpuMeter, FairScheduler

BULK_BYTES = 16 * 1024
"""What comes at once and is less is no bulk."""
_BULK_SECONDS_PER_BYTE = 0.5e-9
"""What reading a large piece of input costs, which is copied twice and looked through once, or sending one."""

_SHORT_BYTES = 256 * 1024
"""A larger response takes about a time slice, or would on another machine."""

_FRAGMENTS_FREE = 16
"""The free fragments of a slice of input: short bodies, and the ends of those that came in two reads."""

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
    """The cost of one connection: `seconds` of the event loop's time, charged once they are a time slice."""

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
        """Account for work on a request that has to be done again, as its response was not ready."""
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
        """Return the cost, and begin again."""
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


class ReadControl(Protocol):
    """The socket of a connection."""

    def read(self, wanted: bool) -> bool:
        """Turn reading on or off."""
        ...


class GateResources(Protocol):
    """What the gates of a server share."""

    scheduler: FairScheduler
    carried_over: CarriedOverCost

    @property
    def clock(self) -> Callable[[], float]:
        """Monotonic seconds."""
        ...


class AdmissionGate:
    """The admission of the requests of one connection.

    Args:
        resources: of the server.
        on_admitted: called when the scheduler has admitted the connection, with the seconds that it has waited.

    Attributes:
        account: the connection's cost.
        blocked: nothing may be looked at before `try_admit` has said so: at first, and while the connection waits.
        meter: the event loop's time that the running request has had.
        waits: for the scheduler.
    """

    __slots__ = ("_is_deferred", "_on_admitted", "_resources", "_since_s", "account", "blocked", "meter", "waits")

    def __init__(self, resources: GateResources, on_admitted: Callable[[float], None]) -> None:
        self._resources = resources
        self._on_admitted: Callable[[float], None] | None = on_admitted
        self._is_deferred = False
        self._since_s = 0.0
        self.account = CostAccount()
        self.meter = CpuMeter()
        self.blocked = True
        self.waits = False

    @property
    def is_open(self) -> bool:
        """Whether `try_admit` would return True, and do nothing else."""
        return not self.blocked and self.account.seconds < SLICE_SECONDS

    def try_admit(self, socket: ReadControl | None) -> bool:
        """Return whether the connection may go on now; if not, it waits for the scheduler, and is not read."""
        account = self.account
        if self.is_open:
            return True
        resources = self._resources
        if self.blocked and not self.waits:
            self._is_deferred = resources.carried_over.exceeds_slice()
            if not self._is_deferred:
                account.seconds += resources.carried_over.take_over()
        if socket is not None and self.waits:
            socket.read(False)
        elif socket is not None and (self._is_deferred or account.seconds >= SLICE_SECONDS):
            self.waits = True
            self._since_s = resources.clock()
            socket.read(self._is_deferred)
            resources.scheduler.charge(account.settle())
            resources.scheduler.enter(self._begin_slice)
        self.blocked = self.waits
        return not self.waits

    def leave(self) -> None:
        """Carry the unsettled cost over to new connections: this one has closed."""
        self._on_admitted = None  # The connection refers to its gate: nothing may be left to the cycle collector.
        self._resources.carried_over.leave(self.account.left(self.meter))

    def _begin_slice(self) -> bool:
        resources, on_admitted = self._resources, self._on_admitted
        self.blocked = self.waits = False
        if on_admitted is None:
            return False
        if self._is_deferred:
            self._is_deferred = False
            resources.scheduler.charge(resources.carried_over.take_over())
        on_admitted(resources.clock() - self._since_s)
        return True
