"""The control channel of a process: where it listens, and what every process answers."""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from socket import socket
from typing import TypeAlias

from lazulite import __version__
from lazulite.app.commands import STATUS
from lazulite.app.stderr import report
from lazulite.control.channel import Channel
from lazulite.control.client import ask_each
from lazulite.control.command import ControlError, Handler, Json, NoArguments
from lazulite.control.socket_file import SOCKET, listening
from lazulite.server.server import Ports
from lazulite.settings.config import ConfigError, Settings

Workers: TypeAlias = Callable[[], Mapping[str, Callable[[], socket]]]
"""Returns the name of each worker that accepts requests -> what connects to its channel."""

WORKER_SECONDS_MAX = 5.0
"""How long the primary waits for its workers when it runs a command."""


@asynccontextmanager
async def open_channel(settings: Settings) -> AsyncIterator[Channel]:
    """Yield a channel that listens at the location and at the path of the settings, if they have them.

    Without a socket at the location, the server goes on: only backups and the like need it.

    Raises:
        ConfigError: there can be no socket at the path of the settings.
    """
    channel = Channel(__version__)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(channel.close)
        if settings.location is not None:
            try:
                await stack.enter_async_context(listening(channel, settings.location / SOCKET))
            except ControlError as error:
                report(f"no backups and other commands while serving: {error}")
        if settings.control_socket is not None:
            try:
                await stack.enter_async_context(listening(channel, settings.control_socket))
            except ControlError as error:
                raise ConfigError(f"--control-socket: {error}") from None
        yield channel


def status_of(
    process: str, readings: Callable[[], Mapping[str, float]], workers: Workers = dict
) -> Handler[NoArguments]:
    """Return the handler of `STATUS`.

    Args:
        process: the name of this process.
        readings: returns its gauges; connections and buffered bytes are shown.
        workers: the other processes of the server, whose items follow.
    """
    started = time.monotonic()

    async def status(arguments: NoArguments) -> AsyncGenerator[Json, None]:
        gauges = readings()
        yield {
            "process": process,
            "pid": os.getpid(),
            "version": __version__,
            "uptime_seconds": round(time.monotonic() - started, 1),
            "connections": gauges.get("connections"),
            "buffered_bytes": gauges.get("buffered_bytes"),
        }
        for result in await ask_each(workers(), STATUS, arguments, WORKER_SECONDS_MAX):
            for item in result.items:
                if isinstance(item, Mapping):
                    yield {**item, "process": result.process}
            if result.error is not None:
                yield {"process": result.process, "error": str(result.error)}

    return status


def addresses_of(settings: Settings, ports: Mapping[str, Ports]) -> Handler[NoArguments]:
    """Return the handler of `ADDRESSES`.

    Args:
        settings: tell the hosts.
        ports: of each service.
    """

    async def addresses(_: NoArguments) -> AsyncGenerator[Json, None]:
        for service, found in ports.items():
            yield {"service": service, "host": settings.address(service).host, **found._asdict()}

    return addresses
