"""Contention: the partitions that other processes write to at the same time, and what that cost this process.

The rows of a statement have their timestamps before the statement waits for the partition's version row. If another
process commits a later timestamp meanwhile, the statement is *overtaken*: it writes nothing to that partition, and its
rows are sent again. The database wakes waiting processes in no order, so the more processes wait, the more statements
are overtaken.

A partition is *contended* for some time after a good part of the statements to it was overtaken. Another process of
this machine may commit for all then (see `remote.peers`). Two processes overtake each other too rarely for that: about
one statement in twenty. They lose less by it than by a way over another process.

Commits that are made here meanwhile are *bound late* at first. The version row is locked, and then the commits that
wait are taken and get their timestamps. So nothing can overtake them. This takes more round trips, in which the lock is
held. They end sooner than the contention, as the other processes may have begun to forward their commits.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lazulite.engine.postgres.partition_locks import Partition

CONTENDED_SECONDS = 5.0, 60.0
"""At least, and at most."""
_CONTENDED_STATEMENTS = 100
"""In between, as long as so many statements like the last one take."""
LATE_SECONDS = 5.0
PARTITIONS_MAX = 4096
"""The oldest ones are forgotten first."""

_WEIGHT = 0.2
"""The weight of the latest statement in the share of overtaken statements."""
_CONTENDED_SHARE = 0.45
"""A partition is contended from this share on."""
_FORGOTTEN_SHARE = 0.001
"""Below this share, a partition is as one to which no statement was overtaken."""


@dataclass(slots=True)
class _PartitionContention:
    until_s: float = 0.0
    """When it is contended no more."""
    late_until_s: float = 0.0
    share: float = 0.0
    """The share of overtaken statements among the latest ones."""


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
        """Return whether many statements to a partition were overtaken lately."""
        found = self._overtaken.get(partition)
        return found is not None and self._now() < found.until_s

    def binds_late(self, partition: Partition) -> bool:
        """Return whether the commits of a partition are to be bound late."""
        found = self._overtaken.get(partition)
        return found is not None and self._now() < found.late_until_s

    def note_overtaken(self, partition: Partition, rows: int, seconds: float = 0.0) -> None:
        """Note that a statement was overtaken.

        Args:
            partition: one of its partitions.
            rows: that it had for this partition.
            seconds: how long it took, with its wait for the partition's lock.
        """
        self._overtaken_rows += rows
        found = self._overtaken.setdefault(partition, _PartitionContention())
        found.share += (1 - found.share) * _WEIGHT
        if found.share > _CONTENDED_SHARE:
            found.share = _CONTENDED_SHARE
            least, most = CONTENDED_SECONDS
            found.until_s = self._now() + min(max(seconds * _CONTENDED_STATEMENTS, least), most)
            found.late_until_s = self._now() + LATE_SECONDS
        if len(self._overtaken) > PARTITIONS_MAX:
            del self._overtaken[next(iter(self._overtaken))]

    def note_written(self, partitions: Iterable[Partition]) -> None:
        """Note that a statement to some partitions was not overtaken."""
        for partition in self._overtaken.keys() & partitions if self._overtaken else ():
            found = self._overtaken[partition]
            found.share -= found.share * _WEIGHT
            if found.share < _FORGOTTEN_SHARE and self._now() >= found.until_s:
                del self._overtaken[partition]

    def note_forwarded(self, rows: int) -> None:
        """Note that a commit of so many rows was forwarded."""
        self._forwarded_rows += rows

    def counters(self) -> Mapping[str, float]:
        """Return what was counted, under the names of metrics."""
        return {"overtaken_rows_total": self._overtaken_rows, "forwarded_rows_total": self._forwarded_rows}
