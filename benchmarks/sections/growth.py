"""How the cost of a request grows with the properties of an entity, and with the size of a transaction."""

from dataclasses import replace

from benchmarks.bench import PRELOAD_SECONDS_MAX, Bench, Contender
from benchmarks.stage import stages

PROPERTIES = (1, 5, 20, 50, 100, 252)
TRANSACTION_SIZES = (1, 2, 5, 10, 20, 50, 100)


def run(bench: Bench) -> None:
    """Measure one curve after the other, of Lazulite alone; growth with the entities is part of the section `big`."""
    with stages(bench, emulator=False) as [ours]:
        for properties in PROPERTIES:
            preload = ours.catalogue.wide_preload(properties)
            bench.store(ours.server, preload, 0, len(preload.requests), PRELOAD_SECONDS_MAX)
            for workload in (ours.catalogue.get_wide(properties), ours.catalogue.insert_wide(properties)):
                bench.compare([Contender(ours.subject, ours.server, workload)], with_floor=False)
        for size in TRANSACTION_SIZES:
            workload = ours.catalogue.transaction(size)
            named = replace(workload, name="entity group transaction by size", variant=str(size))
            bench.compare([Contender(ours.subject, ours.server, named)], with_floor=False)
