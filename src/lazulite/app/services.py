"""The services of a process, each behind its middleware, and what they share: logs, certificate, bearer tokens.

Invariant: of clients at the wrong port, a process prints at most `LINES_MAX` lines, so no stranger fills the log.
"""

import asyncio
import gc
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from typing import NamedTuple, Protocol, TypeAlias

from lazulite.analytics.exchange_buffer import ExchangeBuffer
from lazulite.app.account_data import AccountData, caches_of
from lazulite.app.analytics import analytics
from lazulite.app.commands import END_RECORDING, KEY_SAMPLE, RECORD, TRAFFIC
from lazulite.app.expiry import ExpiryCommands
from lazulite.app.faults import clock_of, with_faults
from lazulite.app.indexes import IndexCommands
from lazulite.app.kept_state import KeptState
from lazulite.app.partitions import LiveCommands, live_partitions
from lazulite.app.stderr import report
from lazulite.app.stores import CACHE_TTL_SECONDS, Store, meanwhile
from lazulite.app.telemetry import trace_logs
from lazulite.app.traffic import end_recording_of, key_sample_of, recording_of, traffic_of
from lazulite.blob.service import BlobService
from lazulite.engine.contract import Clock, Engine, EngineError, EngineUnavailableError
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.engine.write_check import WriteCheck
from lazulite.faults.remote import RemoteFaults
from lazulite.faults.rules import NO_FAULTS, FaultSource
from lazulite.partitions.live import LivePartitions
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import system_clock, unix_seconds
from lazulite.protocol.errors import ServiceError, TlsOnPlainPortError
from lazulite.protocol.message import Request, Service
from lazulite.queue.service import QueueService
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.copy_sources.fetcher import SourceFetcher
from lazulite.server.inspector.recorder import RequestRecorder
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
from lazulite.service.routing import QueryLimits
from lazulite.settings.addresses import BLOB, QUEUE, TABLE, WEB
from lazulite.settings.bearer import BearerSettings
from lazulite.settings.config import ConfigError, Settings
from lazulite.table.service import TableService
from lazulite.traffic.meter import Meter

LINES_MAX = 16
_SDK = re.compile(r"azsdk-[\w.-]*?(blob|queue|table)", re.IGNORECASE)
"""The user agent of an SDK, such as `azsdk-python-storage-blob/12.31.1`; the group is its service."""
_AGENT_CHARACTERS_MAX = 512
_OWN_FIELDS = {"x-ms-blob-type": BLOB, "dataserviceversion": TABLE, "maxdataserviceversion": TABLE}
"""Header that clients of one service alone send -> that service."""

Prepare: TypeAlias = Callable[[Mapping[int, Sequence[CacheInvalidation]]], Awaitable[None]]
"""Prepares an engine, given the caches of its rows, those of all services."""

Schedule: TypeAlias = Callable[[Coroutine[object, None, None]], Awaitable[None]]
"""Schedules work that no request waits for, as a method of `FairScheduler` does."""

TAKE_OVER_SECONDS = 60.0
"""The seconds between two searches for what other processes on the same database have left undone."""


@asynccontextmanager
async def bearer_authentication(
    settings: BearerSettings | None, report: Callable[[str], None]
) -> AsyncIterator["MakeBearer | None"]:
    """Yield what makes the check of bearer tokens for a service, None without an issuer.

    An issuer that does not answer is asked again later.

    Raises:
        ConfigError: the file with the keys cannot be read.
    """
    if settings is None:
        yield None
        return
    # They need an extra, which `settings.bearer` looked for.
    from lazulite.auth.bearer.authentication import BearerAuthentication  # noqa: PLC0415
    from lazulite.auth.bearer.jwks import FileKeys, JwksError  # noqa: PLC0415
    from lazulite.server.oidc.issuer_keys import IssuerKeys, fetcher_of  # noqa: PLC0415

    make = partial(BearerAuthentication, rules=settings.rules, clock=system_clock, allow_http=settings.allow_http)
    if settings.jwks is not None:
        try:
            keys = FileKeys(settings.jwks, report)
        except JwksError as error:
            raise ConfigError(str(error)) from None
        yield partial(make, keys=keys)
        return
    async with IssuerKeys(fetcher_of(settings.rules.issuer), report) as issuer_keys:
        yield partial(make, keys=issuer_keys)


