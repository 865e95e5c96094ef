"""A container of many blobs against a small one; both are filled through the engine's commits."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from random import Random

from benchmarks.bench import Bench
from benchmarks.blobs import BLOB_BYTES, CONTAINER, Blobs, names
from benchmarks.requests import ACCOUNT
from benchmarks.sections.big import BIG, SMALL, WARM_SECONDS_MAX, check_space, settle
from benchmarks.sections.queue_growth import fill
from benchmarks.subjects import LAZULITE
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.storage.catalog import Catalog, Container
from lazulite.engine.commit import changing
from lazulite.engine.contract import Engine
from lazulite.protocol.clock import system_clock

FEW, SKIPPED_FEW, SKIPPED_MAX = 10_000, 2, 1_000_000
DISK_BYTES_PER_BLOB = 3 * BLOB_BYTES
_COMMITS_AT_ONCE = 1000


def run(bench: Bench) -> None:
    """Measure a container of few blobs and one of many in turn: single blobs, and pages of the list."""
    many = bench.plan.blobs
    sizes = {SMALL: (min(FEW, many), SKIPPED_FEW), BIG: (many, min(many, SKIPPED_MAX))}
    check_space(bench, sum(sizes[BIG]) * DISK_BYTES_PER_BLOB, "--blobs")
    with ExitStack() as stack:
        stages = {}
        for variant, (entities, below) in sizes.items():
            bench.say(f"{entities:,} blobs, and {below:,} below one prefix")
            location = bench.location / variant
            fill(location, _commit_all, (entities, below))
            stage = stack.enter_context(bench.stage(LAZULITE, Blobs, entities, place=location))
            settle(bench, stage.server)
            stages[variant] = stage
        for build in (Blobs.get, Blobs.list_names, Blobs.list_prefixes, Blobs.list_around, Blobs.put):
            contenders = [stage.asked(build, variant=variant) for variant, stage in stages.items()]
            bench.compare(contenders, with_baseline=False, warm_s=WARM_SECONDS_MAX)


async def _commit_all(engine: Engine, sizes: tuple[int, int]) -> None:
    now, random = system_clock(), Random(2)
    head = Blob(type=BlobType.BLOCK, modified=now, created=now, length=BLOB_BYTES).to_bytes()
    noise = random.randbytes(1 << 20)

    def decide(_: Sequence[bytes | None], __: int) -> Mapping[str, bytes | None]:
        start = random.randrange(len(noise) - BLOB_BYTES)  # The contents do not compress together.
        return {CURRENT: head + noise[start : start + BLOB_BYTES]}

    container = await Catalog(engine, system_clock).create(ACCOUNT, Container(CONTAINER, 0, modified=now))
    every = names(*sizes)
    while several := list(islice(every, _COMMITS_AT_ONCE)):
        await asyncio.gather(*(engine.commit(container.space, name, changing([CURRENT], decide)) for name in several))
