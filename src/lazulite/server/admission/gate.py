"""The admission gate of a connection: whether its input may be looked at, or waits for the scheduler first.

Invariants:
- Nothing of a blocked connection is looked at before the scheduler admits it. A new connection that is deferred because
  of carried-over cost is read from, up to one read: otherwise its client's leaving would go unnoticed.
- A connection is charged for its own cost only. New connections wait for that of closed ones too, while it is more
  than a time slice (`CarriedOverCost`).
"""

from collections.abc import Callable
from typing import Protocol

from lazulite.server.admission.costs import CarriedOverCost, CostAccount
from lazulite.server.admission.scheduler import SLICE_SECONDS, CpuMeter, FairScheduler


class Readable(Protocol):
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
    """Of one connection.

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

    def try_admit(self, socket: Readable | None) -> bool:
        """Return whether the connection may go on now; if not, it waits for the scheduler, and is not read."""
        account = self.account
        if not self.blocked and account.seconds < SLICE_SECONDS:
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
