"""A server with analytics in a thread, whose clock and blobs a test has in its hands."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from lazulite.analytics.exchange_buffer import AnalyticsCounts
from lazulite.analytics.log_reader import LogLine, read_line
from lazulite.app.servers import open_servers
from lazulite.app.stores import open_store
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.cli.connection_string import connection_string, path_style
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import system_clock
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.settings.addresses import ServiceAddress
from lazulite.settings.config import Settings

ON = {"version": "1.0", "read": True, "write": True, "delete": True}
ACCOUNT = DEVELOPMENT_ACCOUNT.name


class AccessLog:
    """Keeps what every log of exchanges gets."""

    reads_heads = False

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.all: list[Exchange | RepeatedExchange] = []

    def record(self, exchange: Exchange) -> None:
        """See `ExchangeLog`."""
        self.exchanges.append(exchange)
        self.all.append(exchange)

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`."""
        self.exchanges.append(exchange.exchange)
        self.all.append(exchange)

    def failed(self, request_id: str, failure: BaseException) -> None:
        """See `ExchangeLog`."""
        raise AssertionError(request_id) from failure


@dataclass
class World:
    """The running server."""

    connection_string: str
    counts: AnalyticsCounts
    access: AccessLog = field(default_factory=AccessLog)

    @property
    def blobs(self) -> BlobServiceClient:
        """A client of blobs."""
        return BlobServiceClient.from_connection_string(self.connection_string)

    @property
    def queues(self) -> QueueServiceClient:
        """A client of queues."""
        return QueueServiceClient.from_connection_string(self.connection_string)

    @property
    def tables(self) -> TableServiceClient:
        """A client of tables."""
        return TableServiceClient.from_connection_string(self.connection_string)


@contextmanager
def serving(
    location: Path | None = None,
    services: Sequence[str] = ("table", "queue", "blob"),
    seconds: float = 0.05,
    clock: Clock = system_clock,
) -> Iterator[World]:
    """Serve; at the end everything is published."""
    addresses = {name: ServiceAddress("127.0.0.1", 0) for name in services}
    settings = Settings(
        location=location,
        log_requests=False,
        services=tuple(services),
        addresses=addresses,
        analytics_seconds=seconds,
        allow_development_key=True,
    )
    started: Future[tuple[World, Callable[[], None]]] = Future()
    thread = threading.Thread(target=lambda: _run(settings, clock, started))
    thread.start()
    try:
        world, stop = started.result(60)
        try:
            yield world
        finally:
            stop()
    finally:
        thread.join(60)


def _run(settings: Settings, clock: Clock, started: "Future[tuple[World, Callable[[], None]]]") -> None:
    try:
        asyncio.run(_serve(settings, clock, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(settings: Settings, clock: Clock, started: "Future[tuple[World, Callable[[], None]]]") -> None:
    loop, stopped, access = asyncio.get_running_loop(), asyncio.Event(), AccessLog()
    async with (
        open_store(settings, clock=clock) as store,
        open_servers(settings, store, logs=[access], clock=clock) as servers,
    ):
        await servers.start()
        endpoints = {name: path_style(ACCOUNT, "127.0.0.1", ports.http or 0) for name, ports in servers.ports.items()}
        world = World(connection_string(DEVELOPMENT_ACCOUNT, endpoints), servers.analytics, access)
        started.set_result((world, lambda: _call(loop, stopped.set)))
        await stopped.wait()
        await servers.stop()


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    loop.call_soon_threadsafe(function)


def logged(blobs: BlobServiceClient, prefix: str = "") -> list[LogLine]:
    """Return all lines of `$logs`, in the order of the blobs."""
    container = blobs.get_container_client("$logs")
    texts = [
        container.download_blob(each.name).readall().decode() for each in container.list_blobs(name_starts_with=prefix)
    ]
    assert all(text.endswith("\n") for text in texts)
    return [read_line(line) for text in texts for line in text.splitlines()]