class MisdirectedClients:
    """Reports clients that a service rejects because they are meant for another port.

    Args:
        service: the service of the port.
        report: takes a line for people.
    """

    def __init__(self, service: str, report: Callable[[str], None]) -> None:
        self._service = service
        self._report = report
        self._reported: set[str] = set()

    def note(self, request: Request, error: ServiceError) -> None:
        """Report the client of a rejected request once, if it is at the wrong port."""
        if len(self._reported) == LINES_MAX:
            return
        mistake = self._mistake(request, error)
        if not mistake:
            return
        line = f"a client{_from(request.client)} {mistake}"
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _mistake(self, request: Request, error: ServiceError) -> str:
        if isinstance(error, TlsOnPlainPortError):
            return (
                f"speaks HTTPS at the port of {self._service}s for HTTP: "
                "write http:// in its endpoint, or serve HTTPS (--cert)"
            )
        meant = service_of(request)
        if meant in ("", self._service):
            return ""
        return (
            f"of {meant}s is at the port of {self._service}s: check its {meant.title()}Endpoint, "
            f"or the port of {meant}s (--{meant}-port)"
        )


def service_of(request: Request) -> str:
    """Return the service that a client is meant for, by what it tells of itself; "" if that is unknown."""
    sdk = _SDK.search(request.headers.get("user-agent", "")[:_AGENT_CHARACTERS_MAX])
    if sdk is not None:
        return sdk[1].lower()
    return next((service for name, service in _OWN_FIELDS.items() if name in request.headers), "")


def _from(client: str) -> str:
    """Return where a client is; "" for a text that is no address, as a proxy may pass on any."""
    try:
        return f" ({ip_address(client)})"
    except ValueError:
        return ""


class MaintainedService(Protocol):
    """What does work without a request."""

    async def start(self) -> None:
        """Finish what a crash interrupted."""
        ...

    async def maintain(self) -> None:
        """Do the work that is due without a request."""
        ...


class StartableService(Service, MaintainedService, Protocol):
    """A service that has caches, and work to do before its first request."""

    @property
    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """Return the caches of rows by space."""
        ...

    @property
    def maintain_seconds(self) -> float:
        """The pause between two runs of `maintain`; 0: it never runs."""
        ...


Make: TypeAlias = Callable[[ServiceDependencies], StartableService]
"""Makes a service, such as `TableService`."""

MAKES: Mapping[str, Make] = {TABLE: TableService, QUEUE: QueueService, BLOB: BlobService}
"""What makes each service."""


class Served(NamedTuple):
    """A service with its middleware."""

    service: Service
    leave: Callable[[], None]
    """Makes `/health` report that the service stops soon."""
    names_account: Callable[[str], bool]
    """Returns whether a `Host` field names an account of the service, host style."""


@asynccontextmanager
async def open_services(  # noqa: PLR0913 - most have a default
    settings: Settings,
    store: Store,
    scheduler: FairScheduler,
    *,
    makes: Mapping[str, Make] = MAKES,
    prepare: Prepare | None = None,
    clock: Clock = system_clock,
    begin_large: BeginLarge = begin_at_once,
    buffer: ExchangeBuffer | None = None,
    faults: FaultSource = NO_FAULTS,
    meter: Meter | None = None,
    live: LivePartitions | None = None,
    for_test: bool = False,
    recorder: RequestRecorder | None = None,
) -> AsyncIterator[Mapping[str, Served]]:
    """Yield the services that the settings name: all that a server has above its connections.

    Args:
        settings: of the process.
        store: rows and accounts.
        scheduler: runs slow work in slices.
        makes: what makes each service.
        prepare: connects with the primary; None: there is none.
        clock: the time now, for credentials, errors and messages.
        begin_large: lets a large response begin.
        buffer: takes what servers record for analytics; None: no account gets any.
        faults: tells what requests suffer from.
        meter: counts the traffic of resources; None: it is not counted.
        live: decides about requests while it is active; None: live partitions by the settings are made.
        for_test: whether a command may return to a state that was kept.
        recorder: keeps the last requests while it is on; None: they are not recorded.

    Raises:
        ConfigError: the keys of an issuer cannot be read.
    """
    check = WriteCheck(store.engine.check_writable, store.check_seconds)
    seconds = seconds_of(clock)
    live = live or live_partitions(settings.partitions, store, clock, meter)
    store.channel.register(TRAFFIC, traffic_of(meter, store.directory, seconds))
    store.channel.register(RECORD, recording_of(meter, store.directory))
    store.channel.register(END_RECORDING, end_recording_of(meter))
    store.channel.register(KEY_SAMPLE, key_sample_of(store.engine, store.directory))
    LiveCommands(live, settings.partitions.time_scale, store).register(store.channel)
    async with AsyncExitStack() as stack:
        bearer = await stack.enter_async_context(bearer_authentication(settings.bearer, report))
        fetch_source = SourceFetcher(settings.copy_source_hosts).fetch if settings.copy_source_hosts else None
        made: dict[str, StartableService] = {}
        for name in (each for each in settings.services if each != WEB):
            addressing = Addressing(settings.host_suffixes_of(name))
            dependencies = _dependencies(settings, addressing, store, scheduler, clock, bearer, fetch_source)
            note_properties = buffer.note if buffer else None
            dependencies = replace(dependencies, meter=meter, live=live, note_properties=note_properties)
            dependencies = replace(dependencies, faults=faults, clock=clock_of(faults, name, clock))
            note_rejection = _rejection_notes(name, recorder)
            made[name] = makes[name](replace(dependencies, note_rejection=note_rejection, begin_large=begin_large))
        caches = _invalidations(made.values())
        if prepare is not None:
            await prepare(with_faults(caches, faults))
        if isinstance(faults, RemoteFaults):
            await faults.learn()
        if store.primary is None:
            data = AccountData(store.engine, store.contents, caches_of(caches), shared=store.shared)
            data.register(store.channel)
            if for_test and store.contents is not None:
                KeptState(store.engine, store.contents, caches_of(caches)).register(store.channel)
            indexes = IndexCommands(store.engine, store.directory, caches_of(caches), counts=store.builds)
            indexes.register(store.channel)
            ExpiryCommands(store.engine, store.directory, caches_of(caches)).register(store.channel)
            await stack.enter_async_context(indexes.running())
        if live.active:
            with suppress(EngineUnavailableError):  # A part of the database is away. It follows the maps later.
                await live.start()
        if buffer is not None:
            dependencies = _dependencies(settings, Addressing(), store, scheduler, clock, None, None)
            await stack.enter_async_context(analytics(settings, store, scheduler, buffer, made.get(BLOB), dependencies))
        served: dict[str, Served] = {}
        for name, service in made.items():
            await _start(service, store, scheduler, stack)
            served[name] = _behind_middleware(settings, name, store, service, check)
        blobs = made.get(BLOB)
        if WEB in settings.services and isinstance(blobs, BlobService):
            website = blobs.website(Addressing(settings.host_suffixes_of(WEB)))
            served[WEB] = _behind_middleware(settings, WEB, store, website, check)
        yield served


