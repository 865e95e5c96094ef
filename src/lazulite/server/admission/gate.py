"""A connection's place in the slow lane (`scheduler`): what it owes, and whether it waits there.

Invariants:
- Nothing of a connection that waits is looked at before its turn has come, heirs excepted: they are read from, if they
  do not send more than one read takes, else nobody would see them leave.
- A connection pays for what it did, never for what others do; only who comes while much is owed by those who have
  left waits for that too.
"""

from collections.abc import Callable

from lazulite.server.admission.costs import Debt
from lazulite.server.admission.scheduler import TURN_SECONDS, Meter
from lazulite.server.http.outbound import Outlet
from lazulite.server.http.server_state import Shared


class Place:
    """Of one connection.

    Args:
        shared: of the server's connections.
        go_on: called when the connection's turn has come, with the seconds that it has waited.

    Attributes:
        debt: what the connection owes.
        held: nothing may be looked at before `free` has said so: at first, and while the connection waits.
        meter: how long its request has had the event loop.
        waits: for its turn.
    """

    __slots__ = ("_go_on", "_heir", "_shared", "_since_s", "debt", "held", "meter", "waits")

    def __init__(self, shared: Shared, go_on: Callable[[float], None]) -> None:
        self._shared = shared
        self._go_on: Callable[[float], None] | None = go_on
        self._heir = False
        self._since_s = 0.0
        self.debt = Debt()
        self.meter = Meter()
        self.held = True
        self.waits = False

    def free(self, outlet: Outlet | None) -> bool:
        """Say whether the connection may go on now; who owes much waits before anything else, and is not read."""
        debt = self.debt
        if not self.held and debt.seconds < TURN_SECONDS:
            return True
        shared = self._shared
        if self.held and not self.waits:
            self._heir = shared.estate.is_heavy()
            if not self._heir:
                debt.seconds += shared.estate.inherit()
        if outlet is not None and self.waits:
            outlet.read(False)
        elif outlet is not None and (self._heir or debt.seconds >= TURN_SECONDS):
            self.waits = True
            self._since_s = shared.clock()
            outlet.read(self._heir)
            shared.lane.owe(debt.pay())
            shared.lane.enter(self._take_turn)
        self.held = self.waits
        return not self.waits

    def leave(self) -> None:
        """Leave what is not paid to those that come: the connection has gone."""
        self._go_on = None  # The connection refers to its place: nothing may be left to the cycle collector.
        self._shared.estate.leave(self.debt.left(self.meter))

    def _take_turn(self) -> bool:
        shared, go_on = self._shared, self._go_on
        self.held = self.waits = False
        if go_on is None:
            return False
        if self._heir:
            self._heir = False
            shared.lane.owe(shared.estate.inherit())
        go_on(shared.clock() - self._since_s)
        return True
