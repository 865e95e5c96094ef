"""Blobs: beside Azurite, a plain file server and the disk; and the commit of a long list of blocks."""

import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.bench import Bench, Contender
from benchmarks.blobs import BLOCK_BYTES, BLOCKS_READ, CONTAINER, Blobs
from benchmarks.exchange import exchange
from benchmarks.load import run_asyncio
from benchmarks.processes import Server
from benchmarks.sections.queue import started
from benchmarks.subjects import AZURITE, DISK, FILES, LAZULITE, start
from benchmarks.workload import Limits, Load, Measurement, Workload, quantiles

COMMIT = "commit of a list of blocks"
_READ = "read"


def run(bench: Bench) -> None:
    """Measure single blobs, pages of the list, blocks up and down, and the commit of many blocks."""
    with ExitStack() as stack:
        stages = [(subject, *started(bench, stack, subject, Blobs)) for subject in bench.present(LAZULITE, AZURITE)]
        for subject, server, blobs in stages:
            bench.say(f"{bench.plan.entities:,} blobs into {subject}")
            blobs.entities = bench.plan.entities
            bench.store(server, blobs.preload(), bench.plan.entities)
        for build in (Blobs.get, Blobs.put, Blobs.list_names, Blobs.list_prefixes):
            contenders = [contender(subject, server, build(blobs)) for subject, server, blobs in stages]
            bench.compare(contenders, with_baseline=not contenders[0].workload.witness)
        _blocks(bench, stack, stages)
        _commit(bench, *stages[0][1:])


def contender(subject: str, server: Server, workload: Workload) -> Contender:
    """Return a contender whose pages of a list are awaited: one may take longer than a round, after which wrk ends."""
    return Contender(subject, server, workload, run_asyncio if workload.witness else None)


def _blocks(bench: Bench, stack: ExitStack, stages: list[tuple[str, Server, Blobs]]) -> None:
    """Measure blocks of 4 MiB: up, against the disk alone, and down, against a plain file server."""
    up = [Contender(subject, server, blobs.put_blocks()) for subject, server, blobs in stages]
    alone = replace(up[0].workload, requests=[])
    bench.compare([*up, Contender(DISK, Server(0, 0), alone, writing(bench.location))], with_baseline=False)
    for _, server, blobs in stages:
        bench.store(server, blobs.put_blocks(name=_READ), BLOCKS_READ)
        exchange(server.port, blobs.commit(_READ, BLOCKS_READ)).must("committing the blocks", 201)
    files = Path(tempfile.mkdtemp(prefix="files-", dir=bench.location))
    (files / CONTAINER).mkdir()
    (files / CONTAINER / _READ).write_bytes(exchange(stages[0][1].port, stages[0][2].download(_READ)).body)
    plain = stack.enter_context(start(FILES, "--location", files, pin=bench.plan.pin))
    down = [Contender(subject, server, blobs.get_ranges(_READ)) for subject, server, blobs in stages]
    down.append(Contender(FILES, plain, Blobs(plain).get_ranges(_READ)))
    bench.compare(down, with_baseline=False)


def writing(directory: Path) -> Load:
    """Return a load that writes blocks to a file one after the other, and syncs when all connections sent one."""
    sync = getattr(os, "fdatasync", os.fsync)

    def write(workload: Workload, _: int, __: int, limits: Limits) -> Measurement:
        took: list[float] = []
        block, began = os.urandom(BLOCK_BYTES), time.perf_counter()
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            while (since := time.perf_counter()) < began + limits.seconds and len(took) < limits.requests:
                for _ in range(workload.connections):
                    file.write(block)
                sync(file)
                took += [time.perf_counter() - since] * workload.connections
        return Measurement(len(took), 0, time.perf_counter() - began, 0, *quantiles(took))

    return write


def _commit(bench: Bench, server: Server, blobs: Blobs) -> None:
    """Measure Put Block List with as many blocks as the plan says, each of a byte."""
    took = []
    for number in range(bench.plan.rounds):
        bench.say(f"{bench.plan.blocks:,} blocks")
        name = f"many{number}"
        bench.store(server, blobs.put_small_blocks(name), bench.plan.blocks)
        request, began = blobs.commit(name, bench.plan.blocks), time.perf_counter()
        exchange(server.port, request).must(COMMIT, 201)
        took.append(time.perf_counter() - began)
    bench.note(COMMIT, LAZULITE, took, bench.plan.blocks)
