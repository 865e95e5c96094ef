"""Large blobs in both directions: the server's memory, and table requests beside many slow bodies."""

from dataclasses import replace

from benchmarks.bench import Bench, Contender, Stage
from benchmarks.blobs import BLOCK_BYTES, Blobs
from benchmarks.catalogue import Catalogue
from benchmarks.sections.big import BESIDE_CONNECTIONS, growth, load_beside, measure_how
from benchmarks.streams import MIB, run_slow, run_whole
from benchmarks.subjects import LAZULITE, free_port
from benchmarks.workload import Limits, Workload

AT_ONCE = 16
"""Slow uploads, and as many slow downloads."""
PUT_MB_MAX = 5000
"""Of one Put Blob. Source: https://learn.microsoft.com/rest/api/storageservices/put-blob."""
UPLOAD_SECONDS_MAX = 600.0
WHOLE, IN_BLOCKS = "whole", "in-blocks"


def run(bench: Bench) -> None:
    """Measure large blobs one at a time; then point reads and inserts alone, and while bodies move slowly."""
    port = free_port()
    both = ("--services", "table,blob", "--blob-port", str(port))
    with bench.stage(LAZULITE, Catalogue, bench.plan.entities, *both) as tables:
        server = tables.server._replace(port=port)
        stage = Stage(LAZULITE, server, Blobs(server.host))
        stage.must(stage.build.create())
        _one_at_a_time(bench, stage)
        builds = Catalogue.get, Catalogue.insert
        contenders = [tables.asked(build, connections=BESIDE_CONNECTIONS) for build in builds]

        def measure(how: str) -> None:
            for number in range(bench.plan.rounds):
                for contender in contenders:
                    measure_how(bench, contender, bench.plan.seconds, how, number)

        bench.say("table requests alone")
        measure("alone")
        bench.say(f"beside {AT_ONCE} slow uploads and as many slow downloads")
        uploads = [stage.build.upload(f"slow{number}", PUT_MB_MAX) for number in range(AT_ONCE)]
        requests = [*uploads, *[stage.build.download(IN_BLOCKS)] * AT_ONCE]
        slow = Workload("slow uploads and downloads", 1, len(requests), 200, requests, load=run_slow)
        seconds = len(contenders) * bench.plan.rounds * bench.plan.seconds
        with load_beside(bench, Contender(LAZULITE, server, slow), seconds):
            measure("beside streams")


def _one_at_a_time(bench: Bench, stage: Stage[Blobs]) -> None:
    """Measure one Put Blob and its download, then a blob of blocks and its download."""
    server, blobs, most = stage.server, stage.build, bench.plan.stream_mb
    whole, blocks = min(most, PUT_MB_MAX), most * MIB // BLOCK_BYTES

    def move(name: str, mebibytes: int, status: int, request: bytes) -> None:
        bench.say(f"{name} of {mebibytes:,} MiB")
        workload = Workload(name, mebibytes, 1, status, [request], variant=f"of {mebibytes:,} MiB", load=run_whole)
        with growth(bench, server):
            bench.rows.append(bench.run(Contender(LAZULITE, server, workload), Limits(UPLOAD_SECONDS_MAX, 1)))

    move("Put Blob", whole, 201, blobs.upload(WHOLE, whole))
    move("Get Blob", whole, 200, blobs.download(WHOLE))
    bench.say(f"{blocks:,} blocks")
    workload = replace(blobs.put_blocks(IN_BLOCKS), variant=f"of {most:,} MiB")
    with growth(bench, server):
        bench.rows.append(bench.store(server, workload, blocks, UPLOAD_SECONDS_MAX))
        stage.must(blobs.commit(IN_BLOCKS, blocks))
    move("Get Blob of blocks", most, 200, blobs.download(IN_BLOCKS))
