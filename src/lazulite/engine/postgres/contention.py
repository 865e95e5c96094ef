"""Contention: the partitions that other processes write to at the same time, and what that cost this process.

The rows of a statement have their timestamps before the statement waits for the partition's version row. If another
process commits a later timestamp meanwhile, the statement is *overtaken*: it writes nothing to that partition, and its
rows are sent again. The database wakes waiting processes in no order, so the more processes wait, the more statements
are overtaken.

A partition is *contended* for some seconds after a statement to it was overtaken. Another process of this machine may
commit for all then (see `remote.peers`).

If a good part of the statements to a partition is overtaken, its commits are *bound late* for some seconds. The version
row is locked first, and then the commits that wait are taken and get their timestamps. So nothing can overtake them.
This takes more round trips, in which the lock is held. Two processes overtake each other too rarely for that.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lazulite.engine.postgres.partition_locks import Partition

CONTENDED_SECONDS = 30.0
LATE_SECONDS = 5.0
PARTITIONS_MAX = 4096
"""The oldest ones are forgotten first."""

_WEIGHT = 0.1
"""Of the latest statement in the share of overtaken statements."""
_LATE_SHARE = 0.3
"""From this share on, commits are bound late."""


@dataclass(slots=True)
class _PartitionContention:
    until_s: float = 0.0
    """When it is contended no more."""
    late_until_s: float = 0.0
    share: float = 0.0
    """Of the latest statements, how many were overtaken."""


class Contention:
    """The contention that one engine has met.

    Args:
        now: the time in seconds, which never steps back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._overtaken: dict[Partition, _PartitionContention] = {}
        self._overtaken_rows = 0
        self._forwarded_rows = 0

    def is_contended(self, partition: Partition) -> bool:
        """Return whether a statement to a partition was overtaken lately."""
        found = self._overtaken.get(partition)
        if found is None:
            return False
        if self._now() < found.until_s:
            return True
        del self._overtaken[partition]
        return False

    def binds_late(self, partition: Partition) -> bool:
        """Return whether the commits of a partition are to be bound late."""
        found = self._overtaken.get(partition)
        return found is not None and self._now() < found.late_until_s

    def note_overtaken(self, partition: Partition, rows: int) -> None:
        """Note that a statement was overtaken, with so many rows of a partition."""
        self._overtaken_rows += rows
        found = self._overtaken.setdefault(partition, _PartitionContention())
        found.until_s = self._now() + CONTENDED_SECONDS
        found.share += (1 - found.share) * _WEIGHT
        if found.share > _LATE_SHARE:
            found.late_until_s = self._now() + LATE_SECONDS
            found.share = _LATE_SHARE
        if len(self._overtaken) > PARTITIONS_MAX:
            del self._overtaken[next(iter(self._overtaken))]

    def note_written(self, partition: Partition) -> None:
        """Note that a statement to a partition was not overtaken."""
        found = self._overtaken.get(partition)
        if found is not None:
            found.share -= found.share * _WEIGHT

    def note_forwarded(self, rows: int) -> None:
        """Note that a commit of so many rows was forwarded."""
        self._forwarded_rows += rows

    def counters(self) -> Mapping[str, float]:
        """Return what was counted, under the names of metrics."""
        return {"overtaken_rows_total": self._overtaken_rows, "forwarded_rows_total": self._forwarded_rows}
