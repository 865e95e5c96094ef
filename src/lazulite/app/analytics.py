"""Storage Analytics of a process: what its servers have recorded, on its way to logs and metrics.

The process needs the store for it, and no service of blobs.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from lazulite.analytics.collector import Collector
from lazulite.analytics.exchange_buffer import AnalyticsCounts, ExchangeBuffer
from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer
from lazulite.analytics.log_writer import LogWriter
from lazulite.analytics.metrics import MetricsCounter
from lazulite.analytics.metrics_upkeep import MetricsUpkeep
from lazulite.analytics.metrics_writer import MetricsWriter
from lazulite.analytics.requests import RequestReader
from lazulite.app.stderr import report
from lazulite.app.stores import Store, meanwhile
from lazulite.blob.service import BLOB as BLOB_DEFINITION
from lazulite.blob.service import BlobService
from lazulite.engine.contract import Clock, EngineError
from lazulite.protocol.addressing import Addressing
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.service.definition import ServiceDependencies
from lazulite.service.properties import PropertiesStore
from lazulite.settings.addresses import BLOB, QUEUE, TABLE, WEB
from lazulite.settings.config import Settings

RETENTION_SECONDS = 600.0
"""The seconds between two searches for logs that are too old."""
_HOURS_PER_DAY = 24


@asynccontextmanager
async def analytics(
    settings: Settings,
    store: Store,
    scheduler: FairScheduler,
    buffer: ExchangeBuffer,
    blobs: object,
    dependencies: ServiceDependencies,
) -> AsyncIterator[None]:
    """Make logs and metrics of what is recorded inside the block, and of the rest at its end.

    Args:
        settings: of the process.
        store: of the process.
        scheduler: runs slow work in slices.
        buffer: has what was recorded.
        blobs: the Blob service, if it is served.
        dependencies: of a Blob service that is not.
    """
    if store.contents is None:
        yield
        return
    services = (name for name in settings.services if name != WEB)
    addressings = {name: Addressing(settings.host_suffixes_of(name)) for name in services}
    context = blobs.context if isinstance(blobs, BlobService) else BLOB_DEFINITION.make_context(dependencies)
    container = LogContainer(context)
    writer = LogWriter(container, buffer.counts, report)
    seconds = settings.analytics_seconds
    publishing = asyncio.create_task(writer.run(seconds))
    try:
        async with _counting(store, scheduler, dependencies.clock, seconds, buffer.counts) as counter:
            reader = RequestReader(addressings, buffer.wanted)
            collector = Collector(buffer, reader, [writer, counter], time.monotonic)
            try:
                async with meanwhile(collector.run()), meanwhile(_retain(store, container, dependencies)):
                    yield
            finally:
                collector.drain()
    finally:
        writer.stop()
        await publishing


@asynccontextmanager
async def _counting(
    store: Store, scheduler: FairScheduler, clock: Clock, seconds: float, counts: AnalyticsCounts
) -> AsyncIterator[MetricsCounter]:
    """Yield a counter whose counts are written to the store every so many seconds, and at the end of the block.

    Args:
        store: of the process.
        scheduler: runs slow work in slices.
        clock: the time now.
        seconds: between two rounds.
        counts: what became of requests.
    """
    counter, process = MetricsCounter(counts), uuid4().hex

    def has_account(name: str) -> bool:
        return store.directory.get(name) is not None

    writer = MetricsWriter(store.engine, counter, clock, process, has_account, counts)
    upkeep = MetricsUpkeep(store.engine, writer, clock, process, has_account)
    async with meanwhile(writer.run(seconds)), meanwhile(upkeep.run(scheduler.schedule_fairly)):
        yield counter
    await writer.flush()


async def _retain(store: Store, container: LogContainer, dependencies: ServiceDependencies) -> None:
    """Delete logs again and again when they are too old, also of accounts that are not logged any more."""
    while True:
        await asyncio.sleep(RETENTION_SECONDS)
        with suppress(EngineError):
            await delete_expired(store.directory.names(), container, dependencies)


async def delete_expired(accounts: Iterable[str], container: LogContainer, dependencies: ServiceDependencies) -> int:
    """Delete the blobs of logs that are older than the properties of their service allow; return how many.

    Raises:
        EngineError: some are left.
    """
    hour = dependencies.clock() // TICKS_PER_HOUR
    deleted = 0
    for service in (TABLE, QUEUE, BLOB):
        properties = PropertiesStore(dependencies.engine, service)
        for account in accounts:
            policy = (await properties.get(account)).logging.retention
            if policy.enabled and policy.days:
                deleted += await container.delete_before(account, service, hour - policy.days * _HOURS_PER_DAY)
    return deleted
