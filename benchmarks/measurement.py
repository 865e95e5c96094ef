"""What one run of a load generator found, and the error that ends a benchmark."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from benchmarks.workload import Workload


class BenchmarkError(Exception):
    """The server failed, or did not do what was to be measured; the numbers would be of something else."""


class Latency(NamedTuple):
    """Quantiles and the worst, in milliseconds."""

    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def latency(seconds: Sequence[float]) -> Latency:
    """Return the quantiles of at least one latency."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    p50, p99, p999 = (ordered[min(last, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99, 0.999))
    return Latency(p50, p99, p999, ordered[last] * 1000)


class Measurement(NamedTuple):
    """Requests answered, those of them with a wrong status, seconds, bytes of responses, latencies."""

    requests: int
    errors: int
    seconds: float
    received_bytes: int
    latency: Latency

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


class Limits(NamedTuple):
    """When a run ends, whichever comes first."""

    seconds: float
    requests: int


Load: TypeAlias = Callable[[Workload, int, int, Limits], Measurement]
"""A closed-loop load generator: (workload, port on the loopback address, first number, limits) -> what it found."""
