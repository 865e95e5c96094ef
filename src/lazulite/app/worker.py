"""A worker of `lazulite serve --workers N`: a process that responds to requests.

It asks the primary for rows, or opens the database itself. In both cases the primary has the rules of faults.

Only the primary starts it (`server.workers.supervisor`), with the settings, listening sockets and a stream to the
store, and stops it by a command. Signals that users or service managers send to all processes of a service are ignored
here: the primary handles them.

Invariant: a worker never outlives its primary. When the stream or the commands end, it exits, and its clients lose
their connections, as with a single process.
"""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from socket import socket
from typing import TYPE_CHECKING, NoReturn

from lazulite.app.channel import status_of
from lazulite.app.commands import STATUS
from lazulite.app.registry import CODEC
from lazulite.app.servers import ServerGroup, open_servers
from lazulite.app.services import Prepare, certificate_of, open_logs, reload_certificate, tune_garbage_collector
from lazulite.app.stderr import report
from lazulite.app.stores import Store, location_accounts, open_store
from lazulite.app.telemetry import Readings, counters_of, new_metrics, server_readings
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.remote import RemoteContents
from lazulite.engine.contract import EngineError
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.engine.rocksdb.change_log import ChangeLogReader
from lazulite.engine.rocksdb.replica import Replica
from lazulite.protocol.clock import system_clock, until_9999
from lazulite.server import lifecycle
from lazulite.server.net.certificate import CertificateError
from lazulite.server.observability.families import Families, dumped
from lazulite.server.observability.line_writer import Output
from lazulite.server.server import Sockets
from lazulite.server.workers.locked_output import LockedOutput
from lazulite.server.workers.supervisor import (
    ANNOUNCE_STOP,
    FORCE_STOP,
    METRICS,
    READY,
    RELOAD,
    STOP,
    take_connections,
)
from lazulite.settings.config import Settings, content_path, replica_path, store_path

if TYPE_CHECKING:
    from lazulite.server.observability.metrics import Metrics

Share = Callable[[Output, int], Output]

_STDIN, _STDOUT = 0, 1
_NONE = "-"


def command(lock: int, log: int | None, store: int, passage: int, sockets: Sequence[Sockets]) -> Sequence[str]:
    """Return the command line of a worker of this process.

    Args:
        lock: the descriptor of the lock of its logs.
        log: the descriptor of the change log of the store, if there is one.
        store: the descriptor of its stream to the primary's engine.
        passage: the descriptor of the socket by which the primary passes connections of the control channel.
        sockets: listening, for each server.
    """
    listening = [_NONE if each is None else str(each.fileno()) for pair in sockets for each in pair]
    fixed = map(str, (os.getpid(), lock, _NONE if log is None else log, store, passage))
    return [sys.executable, "-m", "lazulite.app.worker", *fixed, *listening]


def main(arguments: Sequence[str]) -> int:
    """Serve until the primary stops this process, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    primary, lock, log, store, passage, *listening = arguments
    # The primary encoded its own settings; no other process can write to this pipe.
    settings: Settings = pickle.loads(_settings())  # noqa: S301
    inherited = [None if each == _NONE else _socket(each) for each in listening]
    sockets = [Sockets(*pair) for pair in zip(inherited[::2], inherited[1::2], strict=True)]

    def share(output: Output, place: int) -> Output:
        return LockedOutput(output, int(lock), place)

    try:
        with ExitStack() as stack:
            replica = None if log == _NONE else _replica(settings, int(log), int(primary))
            opened = _opened(settings, _socket(store), replica)
            lifecycle.run(_serve(settings, opened, _socket(passage), sockets, stack, share))
    except (ValueError, CertificateError, EngineError, OSError) as error:
        report(f"a worker ends: {error}")
        return 1
    return 0


def _replica(settings: Settings, log: int, primary: int) -> Replica | None:
    """Return the replica of the store, given the descriptor of its change log and the process of the primary."""
    location = settings.location
    if location is None:
        return None
    try:
        return Replica(
            ChangeLogReader(log), store_path(location), replica_path(location), lambda: os.getppid() == primary
        )
    finally:
        os.close(log)


def _socket(descriptor: str) -> socket:
    inherited = socket(fileno=int(descriptor))
    inherited.setblocking(False)
    return inherited


def _settings() -> bytes:
    return _read(int.from_bytes(_read(8), "big"))


def _read(size: int) -> bytes:
    """Read so many bytes of standard input, and none of the commands behind them."""
    found = b""
    while len(found) < size:
        part = os.read(_STDIN, size - len(found))
        if not part:
            raise SystemExit(1)  # The primary is gone already.
        found += part
    return found


def _end() -> NoReturn:
    """Exit at once, as the primary did: another process may have the store, and caches here may be stale."""
    os._exit(1)


class _CommandReader(asyncio.Protocol):
    """Carries out commands of the primary; see `server.workers.supervisor`.

    Args:
        actions: by command; other commands are ignored.
    """

    def __init__(self, actions: Mapping[bytes, Callable[[], None]]) -> None:
        self._actions = actions

    def data_received(self, data: bytes) -> None:
        """Carry out each command."""
        for at in range(len(data)):
            action = self._actions.get(data[at : at + 1])
            if action is not None:
                action()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Exit, as the store is gone."""
        _end()


