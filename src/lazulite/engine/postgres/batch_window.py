"""Groups of calls on their way to the database, and whether another one may leave yet.

Invariants: at most `_GROUPS_MAX` are on their way; while none is, one may leave at once; nobody waits for company
longer than the patience with a group, nor if there is enough for a full one, nor while few calls are on their way.

A group costs the database and this process more than a call in it. And where several processes write to the same
partitions, each group waits until those of the others are durable, whatever its size: so fewer and larger ones.
"""

import asyncio
from collections.abc import Callable, Hashable

_GROUPS_MAX = 3
_FEW = 4
"""Calls: as long as fewer are on their way, the company of others is not worth waiting for."""


class Traffic:
    """Of groups of one kind.

    Args:
        full: calls of a full group.
        patience_seconds: how long a group keeps others waiting.
        look: called when the patience with a group ends.
    """

    def __init__(self, full: int, patience_seconds: float, look: Callable[[], None]) -> None:
        self._full = full
        self._patience_seconds = patience_seconds
        self._look = look
        self._under_way: set[Hashable] = set()
        self._waited_for: dict[Hashable, tuple[int, asyncio.TimerHandle]] = {}
        """Of those groups, their calls, and what ends the patience with them."""

    def allows(self, waiting: int) -> bool:
        """Say whether a group may leave now, while so many calls wait."""
        if len(self._under_way) >= _GROUPS_MAX:
            return False
        return waiting >= self._full or sum(calls for calls, _ in self._waited_for.values()) < _FEW

    def leave(self, group: Hashable, calls: int) -> None:
        """Note that a group of so many calls leaves."""
        self._under_way.add(group)
        if self._patience_seconds:
            timer = asyncio.get_running_loop().call_later(self._patience_seconds, self._wait_no_longer, group)
            self._waited_for[group] = calls, timer

    def arrive(self, group: Hashable) -> None:
        """Note that a group has been answered."""
        self._under_way.discard(group)
        _, timer = self._waited_for.pop(group, (0, None))
        if timer is not None:
            timer.cancel()

    def _wait_no_longer(self, group: Hashable) -> None:
        self._waited_for.pop(group)
        self._look()
