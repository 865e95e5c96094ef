"""What the servers of a process share, so that each bound holds for the process, however many services it serves."""

from collections.abc import Callable
from dataclasses import dataclass

from lazulite.server.admission.body_budget import BodyBudget
from lazulite.server.admission.costs import CarriedOverCost
from lazulite.server.admission.evicting_budget import EvictingBudget
from lazulite.server.limits import Limits


@dataclass(slots=True)
class Budgets:
    """The budgets of a process.

    `bodies`: memory for bodies of requests whose credentials were found good. `unaccepted`: memory for those of others.
    `unauthenticated`: memory for all buffers of connections that have shown no good credentials yet. `carried_over`:
    the unsettled cost of closed connections. `connection_count`: those open and those whose request still runs.
    """

    bodies: BodyBudget
    unaccepted: EvictingBudget
    unauthenticated: EvictingBudget
    carried_over: CarriedOverCost
    connection_count: int = 0

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
        CarriedOverCost(clock),
    )
