"""Kept rows: of partitions that this process has committed to, the version and the value of one row.

They are a hint: each commit that relies on them checks the version. A partition that another process has changed is
forgotten, and kept again after the next commit but one.
"""

from typing import NamedTuple

from lazulite.engine.postgres.partition_locks import Partition
from lazulite.engine.postgres.sql_scripts import Place

PARTITIONS_MAX = 4096
VALUE_BYTES_MAX = 1024


class Kept(NamedTuple):
    """The version of a partition, and the row of that moment."""

    version: int
    row_key: bytes
    """Its index key; empty: none."""
    value: bytes | None
    """None: there is no such row."""


class KeptRows:
    """The rows that are kept, at most one of a partition. The oldest ones are forgotten."""

    def __init__(self) -> None:
        self._kept: dict[Partition, Kept] = {}

    def take(self, place: Place, row_key: bytes) -> Kept | None:
        """Forget what is kept of a partition; return it if it is this row."""
        kept = self._kept.pop((place.space, place.partition_key), None)
        return kept if kept is not None and kept.row_key == row_key else None

    def keep(self, place: Place, kept: Kept) -> None:
        """Keep a row, if there is one and it is not too large."""
        if not kept.row_key or len(kept.value or b"") > VALUE_BYTES_MAX:
            return
        self._kept[place.space, place.partition_key] = kept
        if len(self._kept) > PARTITIONS_MAX:
            del self._kept[next(iter(self._kept))]
