"""The key ranges of one resource: how its traffic is spread over its keys, and over time.

Invariants: the ranges are contiguous, and the first one begins at the empty key. A boundary is a key that a request
had, or the text right after it, by at most `KEY_CHARACTERS_MAX` characters of the key. Dividing, merging and joining
ranges changes no sum over them. The past of a range that is divided is assumed to have been spread as its samples are.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Sequence

from lazulite.engine.ordinal import ordinal
from lazulite.traffic.counters import MINUTES, WIDTH, Counts, History

KEY_CHARACTERS_MAX = 64
"""What is kept of a key."""
SAMPLES_MAX = 8
"""The keys that are kept of one range."""
_GOLDEN = 0.618_034
"""Distances between samples vary by this part, so that they fall in step with no rhythm of requests."""


class KeyRange:
    """The traffic of a range of keys.

    Args:
        start: its first key.
    """

    __slots__ = ("_history", "_minute", "_open", "_phase", "_unsampled", "load", "samples", "start")

    def __init__(self, start: str) -> None:
        self.start = start
        self.load = 0.0
        """Its cost, of which older parts count less; see `Meter`."""
        self.samples: deque[str] = deque(maxlen=SAMPLES_MAX)
        """Keys of its requests, each for the same cost, the latest last."""
        self._history = History()
        self._minute = 0
        self._open = [0.0] * WIDTH
        """What it took in that minute, which is not in the history yet."""
        self._unsampled = self._phase = 0.0

    @property
    def history(self) -> History:
        """Its cells, those of this minute included."""
        self._close()
        return self._history

    def _close(self) -> None:
        if any(self._open):
            self._history.add(self._minute * MINUTES.seconds, self._open)
            self._open = [0.0] * WIDTH

    def add(self, key: str, minute: int, counts: Counts, load: float, distance: float) -> None:
        """Count traffic of a key.

        Args:
            key: of the partition.
            minute: since the epoch.
            counts: what it took.
            load: its cost, weighted.
            distance: the load between two samples.
        """
        if minute != self._minute:
            self._close()
            self._minute = minute
        here = self._open
        for index, count in enumerate(counts):
            if count:
                here[index] += count
        self.load += load
        self._unsampled += load
        if self._unsampled >= distance * (0.5 + self._phase):
            count = max(1, self._unsampled // distance)
            self._unsampled = 0.0
            self._phase = (self._phase + _GOLDEN) % 1
            self.samples.extend([key[:KEY_CHARACTERS_MAX]] * min(int(count), SAMPLES_MAX))

    def median(self) -> str | None:
        """Return the key at which half of its load is above, or what sets its only partition apart; None without load.

        The partition is set apart by two boundaries: the key itself, and the text right after it.
        """
        ordered = sorted(self.samples, key=ordinal)
        if not ordered:
            return None
        lowest = max(ordered[0], self.start, key=ordinal)
        above = (key for key in ordered[len(ordered) // 2 :] if ordinal(key) > ordinal(lowest))
        return next(above, f"{lowest}\0" if lowest == self.start else lowest)


class KeyRanges:
    """The ranges of one resource, in the order of their keys."""

    __slots__ = ("_starts", "ranges")

    def __init__(self) -> None:
        self.ranges = [KeyRange("")]
        self._starts = [b""]

    @classmethod
    def of(cls, ranges: Sequence[KeyRange]) -> "KeyRanges":
        """Return ranges that are given in their order, the first with the empty key."""
        made = cls()
        made.ranges = list(ranges)
        made._starts = [ordinal(each.start) for each in ranges]
        return made

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def starts(self) -> list[str]:
        """The first key of each range."""
        return [each.start for each in self.ranges]

    def find(self, key: str) -> KeyRange:
        """Return the range of a key."""
        return self.ranges[bisect_right(self._starts, ordinal(key)) - 1]

    def between(self, first: str, last: str) -> list[KeyRange]:
        """Return the ranges that have keys from `first` to `last`; that of `first` if `last` is below it."""
        low = bisect_right(self._starts, ordinal(first)) - 1
        high = bisect_right(self._starts, ordinal(last))
        return self.ranges[low : max(high, low + 1)]

    def divide(self, key: str) -> None:
        """Divide the range of a key at it. Its past goes to both parts as its samples do. Without effect at a start."""
        start = ordinal(key)
        index = bisect_right(self._starts, start) - 1
        if self._starts[index] == start:
            return
        lower, upper = self.ranges[index], KeyRange(key)
        samples = list(lower.samples)
        lower.samples = deque((each for each in samples if ordinal(each) < start), SAMPLES_MAX)
        upper.samples = deque((each for each in samples if ordinal(each) >= start), SAMPLES_MAX)
        share = len(upper.samples) / len(samples) if samples else 0.5
        upper.history.merge(lower.history, share)
        lower.history.scale(1 - share)
        upper.load, lower.load = lower.load * share, lower.load * (1 - share)
        self.ranges.insert(index + 1, upper)
        insort(self._starts, start)

    def merge(self, index: int) -> None:
        """Merge a range with the next one."""
        lower, upper = self.ranges[index], self.ranges.pop(index + 1)
        del self._starts[index + 1]
        lower.history.merge(upper.history)
        lower.load += upper.load
        lower.samples = deque([*lower.samples, *upper.samples][::2], SAMPLES_MAX)

    def join(self, other: "KeyRanges") -> None:
        """Add the ranges of the same resource in another process: first divide at all boundaries of both."""
        for start in other.starts:
            self.divide(start)
        for index, each in enumerate(other.ranges):
            first = bisect_left(self._starts, ordinal(each.start))
            after = other.ranges[index + 1].start if index + 1 < len(other) else None
            last = len(self._starts) if after is None else bisect_left(self._starts, ordinal(after))
            parts = self.ranges[first:last]
            for part in parts:
                part.history.merge(each.history, 1 / len(parts))
                part.load += each.load / len(parts)
                part.samples.extend(key for key in each.samples if self.find(key) is part)
