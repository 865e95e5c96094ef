"""All scenarios by name. `python -m tests.torture.abuse.scenarios NAME PORT HTTPS_PORT` runs one until its input ends.

It prints "ready" once all connections of the scenario are open, and at the end the outcomes as JSON.
"""

import asyncio
import json
import os
import sys

import uvloop
from benchmarks.entities import TRANSACTION_ROWS
from benchmarks.requests import TABLE

from . import probes
from .attacks import busy_loop, churn, flood, handshake, idle, once, read_nothing, scan, silent, slow, vanish
from .target import CUT, Scenario, Target, abuse

MIB = 1 << 20
IDLE = 10_000
SETTLING_SECONDS = 0.5


def _all(*outcomes: str) -> frozenset[str]:
    return frozenset(outcomes)


SCENARIOS: dict[str, Scenario] = {
    # To compare the others with: the good client's loss because the machine has more to do.
    "a busy process": Scenario(busy_loop, 1, _all("worked")),
    # Connections.
    "slow heads": Scenario(slow(lambda r: r.raw("GET", TABLE, X_Slow="a" * 1000), 100), 400, _all("408")),
    "slow bodies": Scenario(slow(lambda r: probes.insert(r, b"a" * 1000), 450), 400, _all("408")),
    "unauthenticated bodies": Scenario(once(probes.unauthenticated_body), 65, _all("403", CUT)),
    "half-sent heads": Scenario(once(probes.half_head), 2000, _all("408", CUT)),
    "non-reading clients": Scenario(read_nothing, 64, _all(CUT)),
    "silent connections": Scenario(silent, 1000, _all(CUT)),
    "10,000 idle": Scenario(idle, IDLE, _all("200", CUT)),
    "churn": Scenario(churn, 16, _all("left"), 0.03),
    "vanishing": Scenario(vanish, 16, _all("left"), 0.03),
    "TLS handshakes": Scenario(handshake, 8, _all("left")),
    # Requests.
    "oversized heads": Scenario(once(probes.oversized), 8, _all("414", "431")),
    "endless bodies": Scenario(once(probes.endless), 4, _all("413", CUT)),
    "oversized bodies": Scenario(flood(lambda r: [probes.insert(r, b"a" * (5 * MIB))]), 4, _all("413")),
    "bodies in small fragments": Scenario(flood(probes.small_fragments), 8, _all("400")),
    "deep JSON": Scenario(flood(probes.deep), 8, _all("400")),
    "101 in a batch": Scenario(flood(probes.batches(101)), 8, _all("202/400")),
    "gzip bombs": Scenario(flood(probes.bombs), 8, _all("400")),
    "smuggling": Scenario(once(probes.smuggled), 8, _all("400", "404", "501")),
    "XML entities": Scenario(flood(probes.entities), 8, _all("400")),
    "deep filters": Scenario(flood(lambda r: [probes.query(r, "not " * 500 + "A eq 1")]), 16, _all("400")),
    "1,000 terms": Scenario(flood(probes.terms(1000)), 16, _all("400")),
    "wrong signatures": Scenario(flood(probes.wrong), 16, _all("401", "403")),
    "SAS variants": Scenario(flood(probes.variants), 16, _all("401", "403")),
    "preflights": Scenario(flood(probes.preflights), 16, _all("403")),
    # Work.
    "4 scans": Scenario(scan, 4, _all("200")),
    "16 scans": Scenario(scan, 16, _all("200")),
    "300 terms": Scenario(flood(probes.terms(300)), 8, _all("200")),
    "planned filters": Scenario(flood(probes.planned), 8, _all("200")),
    "full pages": Scenario(
        flood(lambda r: [probes.query(r, f"PartitionKey eq 'r{n:04d}'") for n in range(4)]), 8, _all("200")
    ),
    "transactions": Scenario(flood(probes.batches(TRANSACTION_ROWS)), 8, _all("202/204", "202/409")),
}


UNAUTHENTICATED = frozenset({"unauthenticated bodies", "half-sent heads", "wrong signatures", "oversized heads"})
"""Scenarios without credentials, which may add no more to the server's memory than their budget."""


async def _main(scenario: Scenario, target: Target) -> None:
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(abuse(scenario, target))
    await target.opened(scenario.at_once)
    await asyncio.sleep(SETTLING_SECONDS)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    outcomes = json.dumps(target.outcomes)  # before the end, which cuts all connections
    work.cancel()
    await asyncio.wait([work])
    print(outcomes, flush=True)


if __name__ == "__main__":
    os.nice(19)  # The good client shares the CPU: it is the server that is abused, not the machine.
    uvloop.run(_main(SCENARIOS[sys.argv[1]], Target(int(sys.argv[2]), int(sys.argv[3]))))
