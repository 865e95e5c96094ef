"""Contention: the partitions that other processes write to at the same time, and what that cost this process.

The rows of a statement have their timestamps before the statement waits for the partition's version row. If another
process commits a later timestamp meanwhile, the statement is *overtaken*: it writes nothing to that partition, and its
rows are sent again.
"""

from collections.abc import Mapping

from lazulite.engine.postgres.partition_locks import Partition


class Contention:
    """The contention that one engine has met."""

    def __init__(self) -> None:
        self._overtaken_rows = 0

    def note_overtaken(self, partition: Partition, rows: int) -> None:  # noqa: ARG002 - used by what follows
        """Note that so many rows were sent to a partition in vain."""
        self._overtaken_rows += rows

    def counters(self) -> Mapping[str, float]:
        """Return what was counted, under the names of metrics."""
        return {"overtaken_rows_total": self._overtaken_rows}
