"""A front end of `lazulite serve --workers N`: a process that answers requests.

Its rows are those of the store's owner, whom it asks for them, or of a database, which it opens itself.

Nobody starts it but the owner (`server.workers.supervisor`), which tells it the settings, hands it sockets that listen
and a stream to the store, and says when to end. Signals that people or service managers send to all processes of a
service are the owner's to act on, and are ignored here.

Invariant: it never outlives its owner. When the stream or the commands end, it ends, and its clients lose their
connections as they would if there were one process only.
"""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from socket import socket
from typing import NoReturn

from lazulite.app.services import Prepare, calm_collector, open_logs, read_again, secure_of, table_server
from lazulite.app.stderr import report
from lazulite.app.stores import Store, location_accounts, open_store
from lazulite.engine.contract import EngineError
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.messages import Watcher
from lazulite.server import lifecycle
from lazulite.server.net.certificate import CertificateError
from lazulite.server.observability.line_writer import Output
from lazulite.server.server import Server, Sockets
from lazulite.server.workers.locked_output import LockedOutput
from lazulite.server.workers.supervisor import DRAIN, HURRY, LEAVE, READY, RELOAD
from lazulite.settings.config import Settings
from lazulite.table.remote_codec import TableWording

Share = Callable[[Output, int], Output]

_STDIN, _STDOUT = 0, 1
_NONE = "-"


def command(lock: int, store: int, sockets: Sockets) -> Sequence[str]:
    """Return the command line of a front end.

    Args:
        lock: the descriptor of what its logs are locked by.
        store: that of its stream to the owner's engine.
        sockets: those that it listens on.
    """
    listening = [_NONE if each is None else str(each.fileno()) for each in sockets]
    return [sys.executable, "-m", "lazulite.app.worker", str(lock), str(store), *listening]


def main(arguments: Sequence[str]) -> int:
    """Serve until the owner says otherwise, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lock, store, *listening = arguments
    # The owner made it of its own settings; nobody else can write here.
    settings: Settings = pickle.loads(_told())  # noqa: S301
    sockets = Sockets(*(None if each == _NONE else _socket(each) for each in listening))

    def share(output: Output, place: int) -> Output:
        return LockedOutput(output, int(lock), place)

    try:
        with ExitStack() as stack:
            lifecycle.run(_serve(settings, _socket(store), sockets, stack, share))
    except (ValueError, CertificateError, EngineError, OSError) as error:
        report(f"a front end ends: {error}")
        return 1
    return 0


def _socket(descriptor: str) -> socket:
    inherited = socket(fileno=int(descriptor))
    inherited.setblocking(False)
    return inherited


def _told() -> bytes:
    return _read(int.from_bytes(_read(8), "big"))


def _read(size: int) -> bytes:
    """Read so much of standard input, and nothing of the commands behind it."""
    found = b""
    while len(found) < size:
        part = os.read(_STDIN, size - len(found))
        if not part:
            raise SystemExit(1)  # The owner is gone already.
        found += part
    return found


def _end() -> NoReturn:
    """End at once, as the owner did: what is remembered here may be true no more, if another has the store."""
    os._exit(1)


class _Commands(asyncio.Protocol):
    """What the owner says; see `server.workers.supervisor`."""

    def __init__(self, server: Server, over: asyncio.Event, reload: Callable[[], None] | None) -> None:
        self._server = server
        self._over = over
        self._reload = reload

    def data_received(self, data: bytes) -> None:
        """Obey."""
        for at in range(len(data)):
            said = data[at : at + 1]
            if said == LEAVE:
                self._server.leave()
            elif said == DRAIN:
                self._over.set()
            elif said == HURRY:
                self._server.hurry()
            elif said == RELOAD and self._reload is not None:
                self._reload()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """End, as there is no store any more."""
        _end()


@asynccontextmanager
async def _opened(settings: Settings, stream: socket) -> AsyncIterator[tuple[Store, Prepare | None]]:
    """Yield the store, and what makes it ready.

    Args:
        settings: of the service.
        stream: to the owner's engine, if it has one.
    """
    if settings.database is not None:
        stream.close()
        async with open_store(settings) as store:
            yield store, None
        return
    engine = RemoteEngine(TableWording(), _end)

    async def connect(watchers: Mapping[int, Watcher]) -> None:
        engine.watchers = watchers
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: engine.link, sock=stream)

    yield Store(engine, location_accounts(settings.location, settings.accounts), check_seconds=0), connect
    await engine.close()


async def _serve(settings: Settings, stream: socket, sockets: Sockets, stack: ExitStack, share: Share) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    secure = secure_of(settings)
    logs = open_logs(settings, stack, share)
    async with (
        _opened(settings, stream) as (store, prepare),
        table_server(settings, store, secure=secure, logs=logs, prepare=prepare) as server,
    ):
        reload = None if secure is None else partial(read_again, secure.certificate)
        calm_collector()
        commands = _Commands(server, over, reload)
        await server.start(sockets)
        await loop.connect_read_pipe(lambda: commands, os.fdopen(_STDIN, "rb", buffering=0, closefd=False))
        os.write(_STDOUT, READY)
        await over.wait()
        await server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
