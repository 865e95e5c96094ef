"""All abusers by name. Run as `python -m tests.torture.abusers NAME PORT HTTPS_PORT`, one abuses until it is ended.

It says "ready" once all of it is at work, goes on until its input ends, and prints what came of it as JSON.
"""

import asyncio
import json
import os
import sys

import uvloop
from benchmarks.entities import TRANSACTION_ROWS
from benchmarks.requests import TABLE

from . import probes
from .blows import churn, deaf, flood, handshake, idle, neighbour, once, scan, silent, slow, vanish
from .hostile import CUT, Abuser, Target, abuse

MIB = 1 << 20
IDLE = 10_000
SETTLING_SECONDS = 0.5


def _all(*fates: str) -> frozenset[str]:
    return frozenset(fates)


ABUSERS: dict[str, Abuser] = {
    # To compare the others with: what the good client loses because the machine has more to do.
    "a busy neighbour": Abuser(neighbour, 1, _all("worked")),
    # Connections.
    "slow heads": Abuser(slow(lambda r: r.raw("GET", TABLE, X_Slow="a" * 1000), 100), 400, _all("408")),
    "slow bodies": Abuser(slow(lambda r: probes.insert(r, b"a" * 1000), 450), 400, _all("408")),
    "strange bodies": Abuser(once(probes.strange_body), 65, _all("403", CUT)),
    "half-sent heads": Abuser(once(probes.half_head), 2000, _all("408", CUT)),
    "deaf readers": Abuser(deaf, 64, _all(CUT)),
    "half-open": Abuser(silent, 1000, _all(CUT)),
    "10,000 idle": Abuser(idle, IDLE, _all("200", CUT)),
    "churn": Abuser(churn, 16, _all("left"), 0.03),
    "vanishing": Abuser(vanish, 16, _all("left"), 0.03),
    "TLS handshakes": Abuser(handshake, 8, _all("left")),
    # Requests.
    "oversized heads": Abuser(once(probes.oversized), 8, _all("414", "431")),
    "endless bodies": Abuser(once(probes.endless), 4, _all("413", CUT)),
    "oversized bodies": Abuser(flood(lambda r: [probes.insert(r, b"a" * (5 * MIB))]), 4, _all("413")),
    "bodies in crumbs": Abuser(flood(probes.crumbs), 8, _all("400")),
    "deep JSON": Abuser(flood(probes.deep), 8, _all("400")),
    "101 in a batch": Abuser(flood(probes.batches(101)), 8, _all("202/400")),
    "gzip bombs": Abuser(flood(probes.bombs), 8, _all("400")),
    "smuggling": Abuser(once(probes.smuggled), 8, _all("400", "404", "501")),
    "XML entities": Abuser(flood(probes.entities), 8, _all("400")),
    "deep filters": Abuser(flood(lambda r: [probes.query(r, "not " * 500 + "A eq 1")]), 16, _all("400")),
    "1,000 terms": Abuser(flood(probes.terms(1000)), 16, _all("400")),
    "wrong signatures": Abuser(flood(probes.wrong), 16, _all("401", "403")),
    "SAS variants": Abuser(flood(probes.variants), 16, _all("401", "403")),
    "preflights": Abuser(flood(probes.preflights), 16, _all("403")),
    # Work.
    "4 scans": Abuser(scan, 4, _all("200")),
    "16 scans": Abuser(scan, 16, _all("200")),
    "300 terms": Abuser(flood(probes.terms(300)), 8, _all("200")),
    "planned filters": Abuser(flood(probes.planned), 8, _all("200")),
    "full pages": Abuser(
        flood(lambda r: [probes.query(r, f"PartitionKey eq 'r{n:04d}'") for n in range(4)]), 8, _all("200")
    ),
    "transactions": Abuser(flood(probes.batches(TRANSACTION_ROWS)), 8, _all("202/204", "202/409")),
}


STRANGERS = frozenset({"strange bodies", "half-sent heads", "wrong signatures", "oversized heads"})
"""Abusers without credentials, of which the server may keep no more than its budget for such."""


async def _main(abuser: Abuser, target: Target) -> None:
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(abuse(abuser, target))
    await target.opened(abuser.at_once)
    await asyncio.sleep(SETTLING_SECONDS)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    fates = json.dumps(target.fates)  # before the end, which cuts everybody off
    work.cancel()
    await asyncio.wait([work])
    print(fates, flush=True)


if __name__ == "__main__":
    os.nice(19)  # The good client shares the CPU: it is the server that is abused, not the machine.
    uvloop.run(_main(ABUSERS[sys.argv[1]], Target(int(sys.argv[2]), int(sys.argv[3]))))
