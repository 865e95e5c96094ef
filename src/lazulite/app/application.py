"""Lazulite as an ASGI 3 application: `lazulite.create_app`.

The store is open from the host's `lifespan.startup` to its `lifespan.shutdown`. Under a host without lifespan events it
is opened by the first request, or by `async with app:`, and closed by the end of that block, if there is one. A store
that is never closed loses nothing that was acknowledged, but keeps its directory locked until the process ends.

One task opens the store and closes it, so that an application belongs to the event loop that used it first.
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from lazulite.analytics.exchange_buffer import ExchangeBuffer
from lazulite.app.channel import status_of
from lazulite.app.commands import STATUS
from lazulite.app.faults import open_faults
from lazulite.app.inspector import open_recorder
from lazulite.app.servers import REQUEST_IDS, front, leave_all
from lazulite.app.services import meter_of, open_logs, open_services
from lazulite.app.stores import Store, open_store
from lazulite.app.telemetry import analytics_readings, empty_metrics, store_readings
from lazulite.auth.accounts.document import AccountsError
from lazulite.engine.contract import EngineError
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response, Service
from lazulite.protocol.request_id import RequestIds
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.admission.large_responses import large_responses
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.asgi.application import Application as Serve
from lazulite.server.asgi.application import HttpApplication
from lazulite.server.asgi.body import Message, Receive, Send
from lazulite.server.middleware.health import PATH as HEALTH_PATH
from lazulite.server.middleware.scheduling import Scheduled
from lazulite.server.observability.metrics_endpoint import PAGE_LIMITS, MetricsPage
from lazulite.settings.config import ConfigError, Settings, accounts_from, is_loopback
from lazulite.settings.extras import require_extra
from lazulite.settings.tracing import trace_exporters_from

_OF_THE_HOST = ("cert", "key", "metrics_port")
"""Settings of ports, which the ASGI server has. In place of a port for metrics, `create_app` takes a path."""

_ALL = ""
"""In place of a service's name: all services, distinguished by the hosts of requests."""


class LoopbackGuard:
    """A service that rejects clients of other machines with `AuthorizationFailure`, and hands on all others.

    A request without a client's address passes: it came through a socket of this machine's file system.

    Args:
        inner: the service behind the guard.
        guarded: whether the service has the public key now.
    """

    def __init__(self, inner: Service, guarded: Callable[[], bool]) -> None:
        self._inner = inner
        self._guarded = guarded

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        if self._passes(request):
            return self._inner.respond(request)
        return self._inner.reject(request, ServiceError("AuthorizationFailure"))

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        return self._inner.reject(request, error)

    def _passes(self, request: Request) -> bool:
        return not request.client or is_loopback(request.client) or not self._guarded()


def create_app(
    location: Path | str | None = None, *, settings: Settings | None = None, metrics_path: str | None = None
) -> "Application":
    """Return an ASGI 3 application that serves tables, queues and blobs, for uvicorn and its like.

    The host of a request tells which service it is for: `ACCOUNT.queue.localhost`, or a suffix of the settings. Path
    style is for tables; see `Application.service`. Nothing is opened yet.

    Args:
        location: the directory of the store and of the accounts; None keeps everything in memory, or where `settings`
            say.
        settings: all other settings; None for those of `lazulite serve --silent`, with the accounts of the
            environment and the traces that OpenTelemetry's variables ask for. `addresses` are the ASGI server's.
        metrics_path: where Prometheus' metrics are served without credentials, such as `/-/metrics`; None: nowhere.

    Raises:
        ConfigError: the settings ask for a port of their own or for workers, the environment's accounts cannot be
            read, or there can be no metrics at the path.
    """
    if settings is None:
        settings = Settings(
            log_requests=False, accounts=accounts_from(os.environ), trace_exporters=trace_exporters_from(os.environ)
        )
    if metrics_path is not None:
        _check_metrics_path(metrics_path)
    unusable = [name for name in _OF_THE_HOST if getattr(settings, name) is not None]
    if settings.addresses:
        unusable.append("addresses")
    if settings.workers > 1:
        unusable.append("workers")
    if unusable:
        raise ConfigError(f"an ASGI application does not support {', '.join(unusable)}; configure the ASGI server")
    if location is not None:
        settings = replace(settings, location=Path(location))
    return Application(settings, metrics_path)


def _check_metrics_path(path: str) -> None:
    if not path.startswith("/") or path == HEALTH_PATH:
        raise ConfigError(f"metrics cannot be served at {path!r}; a path such as /-/metrics begins with a slash")
    try:
        require_extra("metrics", "metrics_path")
    except ValueError as error:
        raise ConfigError(str(error)) from None


