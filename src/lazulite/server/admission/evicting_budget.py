"""Memory that holders share: when it is full, the oldest holder is evicted, never the newest.

Invariants: after `update`, the total is at most `bytes_max`; a holder that holds nothing is not listed. A holder's age
counts from the moment since which it has held something without a break. One update evicts few holders, as each counts
`HELD_BYTES_MIN` at least.
"""

from typing import Protocol

HELD_BYTES_MIN = 4096
"""What a holder counts at least: about what the objects around one byte take."""


class Holder(Protocol):
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
        self._held: dict[Holder, int] = {}
        """In the order in which they began to hold something."""
        self._evicts = False
        self.held_bytes = 0
        self.evicted_bytes = 0

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of it is held."""
        return 2 * self.held_bytes > self._bytes_max

    def update(self, holder: Holder, count: int) -> None:
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
