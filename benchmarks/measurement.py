"""What one run of a load generator found, and the error that ends a benchmark."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from benchmarks.workload import Workload


class BenchmarkError(Exception):
    """The server failed, or did not do what was to be measured; the numbers would be of something else."""


class Measurement(NamedTuple):
    """Requests answered, those of them with a wrong status, seconds, bytes of responses, latencies in milliseconds."""

    requests: int
    errors: int
    seconds: float
    received_bytes: int
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


class Limits(NamedTuple):
    """When a run ends, whichever comes first."""

    seconds: float
    requests: int


Load: TypeAlias = Callable[[Workload, int, int, Limits], Measurement]
"""A load generator: (workload, port on the loopback address, first number, limits) -> what it found."""
