"""A workload, and the findings of a load generator that runs it.

A workload is a list of raw HTTP/1.1 requests, built before the clock starts and sent in turn, over and over. `MARK` in
a request stands for a number that no other request of the run carries; it has the mark's own length, so Content-Length
stays right.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeAlias

MARK = b"@@@@@@@@@@@@"
# Runs of one benchmark number their requests from different multiples of this, so no key comes twice.
NUMBERS_PER_RUN: int = 10 ** (len(MARK) - 4)
GOLDEN_RATIO = 0.6180339887


class BenchmarkError(Exception):
    """The server failed, or its responses were not those to be measured; the numbers would mean something else."""


@dataclass(frozen=True)
class Workload:
    """One row of the report."""

    name: str
    units: int  # entities that one response stands for, or 1
    connections: int  # requests under way at any time
    status: int  # of every response
    requests: Sequence[bytes]
    witness: bytes = b""  # bytes that a good response holds once for each result; empty: not checked
    results: int | None = None  # of one response; None: as many as units
    variant: str = ""  # the value of a growth curve's variable
    entities: int = 0  # in the table before the run
    sharing: int = 1  # so many requests one after the other carry the same number
    # Returns the request that follows, of status and body of a response, or None if there is nothing left to do: both
    # together count once, and `status` is that of the second.
    follow: Callable[[int, bytes], bytes | None] | None = None
    load: "Load | None" = None  # its load generator, if it is not the plan's

    def check(self, status: int, body: bytes) -> bytes:
        """Return the body of a response; raise a `BenchmarkError` unless status and number of results are right."""
        results = self.units if self.results is None else self.results
        if status != self.status:
            raise BenchmarkError(f"{self.name}: status {status}, expected {self.status}: {body[:500]!r}")
        if self.witness and body.count(self.witness) != results:
            raise BenchmarkError(f"{self.name}: not {results} results in {body[:500]!r}")
        return body

    def start(self, first: int) -> int:
        """Return which request a run begins with: runs spread over the list, so that a later one meets other keys."""
        spread = int(len(self.requests) * (first // NUMBERS_PER_RUN * GOLDEN_RATIO % 1))
        return first % self.sharing if self.sharing > 1 else spread

    def numbered(self, first: int) -> Iterator[bytes]:
        """Yield the requests forever, with numbers from `first` on."""
        pieces = [request.split(MARK) for request in self.requests]
        offset = self.start(first) - first
        for number in count(first):
            parts = pieces[(number + offset) % len(pieces)]
            yield f"{number // self.sharing:0{len(MARK)}d}".encode().join(parts) if len(parts) > 1 else parts[0]


class Limits(NamedTuple):
    """When a run ends, whichever comes first."""

    seconds: float
    requests: int


class Measurement(NamedTuple):
    """The findings of one run; their names are those of a `Row`."""

    requests: int  # answered
    errors: int  # responses with a wrong status
    seconds: float
    received_bytes: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def quantiles(seconds: Sequence[float]) -> list[float]:
    """Return the last fields of a measurement, or raise a `BenchmarkError` if there is no latency."""
    if not seconds:
        raise BenchmarkError("no request was answered")
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return [ordered[min(last, int(len(ordered) * share))] * 1000 for share in (0.5, 0.99, 0.999, 1)]


Load: TypeAlias = Callable[[Workload, int, int, Limits], Measurement]
"""A load generator of closed loops: (workload, port on the loopback address, first number, limits) -> findings."""
