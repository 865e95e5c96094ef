"""Statistics of flushes, for metrics.

Invariants: without an observer none of this runs, and group commit is the same with one. A flush that fails is not
reported.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from lazulite.engine.rocksdb.group_commit import CommitGroup


class Flush(NamedTuple):
    """The flush of one commit group."""

    commits: int
    """Commits that waited for it when it was written, rejected ones included."""
    size_bytes: int
    """Size of its keys and values."""
    write_seconds: float
    """Time to write it to the database's log, unsynced."""
    sync_seconds: float
    """Time to sync the log."""


FlushObserver = Callable[[Flush], None]
"""Receives each successful flush, in the thread that syncs. It must be quick and must not raise."""


class ObservedFlush:
    """The two steps of a flush, reported to an observer. Steps alternate: a write, then its sync.

    Args:
        write: writes a commit group, see `GroupCommit`.
        sync: syncs the log, see `GroupCommit`.
        observer: receives each flush that succeeds.
        timer: returns seconds.
    """

    def __init__(
        self,
        write: Callable[[CommitGroup], Awaitable[None]],
        sync: Callable[[], None],
        observer: FlushObserver,
        timer: Callable[[], float],
    ) -> None:
        self._write = write
        self._sync = sync
        self._observer = observer
        self._timer = timer
        self._written = (0, 0, 0.0)

    async def write(self, group: CommitGroup) -> None:
        """Write a group; raises what the step raises."""
        commits, began = len(group.waiters), self._timer()
        await self._write(group)
        self._written = (commits, group.size_bytes, self._timer() - began)

    def sync(self) -> None:
        """Sync the log; raises what the step raises."""
        began = self._timer()
        self._sync()
        self._observer(Flush(*self._written, self._timer() - began))
