"""What flushes cost, for whoever wants to know.

Invariants: without a meter nothing of this is there, and group commit is the same with one; a flush that fails is not
told of.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from lazulite.engine.rocksdb.commit_group import Generation


class Flush(NamedTuple):
    """One generation that became durable."""

    commits: int
    """Commits that waited for it when it was written, refused ones included."""
    size_bytes: int
    """Of its changes, as in the log."""
    write_seconds: float
    """In the database's log, unsynced."""
    sync_seconds: float


Meter = Callable[[Flush], None]
"""Told of each flush, in the thread that syncs; quick, never raises."""


class MeteredFlush:
    """The two steps of a flush, with a meter told of each that succeeds. Steps alternate: a write, then its sync.

    Args:
        write, sync: the steps; see `GroupCommit`.
        meter: is told.
        timer: counts seconds.
    """

    def __init__(
        self,
        write: Callable[[Generation], Awaitable[None]],
        sync: Callable[[], None],
        meter: Meter,
        timer: Callable[[], float],
    ) -> None:
        self._write = write
        self._sync = sync
        self._meter = meter
        self._timer = timer
        self._written = (0, 0, 0.0)

    async def write(self, generation: Generation) -> None:
        """Write; raises what the step raises."""
        commits, began = len(generation.waiters), self._timer()
        await self._write(generation)
        self._written = (commits, generation.size_bytes, self._timer() - began)

    def sync(self) -> None:
        """Sync; raises what the step raises."""
        began = self._timer()
        self._sync()
        self._meter(Flush(*self._written, self._timer() - began))
