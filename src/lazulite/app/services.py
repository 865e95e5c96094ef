"""The services of a process, each behind its middleware, and the logs and the certificate that they share."""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeAlias

from lazulite.app.account_data import AccountData, caches_of
from lazulite.app.bearer import bearer_authentication
from lazulite.app.misdirected import MisdirectedClients
from lazulite.app.stderr import report
from lazulite.app.stores import CACHE_TTL_SECONDS, Store, meanwhile
from lazulite.app.telemetry import trace_logs
from lazulite.blob.service import BlobService
from lazulite.engine.contract import Clock, Engine, EngineError, EngineUnavailableError
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.engine.write_check import WriteCheck
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Service
from lazulite.queue.service import QueueService
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.copy_sources.fetcher import SourceFetcher
from lazulite.server.middleware.health import Health
from lazulite.server.middleware.host_guard import HostGuard
from lazulite.server.middleware.landing_page import LandingPage
from lazulite.server.net.certificate import Certificate, CertificateError
from lazulite.server.observability.access_log import RequestLog
from lazulite.server.observability.debug_log import DebugLog
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.server.observability.line_writer import Output
from lazulite.service.definition import BeginLarge, MakeBearer, ServiceDependencies, begin_at_once
from lazulite.service.fetching import FetchSource
from lazulite.service.limits import QueryLimits
from lazulite.settings.addresses import BLOB, QUEUE, TABLE, WEB
from lazulite.settings.config import ConfigError, Settings
from lazulite.table.service import TableService

Prepare: TypeAlias = Callable[[Mapping[int, Sequence[CacheInvalidation]]], Awaitable[None]]
"""Prepares an engine, given the caches of its rows, those of all services."""


class Maintained(Protocol):
    """What does work without a request."""

    async def start(self) -> None:
        """Finish what a crash interrupted."""
        ...

    async def maintain(self) -> None:
        """Do the work that is due without a request."""
        ...


class Startable(Service, Maintained, Protocol):
    """A service that has caches, and work to do before its first request."""

    @property
    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """Return the caches of rows by space."""
        ...

    @property
    def maintain_seconds(self) -> float:
        """The pause between two runs of `maintain`; 0: it never runs."""
        ...


Make: TypeAlias = Callable[[ServiceDependencies], Startable]
"""Makes a service, such as `TableService`."""

MAKES: Mapping[str, Make] = {TABLE: TableService, QUEUE: QueueService, BLOB: BlobService}
"""What makes each service."""

Schedule: TypeAlias = Callable[[Coroutine[object, None, None]], Awaitable[None]]
"""Schedules work that no request waits for, as a method of `FairScheduler` does."""

TAKE_OVER_SECONDS = 60.0
"""How often it is looked for what other processes on the same database have left undone."""


class Served(NamedTuple):
    """A service with its middleware."""

    service: Service
    leave: Callable[[], None]
    """Makes `/health` report that the service stops soon."""
    names_account: Callable[[str], bool]
    """Returns whether a `Host` field names an account of the service, host style."""


@asynccontextmanager
async def open_services(
    settings: Settings,
    store: Store,
    scheduler: FairScheduler,
    *,
    makes: Mapping[str, Make] = MAKES,
    prepare: Prepare | None = None,
    clock: Clock = system_clock,
    begin_large: BeginLarge = begin_at_once,
) -> AsyncIterator[Mapping[str, Served]]:
    """Yield the services that the settings name: all that a server has above its connections.

    Args:
        settings: of the process.
        store: rows and accounts.
        scheduler: runs slow work in slices.
        makes: what makes each service.
        prepare: makes the engine ready; None if it is.
        clock: the time now, for credentials, errors and messages.
        begin_large: lets a large response begin.

    Raises:
        ConfigError: the keys of an issuer cannot be read.
    """
    check = WriteCheck(store.engine.check_writable, store.check_seconds)
    async with AsyncExitStack() as stack:
        bearer = await stack.enter_async_context(bearer_authentication(settings.bearer, report))
        fetch_source = SourceFetcher(settings.copy_source_hosts).fetch if settings.copy_source_hosts else None
        made: dict[str, Startable] = {}
        for name in (each for each in settings.services if each != WEB):
            addressing = Addressing(settings.host_suffixes_of(name))
            dependencies = _dependencies(settings, addressing, store, scheduler, clock, bearer, fetch_source)
            misdirected = MisdirectedClients(name, report)
            made[name] = makes[name](replace(dependencies, note_rejection=misdirected.note, begin_large=begin_large))
        caches = _invalidations(made.values())
        if prepare is not None:
            await prepare(caches)
        else:
            data = AccountData(store.engine, store.contents, caches_of(caches))
            store.procedures.update(data.procedures)
        served: dict[str, Served] = {}
        for name, service in made.items():
            try:
                await service.start()
            except EngineUnavailableError:
                if not store.shared:
                    raise  # Otherwise a part of the database is away, and `_take_over` does it later.
            if store.shared:
                await stack.enter_async_context(meanwhile(take_over(service, store.engine)))
            if service.maintain_seconds and store.primary is None:
                # A database does most of the work itself; and its other processes count what is not swept yet.
                schedule = scheduler.schedule_fairly if store.shared else scheduler.schedule_in_background
                await stack.enter_async_context(maintenance(service, service.maintain_seconds, schedule))
            served[name] = _behind_middleware(settings, name, store, service, check)
        blobs = made.get(BLOB)
        if WEB in settings.services and isinstance(blobs, BlobService):
            website = blobs.website(Addressing(settings.host_suffixes_of(WEB)))
            served[WEB] = _behind_middleware(settings, WEB, store, website, check)
        yield served


