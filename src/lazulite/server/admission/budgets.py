"""What the servers of a process share, so that each bound holds for the process, however many services it serves.

Invariants of the memory for bodies of authenticated requests: it is reserved for a whole body before the body is read,
so that each body that is being received can be completed, and no two incomplete bodies wait for each other. While the
budget is exhausted, a request waits; reservations are granted first come, first served. The total exceeds `bytes_max`
only by bodies that were in memory before they could be reserved (`take`), and by a single body larger than the bound.

Invariants of memory whose oldest holder is evicted when it is full, never the newest: after `update`, the total is at
most `bytes_max`; a holder that holds nothing is not listed. A holder's age counts from the moment since which it has
held something without a break. One update evicts few holders, as each counts `HELD_BYTES_MIN` at least.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lazulite.server.admission.accounts import CarriedOverCost
from lazulite.server.allocator import Peak
from lazulite.server.limits import Limits

SMALL_BODY_BYTES = 16 * 1024
"""A body of this length, or a shorter one, does not wait for the budget."""

HELD_BYTES_MIN = 4096
"""What a holder counts at least: about what the objects around one byte take."""


class BodyBudget:
    """Counts reserved memory.

    Args:
        bytes_max: the bound of the total.

    Attributes:
        held_bytes: the bytes reserved now.
    """

    __slots__ = ("_bytes_max", "_waiting", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Account for a body that is in memory already."""
        self.held_bytes += count

    def release(self, count: int) -> None:
        """Return bytes to the budget, and admit waiting requests."""
        self.held_bytes -= count
        self._admit()

    @property
    def is_crowded(self) -> bool:
        """Whether requests wait for the budget."""
        return bool(self._waiting)

    async def reserve(self, count: int, seconds: float, wait: Callable[[], "asyncio.Future[bool]"]) -> bool:
        """Return True once so many bytes are reserved, False if the reservation is no longer needed.

        Args:
            count: bytes.
            seconds: the longest wait.
            wait: makes the future to wait for; the caller sets it to False to give the reservation up.

        Raises:
            TimeoutError: the budget stayed exhausted.
        """
        if not self._waiting and self._fits(count):
            self.held_bytes += count
            return True
        admitted = wait()
        self._waiting.append((count, admitted))
        try:
            async with asyncio.timeout(seconds):
                return await admitted
        except BaseException:
            if admitted.done() and not admitted.cancelled() and admitted.result():
                self.held_bytes -= count  # Granted in the same step in which the wait ended.
            raise
        finally:
            self._admit()

    def _fits(self, count: int) -> bool:
        """Tell whether so many bytes fit; a body larger than the bound fits when no other is held."""
        return self.held_bytes + count <= self._bytes_max or not self.held_bytes

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting:
            count, admitted = waiting[0]
            if not admitted.done():
                if not self._fits(count):
                    return
                self.held_bytes += count
                admitted.set_result(True)
            waiting.popleft()


class BudgetHolder(Protocol):
    """Something that holds memory and can be made to let go of it."""

    def evict(self) -> None:
        """Let go of all that is held."""
        ...


class EvictingBudget:
    """Keeps count of what each holder holds.

    Args:
        bytes_max: the bound of the total.

    Attributes:
        held_bytes: the total.
        evicted_bytes: what evicted holders held, since the start.
    """

    __slots__ = ("_bytes_max", "_evicts", "_held", "evicted_bytes", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[BudgetHolder, int] = {}
        """In the order in which they began to hold something."""
        self._evicts = False
        self.held_bytes = 0
        self.evicted_bytes = 0

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of it is held."""
        return 2 * self.held_bytes > self._bytes_max

    def update(self, holder: BudgetHolder, count: int) -> None:
        """Note that a holder holds `count` bytes now; evict the oldest holders while the total is too large."""
        held = self._held
        before = held.get(holder, 0)
        if count:
            count = max(count, HELD_BYTES_MIN)
        if count == before:
            return
        self.held_bytes += count - before
        if count:
            held[holder] = count
        else:
            del held[holder]
        if not self._evicts and self.held_bytes > self._bytes_max:
            self._evicts = True  # What a holder that goes updates meanwhile is looked at by the loop here.
            try:
                self._make_room()
            finally:
                self._evicts = False

    def _make_room(self) -> None:
        held = self._held
        while self.held_bytes > self._bytes_max:
            oldest = next(iter(held))
            count = held.pop(oldest)
            self.held_bytes -= count
            self.evicted_bytes += count
            oldest.evict()


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
        """The bytes of request bodies: held, or reserved."""
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
