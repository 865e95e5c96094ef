"""Lazulite as an ASGI 3 application: `lazulite.create_app`.

The store is open from the host's `lifespan.startup` to its `lifespan.shutdown`. Under a host without lifespan events it
is opened by the first request, or by `async with app:`, and closed by the end of that block, if there is one. A store
that is never closed loses nothing that was acknowledged, but keeps its directory locked until the process ends.

One task opens the store and closes it, so that an application belongs to the event loop that used it first.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from lazulite.app.loopback_guard import LoopbackGuard
from lazulite.app.services import open_logs, table_service
from lazulite.app.stores import open_store
from lazulite.auth.accounts.document import AccountsError
from lazulite.engine.contract import EngineError
from lazulite.protocol.message import Service
from lazulite.protocol.request_id import RequestIds
from lazulite.server.admission.scheduler import Lane
from lazulite.server.asgi import Application as Serve
from lazulite.server.asgi import Message, Receive, Send, asgi_app
from lazulite.server.middleware.scheduling import Scheduled
from lazulite.settings.config import ConfigError, Settings, accounts_from

_OF_THE_HOST = ("https_port", "cert", "key", "metrics_port")
"""Settings of ports, which the ASGI server has."""

_LOOPBACK = "127.0.0.1"
"""The listening address is not known, so `LoopbackGuard` looks at the clients' instead."""


def create_app(location: Path | str | None = None, *, settings: Settings | None = None) -> "Application":
    """Return an ASGI 3 application that serves tables, for uvicorn and its like; nothing is opened yet.

    Args:
        location: the directory of the store and of the accounts; None keeps everything in memory, or where `settings`
            say.
        settings: all other settings; None for those of `lazulite serve --silent`, with the accounts of the
            environment. `host` and `port` are the ASGI server's and not looked at.

    Raises:
        ConfigError: the settings ask for a port of their own or for workers, or the environment's accounts cannot be
            read.
    """
    if settings is None:
        settings = Settings(log_requests=False, accounts=accounts_from(os.environ))
    unusable = [name for name in _OF_THE_HOST if getattr(settings, name) is not None]
    if settings.workers > 1:
        unusable.append("workers")
    if unusable:
        raise ConfigError(f"an ASGI application has no {', '.join(unusable)}: its server has")
    if location is not None:
        settings = replace(settings, location=Path(location))
    return Application(replace(settings, host=_LOOPBACK))


class Application:
    """An ASGI 3 application. Use `create_app`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: asyncio.Task[None] | None = None
        self._serve: asyncio.Future[Serve] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in the host's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            serve = await self._opened()
            await serve(scope, receive, send)

    async def __aenter__(self) -> Self:
        """Open the store, unless it is open.

        Raises:
            ConfigError: the settings do not go together, or with the store.
            AccountsError: the accounts cannot be read.
            EngineError: the store cannot be opened.
        """
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the store, once what is being written is durable. The next request would open it again."""
        running, self._running = self._running, None
        if running is not None:
            self._closing.set()
            await running

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._opened()
        except (ConfigError, AccountsError, EngineError) as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__()
        await send({"type": "lifespan.shutdown.complete"})

    async def _opened(self) -> Serve:
        """Return what serves requests; open the store first if need be. A failed attempt is made again by the next."""
        if self._running is None or self._running.done() or self._serve is None:
            loop = asyncio.get_running_loop()
            self._closing = asyncio.Event()
            self._serve = loop.create_future()
            self._running = loop.create_task(self._run(self._serve, self._closing))
            self._running.add_done_callback(partial(_tell, self._serve))
        return await asyncio.shield(self._serve)  # One request's cancellation leaves the others alone.

    async def _run(self, serve: "asyncio.Future[Serve]", closing: asyncio.Event) -> None:
        """Open everything, wait, and close it again, in one task."""
        async with _served(self._settings) as opened:
            serve.set_result(opened)
            await closing.wait()


def _tell(serve: "asyncio.Future[Serve]", task: "asyncio.Task[None]") -> None:
    """Pass the failure of an attempt to open everything on to the requests that wait for it."""
    if not serve.done():
        if task.cancelled():
            serve.cancel()
        else:
            serve.set_exception(task.exception() or RuntimeError("nothing was opened"))


@asynccontextmanager
async def _served(settings: Settings) -> AsyncIterator[Serve]:
    with ExitStack() as stack:
        logs = open_logs(settings, stack)
        lane = Lane()
        stack.callback(lane.close)
        async with open_store(settings) as store, table_service(settings, store, lane) as served:
            service: Service = Scheduled(served.service, lane)
            if not settings.allow_development_key:
                service = LoopbackGuard(service, lambda: store.directory.development)
            new_request_id = RequestIds(random.SystemRandom()).next
            yield asgi_app(service, settings.limits, new_request_id, logs)
