"""What clients counted in a window of time, and what that says about a step.

Processes count windows of the same clock, so that those with the same number can be added up.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.stress.histogram import add, quantile

STEADY_WINDOWS = 3
"""The windows whose means are compared with those of as many before."""
STEADY_SHARE = 0.05
"""The change that is small enough."""
MIXED = -1
"""The step of a window in which the load changed."""


@dataclass(slots=True)
class Window:
    """The counts of a window: of one process, or of all."""

    number: int = 0
    """Which window of the clock it is."""
    step: int = 0
    """The step that was under load from its beginning to its end."""
    requests: int = 0
    """Requests that succeeded."""
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were throttled, by what refused them."""
    failed: Counter[str] = field(default_factory=Counter)
    """Requests that failed otherwise, by status or reason."""
    latencies: Counter[int] = field(default_factory=Counter)
    """Latencies of requests that succeeded, as a histogram."""
    busy: float = 0.0
    """The share of the time in which the process used a CPU or waited for one; of several, that of the busiest."""
    late: Counter[int] = field(default_factory=Counter)
    """How long after its intended start a request was sent although a client was idle, as a histogram."""

    @property
    def answered(self) -> int:
        """The requests of which there is an end."""
        return self.requests + self.refused.total() + self.failed.total()

    def add(self, other: "Window") -> None:
        """Add the counts of another process or window."""
        self.requests += other.requests
        self.refused.update(other.refused)
        self.failed.update(other.failed)
        add(self.latencies, other.latencies)
        add(self.late, other.late)
        self.busy = max(self.busy, other.busy)

    def as_json(self) -> Mapping[str, object]:
        """Return an object for `window_of`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def window_of(found: Mapping[str, object]) -> Window:
    """Return the window of an object of JSON, in which the names of all members are text."""
    values = dict(found)
    for name in ("latencies", "late"):
        given = values[name]
        assert isinstance(given, dict), "it is a histogram"
        values[name] = Counter({int(bucket): count for bucket, count in given.items()})
    for name in ("refused", "failed"):
        values[name] = Counter(values[name])  # type: ignore[call-overload]  # of a process of this program
    return Window(**values)  # type: ignore[arg-type]  # likewise


def total(windows: Sequence[Window]) -> Window:
    """Return the sum of windows; its share of busy time is the mean."""
    found = Window()
    for each in windows:
        found.add(each)
    found.busy = sum(each.busy for each in windows) / (len(windows) or 1)
    return found


def is_steady(windows: Sequence[Window]) -> bool:
    """Return whether a load is steady: rate and median of latencies hardly changed.

    The means of the last `STEADY_WINDOWS` windows are compared with those of as many before.
    """
    before, after = windows[-2 * STEADY_WINDOWS : -STEADY_WINDOWS], windows[-STEADY_WINDOWS:]
    if len(before) < STEADY_WINDOWS:
        return False
    was, now = total(before), total(after)
    medians = quantile(was.latencies, 0.5), quantile(now.latencies, 0.5)
    return was.requests > 0 and _is_close(was.requests, now.requests) and _is_close(*medians)


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) <= STEADY_SHARE * max(one, other)
