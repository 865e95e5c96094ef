"""What is asked of a server: raw HTTP/1.1 requests, built before the clock starts.

A load generator sends `Workload.requests` in turn, over and over. `MARK` in a request stands for a number that no other
request of the run carries; it has the mark's own length, so Content-Length stays right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MARK = b"@@@@@@@@@@@@"
NUMBERS_PER_RUN: int = 10 ** (len(MARK) - 4)
"""Runs of one benchmark number their requests from different multiples of this, so no key comes twice."""

_GOLDEN_RATIO = 0.6180339887


@dataclass(frozen=True)
class Workload:
    """One row of the report.

    Attributes:
        name: what the row is called.
        unit: what is counted.
        units: how many of them one response stands for.
        connections: how many requests are under way at any time.
        status: what every response must say.
        requests: raw requests, sent in turn.
        witness: what the body of a good response holds once for each result; nothing to look for if empty.
        results: how many results that are; as many as units if None.
        variant: what a growth curve varies, here.
        entities: how many are in the table.
    """

    name: str
    unit: str
    units: int
    connections: int
    status: int
    requests: Sequence[bytes]
    witness: bytes = b""
    results: int | None = None
    variant: str = ""
    entities: int = 0

    def start(self, first: int) -> int:
        """Return which request a run begins with: runs spread over the list, so that a later one meets other keys."""
        return int(len(self.requests) * (first // NUMBERS_PER_RUN * _GOLDEN_RATIO % 1))

    def numbered(self, first: int) -> Iterator[bytes]:
        """Yield the requests for ever, with numbers from `first` on."""
        start, number = self.start(first), first
        turn = [*self.requests[start:], *self.requests[:start]]
        pieces = [request.split(MARK) for request in turn]
        while True:
            for parts in pieces:
                yield parts[0] if len(parts) == 1 else f"{number:0{len(MARK)}d}".encode().join(parts)
                number += 1
