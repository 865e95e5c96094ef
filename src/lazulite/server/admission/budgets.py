"""What the servers of a process share, so that each bound holds for the process, however many services it serves."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lazulite.server.admission.body_budget import BodyBudget
from lazulite.server.admission.costs import CarriedOverCost
from lazulite.server.admission.evicting_budget import EvictingBudget
from lazulite.server.allocator import Peak
from lazulite.server.limits import Limits


@dataclass(slots=True)
class Budgets:
    """The budgets of a process.

    `bodies`: memory for bodies of requests whose credentials were found good. `unaccepted`: memory for those of others.
    `unauthenticated`: memory for all buffers of connections that have shown no good credentials yet. `authenticated`:
    likewise of the others. `windows`, `public_windows`: memory for parts of blobs on their way to clients with and
    without credentials. `carried_over`: the unsettled cost of closed connections. `connection_count`: those open and
    those whose request still runs. `peak`: of what all of them hold.
    """

    bodies: BodyBudget
    unaccepted: EvictingBudget
    unauthenticated: EvictingBudget
    authenticated: EvictingBudget
    windows: BodyBudget
    public_windows: BodyBudget
    carried_over: CarriedOverCost
    connection_count: int = 0
    peak: Peak = field(default_factory=Peak)

    @property
    def held_bytes(self) -> int:
        """All that is counted."""
        held = self.bodies, self.unaccepted, self.unauthenticated, self.authenticated, self.windows, self.public_windows
        return sum(budget.held_bytes for budget in held)

    @property
    def evicted_bytes(self) -> int:
        """All that was taken from connections since the start."""
        return sum(budget.evicted_bytes for budget in (self.unaccepted, self.unauthenticated, self.authenticated))

    @property
    def buffered_bytes(self) -> int:
        """Of request bodies: held, or reserved."""
        return self.bodies.held_bytes + self.unaccepted.held_bytes


def budgets_of(limits: Limits, clock: Callable[[], float]) -> Budgets:
    """Return the empty budgets of a process.

    Args:
        limits: the bounds.
        clock: returns monotonic seconds.
    """
    return Budgets(
        BodyBudget(limits.buffered_bytes),
        EvictingBudget(limits.unaccepted_body_bytes),
        EvictingBudget(limits.unauthenticated_bytes),
        EvictingBudget(limits.authenticated_bytes),
        BodyBudget(limits.window_bytes),
        BodyBudget(limits.public_window_bytes),
        CarriedOverCost(clock),
    )
