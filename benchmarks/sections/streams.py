"""Large bodies in both directions at once: the server's memory, and table requests beside them."""

from benchmarks.bench import Bench, Contender
from benchmarks.sections.big import BESIDE_CONNECTIONS, load_beside, measure_how
from benchmarks.streams import run_streams, streams
from benchmarks.subjects import STREAMS

AT_ONCE = 16
"""Uploads, and as many slow downloads."""


def run(bench: Bench) -> None:
    """Measure point reads and single inserts alone, and while bodies are sent at full speed and taken slowly."""
    with bench.stages(STREAMS) as [(subject, server, catalogue)]:
        workloads = catalogue.get(BESIDE_CONNECTIONS), catalogue.insert(BESIDE_CONNECTIONS)
        contenders = [Contender(subject, server, workload) for workload in workloads]

        def measure(how: str) -> None:
            for number in range(bench.plan.rounds):
                for contender in contenders:
                    measure_how(bench, contender, bench.plan.seconds, how, number)

        bench.say("table requests alone")
        measure("alone")
        bench.say(f"beside {AT_ONCE} uploads of {bench.plan.stream_mb:,} MiB and as many slow downloads")
        bodies = streams(server.host, bench.plan.stream_mb, AT_ONCE)
        seconds = len(contenders) * bench.plan.rounds * bench.plan.seconds
        with load_beside(bench, Contender(subject, server, bodies, run_streams), seconds):
            measure("beside streams")
