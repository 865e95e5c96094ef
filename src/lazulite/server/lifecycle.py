"""The life of a serving process: start, announce, serve, drain on a signal, return.

Invariant: `serve` returns normally after a signal, with everything in flight answered or the drain's time used up, so
that its caller can close the engine and exit 0.
"""

import asyncio
import resource
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import uvloop

from lazulite.protocol.message import Service
from lazulite.server.exchange_log import ExchangeLog
from lazulite.server.limits import Limits
from lazulite.server.listener import BindError, Server

T = TypeVar("T")

_SPARE_FILES = 1024
"""File descriptors beside the connections': the store's, the logs'."""


async def serve(
    service: Service,
    *,
    host: str,
    port: int,
    new_request_id: Callable[[], str],
    on_ready: Callable[[int], None],
    limits: Limits | None = None,
    logs: Sequence[ExchangeLog] = (),
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal cuts the drain short.

    Args:
        service: what answers.
        host: the address to listen on.
        port: 0 for any free one.
        new_request_id: never the same twice, `RequestIds.next`.
        on_ready: called with the actual port once requests are accepted.
        limits: the bounds; the defaults when None.
        logs: told of every exchange.
        clock: monotonic seconds.

    Raises:
        BindError: the address cannot be listened on.
    """
    limits = limits or Limits()
    allow_files(limits.connections + _SPARE_FILES)
    server = Server(service, host=host, port=port, new_request_id=new_request_id, limits=limits, logs=logs, clock=clock)
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            server.hurry()
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        await server.start()
        on_ready(server.port)
        await signalled.wait()
    finally:
        await server.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end on a fresh uvloop event loop, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def allow_files(count: int) -> int:
    """Raise the process's soft limit of open files towards `count`, as far as the hard limit lets; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return soft
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


__all__ = ["BindError", "Server", "allow_files", "run", "serve"]
