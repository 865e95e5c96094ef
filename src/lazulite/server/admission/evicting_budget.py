"""Memory that holders share: when it is full, the oldest holder is evicted, never the newcomer.

Invariants: after `update`, the total is at most `bytes_max`; a holder that holds nothing is not listed. A holder's age
counts from the moment since which it has held something without a break.
"""

from typing import Protocol


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
    """

    __slots__ = ("_bytes_max", "_held", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Holder, int] = {}
        """In the order in which they began to hold something."""
        self.held_bytes = 0

    def update(self, holder: Holder, count: int) -> None:
        """Note that a holder holds `count` bytes now; evict the oldest holders while the total is too large."""
        held = self._held
        before = held.get(holder, 0)
        if count == before:
            return
        self.held_bytes += count - before
        if count:
            held[holder] = count
        else:
            del held[holder]
        while self.held_bytes > self._bytes_max:
            oldest = next(iter(held))
            self.held_bytes -= held.pop(oldest)
            oldest.evict()
