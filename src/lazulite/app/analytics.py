"""Storage Analytics of a process: what its servers have recorded, on its way to logs and metrics."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lazulite.analytics.collector import Collector, RequestConsumer
from lazulite.analytics.exchange_buffer import ExchangeBuffer
from lazulite.analytics.requests import RequestReader
from lazulite.app.stores import meanwhile
from lazulite.protocol.addressing import Addressing
from lazulite.settings.addresses import WEB
from lazulite.settings.config import Settings


@asynccontextmanager
async def analytics(settings: Settings, buffer: ExchangeBuffer) -> AsyncIterator[None]:
    """Make logs and metrics of what is recorded inside the block, and of the rest at its end.

    Args:
        settings: of the process.
        buffer: has what was recorded.
    """
    services = (name for name in settings.services if name != WEB)
    addressings = {name: Addressing(settings.host_suffixes_of(name)) for name in services}
    consumers: Sequence[RequestConsumer] = ()
    collector = Collector(buffer, RequestReader(addressings, buffer.wanted), consumers, time.monotonic)
    async with meanwhile(collector.run()):
        yield
    collector.drain()
