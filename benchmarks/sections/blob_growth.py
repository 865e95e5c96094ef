"""A container of many blobs against a small one; both are filled through the engine's commits."""

import asyncio
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.bench import Bench
from benchmarks.blobs import BLOB_BYTES, CONTAINER, Blobs, names
from benchmarks.sections.big import BIG, SMALL, check_space, settle
from benchmarks.sections.blob import contender
from benchmarks.sections.queue import started
from benchmarks.signing import ACCOUNT
from benchmarks.subjects import LAZULITE
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.storage.catalog import Catalog, Container
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import store_path

FEW, SKIPPED_FEW, SKIPPED_MAX = 10_000, 2, 1_000_000
DISK_BYTES_PER_BLOB = 3 * BLOB_BYTES
_COMMITS_AT_ONCE = 1000


def run(bench: Bench) -> None:
    """Measure a container of few blobs and one of many in turn: single blobs, and pages of the list."""
    many = bench.plan.blobs
    skipped = min(many, SKIPPED_MAX)
    check_space(bench, (many + skipped) * DISK_BYTES_PER_BLOB, "--blobs")
    sizes = {SMALL: (min(FEW, many), SKIPPED_FEW), BIG: (many, skipped)}
    with ExitStack() as stack:
        stages = {}
        for variant, (entities, below) in sizes.items():
            bench.say(f"{entities:,} blobs, and {below:,} below one prefix")
            location = bench.location / variant
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # Its memory ends with it.
                pool.submit(_fill, location, entities, below).result()
            server, blobs = started(bench, stack, LAZULITE, Blobs, location)
            blobs.entities = entities
            settle(bench, server)
            stages[variant] = server, blobs
        for build in (Blobs.get, Blobs.list_names, Blobs.list_prefixes, Blobs.list_around, Blobs.put):
            contenders = [
                contender(LAZULITE, server, replace(build(blobs), variant=variant))
                for variant, (server, blobs) in stages.items()
            ]
            bench.compare(contenders, with_baseline=False, warm_s=bench.plan.seconds)


def _fill(location: Path, entities: int, below: int) -> None:
    asyncio.run(_commit_all(location, entities, below))


async def _commit_all(location: Path, entities: int, below: int) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    now = system_clock()
    head = Blob(type=BlobType.BLOCK, modified=now, created=now, length=BLOB_BYTES).to_bytes()
    random = Random(2)
    noise = random.randbytes(1 << 20)

    def decide(_: Sequence[bytes | None], __: int) -> Mapping[str, bytes | None]:
        start = random.randrange(len(noise) - BLOB_BYTES)  # The contents do not compress together.
        return {CURRENT: head + noise[start : start + BLOB_BYTES]}

    try:
        catalog = Catalog(engine, system_clock)
        container = await catalog.create(ACCOUNT, Container(CONTAINER, 0, modified=now))
        every = names(entities, below)
        while several := list(islice(every, _COMMITS_AT_ONCE)):
            await asyncio.gather(*(engine.commit(container.space, name, [CURRENT], decide) for name in several))
    finally:
        await engine.close()
