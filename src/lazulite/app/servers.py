"""The servers of a process: one for each address, on one store, with one scheduler, budgets and logs."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import zip_longest

from lazulite.analytics.exchange_buffer import AnalyticsCounts, ExchangeBuffer
from lazulite.app.faults import open_faults
from lazulite.app.inspector import open_recorder
from lazulite.app.partitions import live_partitions
from lazulite.app.services import MAKES, Make, Prepare, Served, meter_of, open_services
from lazulite.app.stores import Store
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Service
from lazulite.protocol.request_id import RequestIds
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.admission.large_responses import large_responses
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.limits import Limits
from lazulite.server.middleware.by_host import ByHost, HostedService
from lazulite.server.middleware.forwarded import Proxied
from lazulite.server.net.certificate import Certificate
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.server.server import BindError, Ports, SecurePort, Server, Sockets
from lazulite.settings.addresses import BLOB, QUEUE, TABLE, WEB
from lazulite.settings.config import Settings
from lazulite.traffic.meter import Meter

REQUEST_IDS = {TABLE: 2, QUEUE: 3, BLOB: 0x1E, WEB: 0x1E}
"""The number of each service in the ids of requests."""


class ServerGroup:
    """The servers of a process. Implements `lifecycle.Serving`.

    Args:
        servers: by the services that each of them serves.
        settings: of the process.
        counts: of analytics.
        scheduler: of the process.
        meter: of the process, if it counts.
    """

    def __init__(
        self,
        servers: Mapping[tuple[str, ...], Server],
        settings: Settings,
        counts: AnalyticsCounts,
        scheduler: FairScheduler,
        meter: Meter | None = None,
    ) -> None:
        self.scheduler = scheduler
        """Schedules the slow work of the process."""
        self._servers = servers
        self._counts = counts
        self._meter = meter
        self._settings = settings
        self._first = next(iter(servers.values()))

    @property
    def limits(self) -> Limits:
        """The bounds of each server."""
        return self._first.limits

    @property
    def ports(self) -> Mapping[str, Ports]:
        """The ports of each service since `start`."""
        return {name: server.ports for names, server in self._servers.items() for name in names}

    @property
    def port(self) -> int:
        """The HTTP port of the first service."""
        return self._first.port

    @property
    def connection_count(self) -> int:
        """The connections of all servers."""
        return sum(server.connection_count for server in self._servers.values())

    @property
    def buffered_bytes(self) -> int:
        """The bytes of request bodies that the process holds."""
        return self._first.buffered_bytes

    @property
    def template_outcomes(self) -> Mapping[str, int]:
        """How many requests templates have answered, or not, by the outcome."""
        return sum((Counter(server.template_outcomes) for server in self._servers.values()), Counter())

    @property
    def traffic(self) -> Mapping[str, float]:
        """The counters of the meter; none without one."""
        return {} if self._meter is None else self._meter.totals()

    @property
    def analytics(self) -> AnalyticsCounts:
        """What analytics has done."""
        return self._counts

    def allow_templates(self, *, allowed: bool) -> None:
        """See `Server`."""
        for server in self._servers.values():
            server.allow_templates(allowed=allowed)

    async def start(self, sockets: Sequence[Sockets] = ()) -> None:
        """Begin to accept requests.

        Args:
            sockets: listening already, for each server; empty: the servers listen.

        Raises:
            BindError: an address cannot be listened on; the text names the flags.
        """
        for (names, server), given in zip_longest(self._servers.items(), sockets):
            try:
                await server.start(given)
            except BindError as error:
                raise explained(error, names, self._settings) from error

    def leave(self) -> None:
        """Serve on, but ask clients to reconnect elsewhere: `stop` follows."""
        for server in self._servers.values():
            server.leave()

    async def stop(self) -> None:
        """Stop accepting, respond to requests in flight, end."""
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    def force_stop(self) -> None:
        """End a running or later `stop` at once."""
        for server in self._servers.values():
            server.force_stop()


def explained(error: BindError, names: Sequence[str], settings: Settings) -> BindError:
    """Return an error with the flags by which another address is chosen, or the service is left out.

    Args:
        error: an address cannot be listened on.
        names: of the services at the address.
        settings: of the process.
    """
    hint = f"choose another --{names[0]}-port"
    others = ",".join(name for name in settings.services if name not in names)
    if others:
        hint = f"{hint}, or serve the others alone (--services {others})"
    return BindError(f"{error}: {hint}")


@asynccontextmanager
async def open_servers(
    settings: Settings,
    store: Store,
    *,
    certificate: Certificate | None = None,
    logs: Sequence[ExchangeLog] = (),
    makes: Mapping[str, Make] = MAKES,
    prepare: Prepare | None = None,
    clock: Clock = system_clock,
    for_test: bool = False,
) -> AsyncIterator[ServerGroup]:
    """Yield the servers of the services that the settings name, not yet started.

    Args:
        settings: of the process.
        store: rows and accounts.
        certificate: of the services that have an HTTPS port.
        logs: record every exchange.
        makes: what makes each service.
        prepare: connects with the primary; None: there is none.
        clock: the time now, for credentials, errors and messages.
        for_test: whether a test may add any rule of faults at any time, and reset the data.

    Raises:
        ConfigError: the keys of an issuer, or the rules of faults, cannot be read.
    """
    scheduler = FairScheduler()
    budgets = budgets_of(settings.limits, time.monotonic)
    all_logs = [*logs]
    buffer = ExchangeBuffer(all_logs, clock)
    begin_large = large_responses(scheduler, budgets)
    meter = meter_of(settings, clock)
    live = live_partitions(settings.partitions, store, clock, meter)
    async with (
        open_faults(settings, store, for_test=for_test) as faults,
        open_recorder(settings, store, all_logs, clock) as recorder,
        open_services(
            settings,
            store,
            scheduler,
            makes=makes,
            prepare=prepare,
            clock=clock,
            begin_large=begin_large,
            buffer=buffer,
            faults=faults,
            meter=meter,
            live=live,
            for_test=for_test,
            recorder=recorder,
        ) as services,
    ):
        servers: dict[tuple[str, ...], Server] = {}
        for names in settings.servers:
            own = settings.address(names[0])
            served = [services[name] for name in names]
            servers[names] = Server(
                front(settings, served),
                host=own.host,
                port=own.port,
                secure=None
                if certificate is None or own.https_port is None
                else SecurePort(own.https_port, certificate),
                new_request_id=RequestIds(random.SystemRandom(), REQUEST_IDS[names[0]]).next,
                limits=settings.limits,
                logs=all_logs,
                scheduler=scheduler,
                budgets=budgets,
                on_leave=leave_all(served),
            )
        group = ServerGroup(servers, settings, buffer.counts, scheduler, meter)

        def allow_templates() -> None:
            group.allow_templates(allowed=not (faults.active or live.active))

        allow_templates()
        faults.on_change.append(allow_templates)
        live.on_change.append(allow_templates)
        yield group


def front(settings: Settings, served: Sequence[Served]) -> Service:
    """Return what a server serves: one service, or several by their hosts, behind the proxies of the settings."""
    hosted = [HostedService(each.names_account, each.service) for each in served]
    service: Service = ByHost(hosted) if len(hosted) > 1 else hosted[0].service
    return Proxied(service, settings.trusted_proxies) if settings.trusted_proxies else service


def leave_all(served: Iterable[Served]) -> Callable[[], None]:
    """Return a function that makes `/health` of all services report that they stop soon."""

    def leave() -> None:
        for each in served:
            each.leave()

    return leave