class _MetricsPrinter:
    """Prints the metrics of this process as a line for the primary.

    Args:
        metrics: of this process.
        servers: their gauges are among them.
        counters: of the store.
    """

    def __init__(self, metrics: "Metrics", servers: ServerGroup, counters: Readings) -> None:
        self._metrics = metrics
        self._servers = servers
        self._counters = counters
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to print; the event loop waits for nothing."""
        running = asyncio.get_running_loop().create_task(self._print())
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _print(self) -> None:
        servers = self._servers
        families = await self._metrics.families(
            lambda: {**server_readings(servers), **self._counters()}, lambda: servers.template_outcomes
        )
        await asyncio.to_thread(_print_line, families)


def _print_line(families: Families) -> None:
    with suppress(OSError), os.fdopen(_STDOUT, "wb", closefd=False) as output:
        output.write(dumped(families) + b"\n")


@asynccontextmanager
async def _opened(settings: Settings, stream: socket, replica: Replica | None) -> AsyncIterator[tuple[Store, Prepare]]:
    """Yield the store, and the function that connects with the primary.

    Args:
        settings: of the service.
        stream: to the primary.
        replica: of the primary's store, if there can be one.
    """
    engine = RemoteEngine(CODEC, until_9999(system_clock), _end)

    async def connect(invalidations: Mapping[int, Sequence[CacheInvalidation]]) -> None:
        engine.invalidations = invalidations
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: engine.channel, sock=stream)
        if replica is not None:
            await engine.use(replica)

    if settings.database is not None:
        async with open_store(settings) as store:
            yield replace(store, faults=engine), connect
        await engine.close()
        return
    accounts = location_accounts(settings.location, settings.accounts)
    location = settings.location
    contents: ContentStore = RemoteContents(engine) if location is None else ContentFiles(content_path(location))
    yield (
        Store(engine, accounts, contents, counters=engine.counters, primary=engine, faults=engine, check_seconds=0),
        connect,
    )
    await engine.close()
    await contents.close()


async def _serve(
    settings: Settings,
    opened: AbstractAsyncContextManager[tuple[Store, Prepare]],
    passage: socket,
    sockets: Sequence[Sockets],
    stack: ExitStack,
    share: Share,
) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    certificate = certificate_of(settings)
    logs = open_logs(settings, stack, share)
    metrics = new_metrics(settings)
    if metrics is not None:
        logs.append(metrics)
    async with (
        opened as (store, prepare),
        open_servers(settings, store, certificate=certificate, logs=logs, prepare=prepare) as servers,
    ):
        actions = {ANNOUNCE_STOP: servers.leave, STOP: over.set, FORCE_STOP: servers.force_stop}
        if certificate is not None:
            actions[RELOAD] = partial(reload_certificate, certificate)
        if metrics is not None:
            actions[METRICS] = _MetricsPrinter(metrics, servers, partial(counters_of, store.counts, servers)).start
        store.channel.register(STATUS, status_of("worker", lambda: server_readings(servers)))
        take_connections(passage, store.channel.attach)
        tune_garbage_collector()
        await servers.start(sockets)
        stdin = os.fdopen(_STDIN, "rb", buffering=0, closefd=False)
        await loop.connect_read_pipe(lambda: _CommandReader(actions), stdin)
        os.write(_STDOUT, READY)
        await over.wait()
        await servers.stop()
        await store.channel.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