def _dependencies(
    settings: Settings,
    addressing: Addressing,
    store: Store,
    scheduler: FairScheduler,
    clock: Clock,
    bearer: "MakeBearer | None",
    fetch_source: FetchSource | None,
) -> ServiceDependencies:
    return ServiceDependencies(
        engine=store.engine,
        accounts=store.directory,
        contents=store.contents,
        clock=clock,
        present=store.present,
        limits=QueryLimits(page_seconds=settings.page_seconds),
        addressing=addressing,
        bearer=bearer,
        fetch_source=fetch_source,
        schedule_fairly=scheduler.schedule_fairly,
        cache_ttl_seconds=CACHE_TTL_SECONDS if store.shared else None,
        primary=store.primary,
    )


def _behind_middleware(settings: Settings, name: str, store: Store, service: Service, check: WriteCheck) -> Served:
    guard = HostGuard(
        service,
        lambda: store.directory.development,
        names=(settings.address(name).host, *settings.allowed_hosts),
        suffixes=settings.allowed_suffixes_of(name),
        report=report,
    )
    names_account = Addressing(settings.host_suffixes_of(name)).names_account
    page = None if name == WEB else LandingPage(name, names_account)
    health = Health(guard, check.passed, kept_seconds=0, away=store.away, page=page)
    return Served(health, health.leave, names_account)


def _invalidations(services: Iterable[Startable]) -> Mapping[int, Sequence[CacheInvalidation]]:
    """Return the caches of all services by space; several have rows of the same space."""
    caches: dict[int, list[CacheInvalidation]] = {}
    for service in services:
        for space, cache in service.invalidations.items():
            caches.setdefault(space, []).append(cache)
    return caches


def maintenance(maintained: Maintained, seconds: float, schedule: Schedule) -> AbstractAsyncContextManager[None]:
    """Have `maintain` run inside the block, with so many seconds between two runs, as `schedule` schedules it."""
    return meanwhile(_maintain(maintained, seconds, schedule))


async def take_over(service: Maintained, engine: Engine) -> None:
    """Finish, now and then, what another process on the same store died of before it was done.

    Before each turn, all commits that were sent before the turn before are durable, or failed (`ContentFiles.sweep`).
    """
    while True:
        await asyncio.sleep(TAKE_OVER_SECONDS)
        with suppress(EngineError):
            await engine.check_writable()
            await service.start()


async def _maintain(maintained: Maintained, seconds: float, schedule: Schedule) -> None:
    while True:
        await asyncio.sleep(seconds)
        with suppress(EngineError):
            await schedule(maintained.maintain())


def certificate_of(settings: Settings) -> Certificate | None:
    """Return the certificate of the ports for HTTPS, if there is one.

    Raises:
        CertificateError: the certificate cannot be used.
    """
    return None if settings.cert is None else Certificate(settings.cert, settings.key)


def read_again(certificate: Certificate) -> None:
    """Reload a certificate, or keep it; report which."""
    try:
        certificate.reload()
    except CertificateError as error:
        report(f"the certificate was not reloaded: {error}")
    else:
        report("the certificate was reloaded")


def open_logs(
    settings: Settings, stack: ExitStack, share: Callable[[Output, int], Output] = lambda output, _: output
) -> list[ExchangeLog]:
    """Return the logs of exchanges that the settings ask for; `stack` closes them.

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
