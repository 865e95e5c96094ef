"""Blobs: beside Azurite, a plain and a minimal server, and the disk; the commit of many blocks; and checksums."""

import os
import tempfile
import time
import zlib
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from timeit import repeat

from isal import isal_zlib

from benchmarks.bench import Bench, Contender, Stage
from benchmarks.blobs import BLOCK_BYTES, BLOCKS_READ, CONTAINER, Blobs
from benchmarks.processes import Server
from benchmarks.subjects import AZURITE, DISK, FILES, LAZULITE, MINIMAL, start
from benchmarks.workload import Limits, Load, Measurement, Workload, quantiles

COMMIT, CHECKSUM = "commit of a list of blocks", "checksum of 4 MiB"
_READ, _CHECKSUMS = "read", 100


def run(bench: Bench) -> None:
    """Measure single blobs, pages of the list, blocks up and down, and the commit of many blocks."""
    with bench.stages(Blobs, LAZULITE, AZURITE) as stages:
        for build in (Blobs.get, Blobs.put, Blobs.list_names, Blobs.list_prefixes):
            contenders = [stage.asked(build) for stage in stages]
            bench.compare(contenders, with_baseline=not contenders[0].workload.witness)
        _blocks(bench, stages)
        _commit(bench, stages[0])
    _checksums(bench)


def _blocks(bench: Bench, stages: list[Stage[Blobs]]) -> None:
    """Measure blocks of 4 MiB: up, against the disk alone, and down, against a plain file server."""
    up = [stage.asked(Blobs.put_blocks) for stage in stages]
    alone = replace(up[0].workload, requests=[], load=writing(bench.location))
    bench.compare([*up, Contender(DISK, Server(0, 0), alone)], with_baseline=False)
    for stage in stages:
        bench.store(stage.server, stage.build.put_blocks(_READ), BLOCKS_READ)
        stage.must(stage.build.commit(_READ, BLOCKS_READ))
    files = Path(tempfile.mkdtemp(prefix="files-", dir=bench.location))
    (files / CONTAINER).mkdir()
    (files / CONTAINER / _READ).write_bytes(stages[0].must(stages[0].build.download(_READ), 200))
    with ExitStack() as stack:
        others = {each: stack.enter_context(_server_of(each, files, bench)) for each in (FILES, MINIMAL)}
        down = [*stages, *(Stage(each, server, Blobs(server.host)) for each, server in others.items())]
        bench.compare([stage.asked(lambda blobs: blobs.get_ranges(_READ)) for stage in down], with_baseline=False)


def _server_of(subject: str, files: Path, bench: Bench) -> AbstractContextManager[Server]:
    return start(subject, files, pin=bench.plan.pin, service=Blobs.service)


def _checksums(bench: Bench) -> None:
    """Measure the checksum of 4 MiB by the library that Lazulite uses, and by zlib."""
    block = os.urandom(BLOCK_BYTES)
    for name, crc32 in (("isal", isal_zlib.crc32), ("zlib", zlib.crc32)):
        bench.note(CHECKSUM, name, repeat(partial(crc32, block), number=1, repeat=_CHECKSUMS))


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


def _commit(bench: Bench, stage: Stage[Blobs]) -> None:
    """Measure Put Block List with as many blocks as the plan says, each of a byte."""
    took, count = [], bench.plan.blocks
    for number in range(bench.plan.rounds):
        bench.say(f"{count:,} blocks")
        bench.store(stage.server, stage.build.put_small_blocks(f"many{number}"), count)
        request, began = stage.build.commit(f"many{number}", count), time.perf_counter()
        stage.must(request)
        took.append(time.perf_counter() - began)
    bench.note(COMMIT, LAZULITE, took, count)
