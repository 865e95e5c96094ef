"""The ranges of a table: contiguous, without overlap, each with all rows of its partitions, each on one virtual server.

Invariants:
- a `RangeMap` is a value: each change makes a new one, so that readers need no lock, and a store can compare them;
- the first range starts at the empty key, and starts rise in the order of keys, by UTF-16 code unit;
- a boundary is a PartitionKey, so no partition is in two ranges, and a query of one partition stays in one range;
- while a range moves, its server is the new one, and its requests are refused.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from lazulite.engine.ordinal import ordinal


class TableKey(NamedTuple):
    """What tells one table from all others, those of its name before it was deleted included."""

    account: str
    table: str
    """Its name in lower case."""
    space: int
    """The number of its space, which is never used again."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of partitions. Times are in seconds of the server's clock."""

    start: str
    """Its first PartitionKey."""
    server: int
    """Its virtual server."""
    changed: float
    """When it was made, by a split or a merge."""
    moving_until: float = 0
    """The end of its last move."""
    hot_since: float | None = None
    """Since when its load has been above the threshold of splits; None: it is not."""
    cold_since: float | None = None
    """Since when its load has been below the threshold of merges; None: it is not."""
    peak: float = 0
    """The greatest load of the last while, in operations per second; it halves with time."""

    def is_moving(self, now: float) -> bool:
        """Return whether its requests are refused because it moves."""
        return now < self.moving_until


@dataclass(frozen=True)
class RangeMap:
    """The ranges of one table, in the order of their keys."""

    ranges: tuple[Range, ...]
    version: int = 0
    """The number of changes."""

    @cached_property
    def _starts(self) -> list[bytes]:
        return [ordinal(each.start) for each in self.ranges]

    @classmethod
    def of_new_table(cls, server: int, now: float) -> "RangeMap":
        """Return the map of a new table: one range on a server."""
        return cls((Range("", server, now),))

    def index(self, partition: str) -> int:
        """Return which range has a partition."""
        return bisect_right(self._starts, ordinal(partition)) - 1

    def find(self, partition: str) -> Range:
        """Return the range that has a partition."""
        return self.ranges[self.index(partition)]

    def end(self, index: int) -> str | None:
        """Return the first PartitionKey after a range; None for the last range."""
        return self.ranges[index + 1].start if index + 1 < len(self.ranges) else None

    def end_of(self, partition: str) -> str | None:
        """Return the first PartitionKey after the range of a partition, where a page ends; None: there is none."""
        return self.end(self.index(partition))

    def updated(self, ranges: Sequence[Range]) -> "RangeMap":
        """Return a map with these ranges; the same map if they are the same."""
        new = tuple(ranges)
        return self if new == self.ranges else RangeMap(new, self.version + 1)

    def split(self, index: int, key: str, server: int, now: float, move_seconds: float) -> "RangeMap":
        """Return a map with a range split: the part from a key on is a range of its own, which moves to a server.

        Args:
            index: the range.
            key: a PartitionKey in it, and not its start.
            server: the virtual server of the new range.
            now: the time.
            move_seconds: how long the move takes; none is made to the same server.

        Raises:
            ValueError: the key is not inside the range.
        """
        old = self.ranges[index]
        if self.index(key) != index or key == old.start:
            raise ValueError("a range is split at a key inside it")
        left = replace(old, changed=now, hot_since=None, cold_since=None)
        until = old.moving_until if server == old.server else now + move_seconds
        right = replace(left, start=key, server=server, moving_until=until)
        return self.updated((*self.ranges[:index], left, right, *self.ranges[index + 1 :]))

    def move(self, index: int, server: int, now: float, move_seconds: float) -> "RangeMap":
        """Return a map with a range on another server; it moves from `now` on. The arguments are those of `split`."""
        moved = replace(self.ranges[index], server=server, moving_until=now + move_seconds, hot_since=None)
        return self.updated((*self.ranges[:index], moved, *self.ranges[index + 1 :]))

    def merge(self, index: int, now: float, move_seconds: float) -> "RangeMap":
        """Return a map with a range and the one after it as one, on the first one's server.

        All of it moves for a while if the second one was on another server. The arguments are those of `split`.
        """
        left, right = self.ranges[index : index + 2]
        until = max(left.moving_until, right.moving_until)
        if left.server != right.server:
            until = now + move_seconds
        merged = Range(left.start, left.server, now, until, peak=left.peak + right.peak)
        return self.updated((*self.ranges[:index], merged, *self.ranges[index + 2 :]))
