"""Queues: beside Azurite, and on PostgreSQL against `FOR UPDATE SKIP LOCKED`.

Each round puts messages, and then gets and deletes as many as the time allows.
"""

import time
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.bench import Bench, Contender
from benchmarks.cycles import TEXT_BYTES, Queues
from benchmarks.database import Database, served
from benchmarks.pgbench import loading
from benchmarks.processes import Server
from benchmarks.sections.table import note_syncs
from benchmarks.several import loading_all
from benchmarks.subjects import AZURITE, LAZULITE, PGBENCH, TWO, start

PGBENCH_CONNECTIONS = 16
CONSUMERS, NUMBERS_OF_CONSUMERS = "consumers", (1, 4, 16, 64)
_ANNOUNCED_SECONDS = 6  # Until both processes know of each other.


def run(bench: Bench) -> None:
    """Measure Lazulite and Azurite in turn, one put at a time, consumers by number, and two processes on PostgreSQL."""
    with bench.stages(Queues, LAZULITE, AZURITE, entities=0) as [stage, *others]:
        bench.compare([each.asked(Queues.put) for each in (stage, *others)])
        bench.compare([stage.asked(Queues.cycle)], with_baseline=False)
        bench.compare([stage.asked(Queues.put, connections=1)])
        puts = [stage.asked(Queues.put, variant=CONSUMERS)] * len(NUMBERS_OF_CONSUMERS)
        gets = [stage.asked(Queues.cycle, variant=CONSUMERS, connections=number) for number in NUMBERS_OF_CONSUMERS]
        for contenders in (puts, gets):
            bench.compare(contenders, with_baseline=False)
        note_syncs(bench)
        for other in others:  # Last, as it may stall: its gets slow down with the messages.
            bench.compare([other.asked(Queues.cycle)], with_baseline=False)
    if bench.plan.postgres:
        _on_postgres(bench)


def _on_postgres(bench: Bench) -> None:
    with served(bench) as postgres, ExitStack() as stack:
        database = Database(postgres)
        stage = stack.enter_context(bench.stage(LAZULITE, Queues, engine=database.dsn))
        other = stack.enter_context(start(LAZULITE, pin=False, service="queue", engine=database.dsn))
        database.run("queue_table", ROWS=bench.plan.entities)
        time.sleep(_ANNOUNCED_SECONDS)
        both = stage.server._replace(peers=(other,))
        for build, script in ((Queues.put, "queue_put"), (Queues.cycle, "queue_cycle")):
            one = stage.asked(build, variant="PostgreSQL")
            load = loading_all(one.workload.load or bench.plan.load, both)
            sql = loading(database.dsn, script, {"value": "x" * TEXT_BYTES})
            by_sql = replace(one.workload, connections=PGBENCH_CONNECTIONS, requests=[], load=sql)
            two = Contender(TWO, both, replace(one.workload, load=load))
            bench.compare([one, two, Contender(PGBENCH, Server(0, 0), by_sql)], with_baseline=False)