class Application:
    """An ASGI 3 application. Use `create_app`."""

    def __init__(self, settings: Settings, metrics_path: str | None) -> None:
        self._settings = settings
        self._metrics_path = metrics_path
        self._begin_drain: Callable[[], None] = lambda: None
        self._running: asyncio.Task[None] | None = None
        self._serve: asyncio.Future[Mapping[str, Serve]] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in the host's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            serve = await self._open()
            await serve[_ALL](scope, receive, send)

    def service(self, name: str) -> Serve:
        """Return an ASGI 3 application of one service, for an address of its own: path style, too, is that service's.

        It shares the store of this application, which opens and closes it; lifespan events do nothing.

        Args:
            name: `table`, `queue` or `blob`.

        Raises:
            ConfigError: the settings do not have the service.
        """
        if name not in self._settings.services:
            raise ConfigError(
                f"the application does not serve {name!r}; it serves {', '.join(self._settings.services)}"
            )

        async def serve(scope: Message, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                for _ in range(2):
                    event = await receive()
                    await send({"type": f"{event['type']}.complete"})
            else:
                await (await self._open())[name](scope, receive, send)

        return serve

    async def __aenter__(self) -> Self:
        """Open the store, unless it is open.

        Raises:
            ConfigError: the settings do not go together, or with the store.
            AccountsError: the accounts cannot be read.
            EngineError: the store cannot be opened.
        """
        await self._open()
        return self

    def begin_drain(self) -> None:
        """Have `/health` say from now on that the service stops soon; everything else goes on.

        Call it to have a load balancer use other backends, some seconds before the ASGI server is stopped. The end of
        the lifespan, and of `async with`, calls it too. Without an open store it does nothing.
        """
        self._begin_drain()

    async def __aexit__(self, *_: object) -> None:
        """Drain, then close the store: wait for the requests in flight, at most the time that the limits give them.

        The next request would open the store again.
        """
        running = self._running
        if running is not None:
            self._begin_drain()
            self._closing.set()
            await running
            if self._running is running:
                self._running = None

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._open()
        except (ConfigError, AccountsError, EngineError) as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__()
        await send({"type": "lifespan.shutdown.complete"})

    async def _open(self) -> Mapping[str, Serve]:
        """Return what serves requests; open the store first if need be. A failed attempt is made again by the next."""
        if self._running is None or self._running.done() or self._serve is None:
            loop = asyncio.get_running_loop()
            self._closing = asyncio.Event()
            self._serve = loop.create_future()
            self._running = loop.create_task(self._run(self._serve, self._closing))
            self._running.add_done_callback(partial(_pass_failure, self._serve))
        return await asyncio.shield(self._serve)  # One request's cancellation leaves the others alone.

    async def _run(self, serve: "asyncio.Future[Mapping[str, Serve]]", closing: asyncio.Event) -> None:
        """Open everything, wait, drain and close it again, in one task."""
        async with _opened(self._settings, self._metrics_path) as opened:
            self._begin_drain = opened.begin_drain
            serve.set_result(opened.serve)
            await closing.wait()
            await asyncio.gather(*(application.drain() for application in opened.applications))


def _pass_failure(serve: "asyncio.Future[Mapping[str, Serve]]", task: "asyncio.Task[None]") -> None:
    """Pass the failure of an attempt to open everything on to the requests that wait for it."""
    if not serve.done():
        if task.cancelled():
            serve.cancel()
        else:
            serve.set_exception(task.exception() or RuntimeError("nothing was opened"))


class _Opened(NamedTuple):
    """An application whose store is open."""

    serve: Mapping[str, Serve]
    """Serves all services, by `_ALL`, or one, by its name; and metrics."""
    applications: Collection[HttpApplication]
    begin_drain: Callable[[], None]


@asynccontextmanager
async def _opened(settings: Settings, metrics_path: str | None) -> AsyncIterator[_Opened]:
    with ExitStack() as stack:
        logs = open_logs(settings, stack)
        metrics = None if metrics_path is None else empty_metrics()
        if metrics is not None:
            logs.append(metrics)
        buffer = ExchangeBuffer(logs, system_clock)
        scheduler = FairScheduler()
        begin_large = large_responses(scheduler, budgets_of(settings.limits, time.monotonic))
        stack.callback(scheduler.close)
        async with (
            open_store(settings, None if metrics is None else metrics.flushed) as store,
            open_recorder(settings, store, logs, system_clock) as recorder,
            open_faults(settings, store, for_test=False, breaks_connections=False) as faults,
            open_services(
                settings,
                store,
                scheduler,
                begin_large=begin_large,
                buffer=buffer,
                faults=faults,
                meter=meter_of(settings),
                recorder=recorder,
            ) as services,
        ):

            def application(names: Sequence[str]) -> HttpApplication:
                service: Service = Scheduled(front(settings, [services[name] for name in names]), scheduler)
                if not settings.allow_development_key:
                    service = LoopbackGuard(service, lambda: store.directory.development)
                return HttpApplication(service, settings.limits, _request_ids(names[0]), logs)

            applications = {name: application([name]) for name in settings.services}
            applications[_ALL] = application(settings.services)
            store.channel.register(STATUS, status_of("server", lambda: _readings(applications.values(), store, buffer)))
            serve: Mapping[str, Serve] = applications
            if metrics is not None and metrics_path is not None:
                render = partial(metrics.render, lambda: _readings(applications.values(), store, buffer))
                page = HttpApplication(
                    MetricsPage(render, metrics_path), PAGE_LIMITS, _request_ids(settings.services[0])
                )
                serve = {name: _with_page(each, page, metrics_path) for name, each in applications.items()}
            yield _Opened(serve, applications.values(), leave_all(services.values()))


def _request_ids(service: str) -> Callable[[], str]:
    return RequestIds(random.SystemRandom(), REQUEST_IDS[service]).next


def _readings(applications: Iterable[HttpApplication], store: Store, buffer: ExchangeBuffer) -> Mapping[str, float]:
    """Return the gauges; the connections are the ASGI server's."""
    buffered_bytes = sum(application.buffered_bytes for application in applications)
    return {
        "buffered_bytes": buffered_bytes,
        **analytics_readings(buffer.counts),
        **store_readings(store.statistics),
        **store.counts(),
    }


def _with_page(application: HttpApplication, page: HttpApplication, path: str) -> Serve:
    """Return an application that serves `page` at a path and `application` everywhere else."""

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        await (page if scope.get("path") == path else application)(scope, receive, send)

    return serve
