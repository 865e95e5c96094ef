"""`lazulite serve --workers N`: the processes that answer, started and watched by one that does not.

That one owns the store of a location, and they ask it for rows. A database they open each for itself: then this process
only finds out, before it starts them, whether that can be done.
"""

import asyncio
import os
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from socket import socket
from typing import TypeAlias

from lazulite.app import worker
from lazulite.app.services import calm_collector, secure_of
from lazulite.app.stderr import report
from lazulite.app.stores import Store, open_location, open_store
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.write_check import WriteCheck
from lazulite.records.spaces import WATCHED
from lazulite.server import lifecycle
from lazulite.server.admission.scheduler import Lane
from lazulite.server.server import Ports
from lazulite.server.workers.locked_output import new_lock
from lazulite.server.workers.supervisor import Address, FrontEnds
from lazulite.settings.config import Settings
from lazulite.table.remote_codec import TableWording

Attach: TypeAlias = Callable[[socket, Callable[[], None]], Awaitable[None]]


async def serve_by_workers(settings: Settings, announce: Callable[[Store, Ports], None]) -> None:
    """Let front ends serve until a signal.

    Args:
        settings: of the service.
        announce: tells people that they do.
    """
    secure = secure_of(settings)
    lock = new_lock()
    try:
        async with _behind(settings) as (store, attach):
            calm_collector()
            front_ends = FrontEnds(
                partial(worker.command, lock),
                pickle.dumps(settings),
                count=settings.workers,
                address=Address(settings.host, settings.port, settings.https_port),
                limits=settings.limits,
                attach=attach,
                report=report,
                shared=[lock],
            )
            on_hangup = None if secure is None else front_ends.reload
            await lifecycle.serve(front_ends, on_ready=partial(announce, store), on_hangup=on_hangup)
    finally:
        os.close(lock)


@asynccontextmanager
async def _behind(settings: Settings) -> AsyncIterator[tuple[Store, Attach]]:
    """Yield what is behind the front ends, and what joins them to it."""
    if settings.database is not None:
        async with open_store(settings) as store:
            pass
        yield store, _leave
        return
    async with open_location(settings) as (engine, directory):
        lane, check = Lane(), WriteCheck(engine.check_writable)
        owner = EngineServer(
            engine, TableWording(), WATCHED, report, paced=lane.paced, passed=lane.passed, check=check.passed
        )
        try:
            yield Store(engine, directory, f"RocksDB, {engine.name}"), partial(_join, owner)
        finally:
            lane.close()
            await owner.close()


async def _join(owner: EngineServer, stream: socket, kill: Callable[[], None]) -> None:
    link = owner.link(kill)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=stream)


async def _leave(stream: socket, _: Callable[[], None]) -> None:
    """Let a front end be: there is nothing here that it would ask for."""
    stream.close()
