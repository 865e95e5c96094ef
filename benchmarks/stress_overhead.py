"""`python -m benchmarks.stress_overhead`: the clients of `lazulite stress` beside wrk, on one server and in turn.

Both send the same requests, gets of entities. First each has one connection. Then both send half of what wrk's
connections get in a closed loop: wrk waits before each request, and the clients send at the rate that wrk then had.
Server and clients have a CPU each. The medians of all rounds are compared, as other programs disturb some of them.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from statistics import median
from typing import NamedTuple

from benchmarks.exchange import probe
from benchmarks.load import run_wrk, wrk_version
from benchmarks.processes import CLIENT_CPU, can_pin, pinned
from benchmarks.requests import ACCOUNT, TABLE, Requests, account_sas
from benchmarks.subjects import LAZULITE, start
from benchmarks.workload import NUMBERS_PER_RUN, Limits, Workload
from lazulite.stress.client import Address
from lazulite.stress.plan import Plan
from lazulite.stress.requests import Sample, workload
from lazulite.stress.run import run, store

CONNECTIONS = 16
REQUESTS = 1000
SINGLE_MICROSECONDS = 60
"""How much the median may be above wrk's, at one connection."""
HALF_SHARE = 0.1
"""How far median and 99th percentile may be from wrk's, at half of the rate."""


class Latency(NamedTuple):
    """What one run measured: requests per second, and latencies in milliseconds."""

    rate: float
    p50: float
    p99: float


class Comparison:
    """Runs of both on a server.

    Args:
        port: of the server.
        sample: the table, whose entities are stored.
        seconds: of a run.
    """

    def __init__(self, port: int, sample: Sample, seconds: float) -> None:
        self._port, self._sample, self._seconds = port, sample, seconds
        self._runs = 0

    def wrk(self, connections: int, delay_ms: int = 0) -> Latency:
        """Run wrk, which waits so long before each request."""
        self._runs += 1
        gets = list(islice(workload(_PLAN, self._sample, 0), REQUESTS))
        load = Workload("get", 1, connections, 200, gets)
        found = run_wrk(load, self._port, self._runs * NUMBERS_PER_RUN, Limits(self._seconds, 10**9), delay_ms)
        return Latency(found.requests / found.seconds, found.p50_ms, found.p99_ms)

    def stress(self, connections: int, rate: float | None = None) -> Latency:
        """Run the clients, in a closed loop or at a rate."""
        plan = Plan(
            workload="get",
            clients=(connections,),
            rate=() if rate is None else (rate,),
            seconds=self._seconds,
            warm_seconds=self._seconds,
        )
        address = Address("127.0.0.1", self._port)
        step = asyncio.run(run(plan, self._sample, address, lambda _: None, probes=False))[-1]
        return Latency(step.rate, step.quantile_ms(0.5), step.quantile_ms(0.99))


_PLAN = Plan(workload="get")


def compared(rounds: int, seconds: float) -> dict[str, tuple[Latency, Latency]]:
    """Return the medians of both, by load: wrk's first."""
    token = account_sas(f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")
    pin = can_pin()
    with tempfile.TemporaryDirectory() as folder, start(LAZULITE, "--location", folder, pin=pin) as server:
        sample = Sample(server.host, f"/{ACCOUNT}", f"http://{server.host}/{ACCOUNT}", TABLE, token)
        probe(Workload("create", 1, 1, 201, [Requests(server.host, datetime.now(UTC)).create_table()]), server.port)
        asyncio.run(store(_PLAN, sample, Address("127.0.0.1", server.port)))
        comparison = Comparison(server.port, sample, seconds)
        single, half = list[tuple[Latency, Latency]](), list[tuple[Latency, Latency]]()
        with pinned(CLIENT_CPU, pin=pin):
            full = comparison.wrk(CONNECTIONS)
            delay_ms = max(1, round(2 * CONNECTIONS / full.rate * 1000 - full.p50 / 2))
            for _ in range(rounds):
                single.append((comparison.wrk(1), comparison.stress(1)))
                paced = comparison.wrk(CONNECTIONS, delay_ms)
                half.append((paced, comparison.stress(CONNECTIONS, paced.rate)))
    return {"one connection": _medians(single), "half of the rate": _medians(half)}


def _medians(runs: Sequence[tuple[Latency, Latency]]) -> tuple[Latency, Latency]:
    wrk, stress = (Latency(*map(median, zip(*each, strict=True))) for each in zip(*runs, strict=True))
    return wrk, stress


def main() -> None:
    """Print the comparison, and whether the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress_overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="in which both take turns (%(default)s)")
    parser.add_argument("--seconds", type=int, default=3, help="of a run (%(default)s)")
    args = parser.parse_args()
    if wrk_version() is None:
        sys.exit("wrk is not installed (apt install wrk), so there is nothing to compare with")
    print("| load | client | requests/s | p50 ms | p99 ms |\n|---|---|---:|---:|---:|")
    found = compared(args.rounds, args.seconds)
    for load, pair in found.items():
        for name, each in zip(("wrk", "lazulite stress"), pair, strict=True):
            print(f"| {load} | {name} | {each.rate:,.0f} | {each.p50:.3f} | {each.p99:.3f} |")
    wrk, stress = found["one connection"]
    print(f"\none connection: the median is {(stress.p50 - wrk.p50) * 1000:+.0f} µs from wrk's ({SINGLE_MICROSECONDS})")
    wrk, stress = found["half of the rate"]
    shares = ", ".join(f"{stress[index] / wrk[index] - 1:+.0%}" for index in (1, 2))
    print(f"half of the rate: p50 and p99 are {shares} from wrk's ({HALF_SHARE:.0%})")


if __name__ == "__main__":
    main()
