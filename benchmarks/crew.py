"""Several servers that are one service, and how they are loaded at once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from benchmarks.measurement import Latency, Limits, Load, Measurement
from benchmarks.processes import Memory, Server
from benchmarks.workload import NUMBERS_PER_RUN, Workload


class Crew(NamedTuple):
    """See above."""

    servers: Sequence[Server]

    @property
    def port(self) -> int:
        """Where one of them answers."""
        return self.servers[0].port

    def cpu_seconds(self) -> float | None:
        """Return the processor time of all of them."""
        found = [seconds for server in self.servers if (seconds := server.cpu_seconds()) is not None]
        return sum(found) if len(found) == len(self.servers) else None

    def memory(self) -> Memory | None:
        """Return the memory of all of them."""
        found = [memory for server in self.servers if (memory := server.memory()) is not None]
        return Memory(*map(sum, zip(*found, strict=True))) if len(found) == len(self.servers) else None

    def loaded_by(self, load: Load) -> Load:
        """Return what loads each of them with its share of the connections, by a generator of its own.

        Each begins with other requests, so that they do not change the same entities at the same time. Of the
        latencies, the worse one counts.
        """

        def together(workload: Workload, _: int, first: int, limits: Limits) -> Measurement:
            requests, count = workload.requests, len(self.servers)
            connections, apart = max(1, workload.connections // count), NUMBERS_PER_RUN // count

            def run(place: int, server: Server) -> Measurement:
                begin = place * len(requests) // count
                share = replace(workload, connections=connections, requests=[*requests[begin:], *requests[:begin]])
                return load(share, server.port, first + place * apart, limits)

            with ThreadPoolExecutor(len(self.servers)) as pool:
                return _sum(list(pool.map(run, range(len(self.servers)), self.servers)))

        return together


def _sum(found: Sequence[Measurement]) -> Measurement:
    return Measurement(
        requests=sum(each.requests for each in found),
        errors=sum(each.errors for each in found),
        seconds=max(each.seconds for each in found),
        received_bytes=sum(each.received_bytes for each in found),
        latency=Latency(*map(max, zip(*(each.latency for each in found), strict=True))),
    )