def _rejection_notes(name: str, recorder: RequestRecorder | None) -> Callable[[Request, ServiceError], None]:
    """Return what is called with each rejected request of a service, before its response is made."""
    misdirected = MisdirectedClients(name, report)
    if recorder is None:
        return misdirected.note

    def note(request: Request, error: ServiceError) -> None:
        misdirected.note(request, error)
        recorder.note_rejection(name, request, error)

    return note


def meter_of(settings: Settings, clock: Clock = system_clock) -> Meter | None:
    """Return the meter that the settings ask for, by a clock."""
    return Meter(seconds_of(clock)) if settings.meter else None


def seconds_of(clock: Clock) -> Callable[[], float]:
    """Return what returns the Unix time by a clock."""
    return time.time if clock is system_clock else lambda: unix_seconds(clock())


async def _start(service: StartableService, store: Store, scheduler: FairScheduler, stack: AsyncExitStack) -> None:
    """Start a service, and have its maintenance run until the stack is closed."""
    try:
        await service.start()
    except EngineUnavailableError:
        if not store.shared:
            raise  # Otherwise a part of the database is away, and `take_over` does it later.
    if store.shared:
        await stack.enter_async_context(meanwhile(take_over(service, store.engine)))
    if service.maintain_seconds and store.primary is None:
        # A database does most of the work itself; and its other processes count what is not swept yet.
        schedule = scheduler.schedule_fairly if store.shared else scheduler.schedule_in_background
        await stack.enter_async_context(maintenance(service, service.maintain_seconds, schedule))


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


def _invalidations(services: Iterable[StartableService]) -> Mapping[int, Sequence[CacheInvalidation]]:
    """Return the caches of all services by space; several have rows of the same space."""
    caches: dict[int, list[CacheInvalidation]] = {}
    for service in services:
        for space, cache in service.invalidations.items():
            caches.setdefault(space, []).append(cache)
    return caches


def maintenance(maintained: MaintainedService, seconds: float, schedule: Schedule) -> AbstractAsyncContextManager[None]:
    """Have `maintain` run inside the block, with so many seconds between two runs, as `schedule` schedules it."""
    return meanwhile(_maintain(maintained, seconds, schedule))


async def take_over(service: MaintainedService, engine: Engine) -> None:
    """Finish, now and then, what another process on the same store died of before it was done.

    Before each turn, all commits that were sent before the turn before are durable, or failed (`ContentFiles.sweep`).
    """
    while True:
        await asyncio.sleep(TAKE_OVER_SECONDS)
        with suppress(EngineError):
            await engine.check_writable()
            await service.start()


async def _maintain(maintained: MaintainedService, seconds: float, schedule: Schedule) -> None:
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


def reload_certificate(certificate: Certificate) -> None:
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


def tune_garbage_collector() -> None:
    """Keep the cycle collector off what lives as long as the process, and rarely at the rest.

    Requests leave next to no cycles behind, so the default thresholds make it look for nothing, and often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
