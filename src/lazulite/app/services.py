"""The Table service on an engine, and the server in front of it: what one process has, and what each of several has."""

import asyncio
import gc
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from typing import NamedTuple, TypeAlias

from lazulite.app.bearer import bearer_authentication
from lazulite.app.stderr import report
from lazulite.app.stores import REMEMBERED_SECONDS, Store, meanwhile
from lazulite.app.telemetry import trace_logs
from lazulite.engine.contract import Clock, EngineError
from lazulite.engine.remote.messages import Watcher
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Service
from lazulite.protocol.request_id import RequestIds
from lazulite.server.admission.scheduler import Lane
from lazulite.server.middleware.forwarded import Proxied
from lazulite.server.middleware.health import Health
from lazulite.server.middleware.host_guard import HostGuard
from lazulite.server.net.certificate import Certificate, CertificateError
from lazulite.server.observability.access_log import RequestLog
from lazulite.server.observability.debug_log import DebugLog
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.server.observability.line_writer import Output
from lazulite.server.server import Secure, Server
from lazulite.settings.config import ConfigError, Settings
from lazulite.table.call import QueryLimits
from lazulite.table.service import TableService

Prepare: TypeAlias = Callable[[Mapping[int, Watcher]], Awaitable[None]]
"""Prepares an engine, given the watcher of changes of its rows."""

TAKE_OVER_SECONDS = 60.0
"""How often it is looked for what other processes on the same database have left undone."""


class Served(NamedTuple):
    """A service with its middleware."""

    service: Service
    leave: Callable[[], None]
    """Makes `/health` say that the service stops soon."""


@asynccontextmanager
async def table_service(
    settings: Settings,
    store: Store,
    lane: Lane,
    *,
    prepare: Prepare | None = None,
    clock: Clock = system_clock,
) -> AsyncIterator[Served]:
    """Yield the Table service behind its middleware: all that a server has above its connections.

    Args:
        settings: of the service.
        store: its rows and accounts.
        lane: what is slow goes by it.
        prepare: makes the engine ready; None if it is.
        clock: the time now, for credentials and errors.

    Raises:
        ConfigError: the keys of an issuer cannot be read.
    """
    async with bearer_authentication(settings.bearer, report) as bearer:
        addressing = Addressing(settings.host_suffixes)
        limits = QueryLimits(page_seconds=settings.page_seconds)
        tables = TableService(
            store.engine,
            store.directory,
            clock=clock,
            limits=limits,
            addressing=addressing,
            bearer=bearer,
            paced=lane.paced,
            remembered_seconds=REMEMBERED_SECONDS if store.shared else None,
        )
        if prepare is not None:
            await prepare(tables.watchers)
        await tables.start()
        guard = HostGuard(
            tables,
            lambda: store.directory.development,
            names=(settings.host, *settings.allowed_hosts),
            suffixes=settings.allowed_suffixes,
            report=report,
        )
        health = Health(guard, store.engine.check_writable, kept_seconds=store.check_seconds)
        service: Service = health
        if settings.trusted_proxies:
            service = Proxied(service, settings.trusted_proxies)
        async with AsyncExitStack() as stack:
            if store.shared:
                await stack.enter_async_context(meanwhile(_take_over(tables)))
            yield Served(service, health.leave)


@asynccontextmanager
async def table_server(
    settings: Settings,
    store: Store,
    *,
    secure: Secure | None = None,
    logs: Sequence[ExchangeLog] = (),
    prepare: Prepare | None = None,
    clock: Clock = system_clock,
) -> AsyncIterator[Server]:
    """Yield a server, not yet started.

    Args:
        settings: of the service.
        store: its rows and accounts.
        secure: its port for HTTPS.
        logs: told of every exchange.
        prepare: makes the engine ready; None if it is.
        clock: the time now, for credentials and errors.

    Raises:
        ConfigError: the keys of an issuer cannot be read.
    """
    lane = Lane()
    async with table_service(settings, store, lane, prepare=prepare, clock=clock) as served:
        yield Server(
            served.service,
            host=settings.host,
            port=settings.port,
            secure=secure,
            new_request_id=RequestIds(random.SystemRandom()).next,
            limits=settings.limits,
            logs=logs,
            lane=lane,
            on_leave=served.leave,
        )


async def _take_over(tables: TableService) -> None:
    """Finish, now and then, what another process on the same database died of before it was done."""
    while True:
        await asyncio.sleep(TAKE_OVER_SECONDS)
        with suppress(EngineError):
            await tables.start()


def secure_of(settings: Settings) -> Secure | None:
    """Return the port for HTTPS and what is shown there, if there is one.

    Raises:
        CertificateError: the certificate cannot be used.
    """
    if settings.cert is None or settings.https_port is None:
        return None
    return Secure(settings.https_port, Certificate(settings.cert, settings.key))


def read_again(certificate: Certificate) -> None:
    """Read a certificate again, or keep it, and tell which."""
    try:
        certificate.reload()
    except CertificateError as error:
        report(f"the certificate was not reloaded: {error}")
    else:
        report("the certificate was reloaded")


def open_logs(
    settings: Settings, stack: ExitStack, share: Callable[[Output, int], Output] = lambda output, _: output
) -> list[ExchangeLog]:
    """Return what the settings want to be told of exchanges, closed by `stack`.

    Args:
        settings: of the service.
        stack: closes them.
        share: makes of a file, and a number of its own, what other processes may write to as well.

    Raises:
        ConfigError: a file cannot be written.
    """
    logs: list[ExchangeLog] = []
    if settings.log_requests:
        request_log = RequestLog(share(sys.stderr.buffer, 0))
        stack.callback(request_log.close)
        logs.append(request_log)
    if settings.debug_file is not None:
        try:
            debug_file = os.open(settings.debug_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            debug_log = DebugLog(share(stack.enter_context(os.fdopen(debug_file, "ab")), 1))
        except OSError as error:
            raise ConfigError(f"cannot write {settings.debug_file}: {error.strerror}") from error
        stack.callback(debug_log.close)
        logs.append(debug_log)
    for trace_log in trace_logs(settings, report):
        stack.callback(trace_log.close)
        logs.append(trace_log)
    return logs


def calm_collector() -> None:
    """Keep the cycle collector off what lives as long as the process, and rarely at the rest.

    Requests leave next to no cycles behind, so the default thresholds make it look for nothing, and often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
