"""The key ranges of one resource: how its traffic is spread over its keys, and over time.

Invariants: the ranges are contiguous, and the first one begins at the empty key. A boundary is a key that a request
had, at most `KEY_CHARACTERS_MAX` characters of it. Dividing, merging and joining ranges changes no sum over them. The
past of a range that is divided is assumed to have been spread evenly.
"""

from bisect import bisect_left, bisect_right, insort
from collections import deque

from lazulite.engine.ordinal import ordinal
from lazulite.traffic.counters import MINUTES, WIDTH, Counts, History

KEY_CHARACTERS_MAX = 64
"""What is kept of a key."""
SAMPLES_MAX = 8
"""The keys that are kept of one range."""


class KeyRange:
    """The traffic of a range of keys.

    Args:
        start: its first key.
    """

    __slots__ = ("_history", "_minute", "_open", "_unsampled", "load", "samples", "start")

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
        self._unsampled = 0.0

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
        if self._unsampled >= distance:
            count, self._unsampled = divmod(self._unsampled, distance)
            self.samples.extend([key[:KEY_CHARACTERS_MAX]] * min(int(count), SAMPLES_MAX))

    def median(self) -> str | None:
        """Return the key at which half of its load is above; None if its samples are of one partition."""
        ordered = sorted(self.samples, key=ordinal)
        lowest = max(ordered[0], self.start, key=ordinal) if ordered else ""
        above = (key for key in ordered[len(ordered) // 2 :] if ordinal(key) > ordinal(lowest))
        return next(above, None)


class KeyRanges:
    """The ranges of one resource, in the order of their keys."""

    __slots__ = ("_starts", "ranges")

    def __init__(self) -> None:
        self.ranges = [KeyRange("")]
        self._starts = [b""]

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
        """Divide the range of a key at it. Each part has half of its past. Without effect at a start."""
        start = ordinal(key)
        index = bisect_right(self._starts, start) - 1
        if self._starts[index] == start:
            return
        lower, upper = self.ranges[index], KeyRange(key)
        upper.history.merge(lower.history, 0.5)
        lower.history.scale(0.5)
        lower.load = upper.load = lower.load / 2
        samples = list(lower.samples)
        lower.samples = deque((each for each in samples if ordinal(each) < start), SAMPLES_MAX)
        upper.samples = deque((each for each in samples if ordinal(each) >= start), SAMPLES_MAX)
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
