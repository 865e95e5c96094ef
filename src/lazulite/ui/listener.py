"""The listener of the explorer, and the links by which a browser signs in.

The link that waits to be used is in a file of the location, which only its owner may read. The file is gone once a link
is used, and when the listener stops.
"""

import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from lazulite.app.commands import REQUESTS, RecordedArguments
from lazulite.app.stderr import report
from lazulite.app.stores import Store
from lazulite.auth.accounts.document import AccountStore
from lazulite.control.client import ask
from lazulite.control.command import ControlError
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import system_clock
from lazulite.protocol.request_id import RequestIds
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.limits import MIB, Limits
from lazulite.server.net.certificate import Certificate
from lazulite.server.observability.access_log import frames
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.server.server import Ports, SecurePort, Server
from lazulite.settings.config import Settings, account_file, is_loopback
from lazulite.ui.backend import Backend
from lazulite.ui.calls import PageServices
from lazulite.ui.jobs import Jobs
from lazulite.ui.routes import ROUTES
from lazulite.ui.routing import Routes
from lazulite.ui.security import KnownHosts
from lazulite.ui.sessions import Sessions
from lazulite.ui.site import Explorer

LINK_FILE = "explorer-link"
"""The file's name in a location."""
LIMITS = Limits(
    connections=64,
    body_bytes=8 * MIB,
    buffered_bytes=64 * MIB,
    unauthenticated_bytes=8 * MIB,
    header_read_seconds=5,
    request_seconds=300,
    drain_seconds=2,
)
"""People are few. An upload takes as long as a service takes it."""


def _account_store(settings: Settings) -> AccountStore | None:
    if settings.database is not None:
        from lazulite.app.database import DatabaseAccounts  # noqa: PLC0415 - of an extra

        return DatabaseAccounts(settings.database)
    return None if settings.location is None else account_file(settings.location)


class FailureLog:
    """Prints where an unexpected error came from, and records nothing else. Implements `ExchangeLog`."""

    reads_heads = False

    def record(self, exchange: Exchange) -> None:
        """See `ExchangeLog`."""

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`."""

    def failed(self, request_id: str, failure: BaseException) -> None:
        """See `ExchangeLog`."""
        report(f"the explorer failed (request {request_id}): {type(failure).__name__} at {' '.join(frames(failure))}")


class Listener:
    """The explorer of this process.

    Args:
        settings: of the process.
        store: rows, accounts and the control channel.
        ports: returns the ports of each service.
        port: to listen on; 0: any free one.
        certificate: of an address that other machines reach.
        scheduler: of the process, so that long work leaves the loop to short requests; None: one of its own.
        clock: dates requests to the services.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        ports: Callable[[], Mapping[str, Ports]],
        port: int,
        *,
        certificate: Certificate | None = None,
        scheduler: FairScheduler | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._settings = settings
        self._store = store
        self._sessions = Sessions(secrets.token_bytes, time.monotonic)
        self._sessions.on_used = self._remove_link
        self._jobs = Jobs()
        self._secure = certificate is not None and not is_loopback(settings.ui_host)
        services = PageServices(
            settings=settings,
            directory=store.directory,
            store_name=store.name,
            backend=Backend(settings, store.directory, ports, clock),
            sessions=self._sessions,
            jobs=self._jobs,
            connect=self._connect,
            statistics=store.statistics or dict,
            accounts=_account_store(settings),
            poll_accounts=store.poll_accounts,
        )
        hosts = KnownHosts((*settings.allowed_hosts, settings.ui_host))
        self._server = Server(
            Explorer(services, Routes(ROUTES), hosts),
            host=settings.ui_host,
            port=None if self._secure else port,
            secure=SecurePort(port, certificate) if self._secure and certificate is not None else None,
            new_request_id=RequestIds(random.SystemRandom()).next,
            limits=LIMITS,
            logs=[FailureLog()],
            scheduler=scheduler,
        )

    @property
    def url(self) -> str:
        """The address of the first page."""
        ports = self._server.ports
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._settings.ui_host, self._settings.ui_host)  # noqa: S104
        scheme, port = ("https", ports.https) if self._secure else ("http", ports.http)
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"

    @property
    def link_file(self) -> Path | None:
        """The file with the link; None in memory and with a database."""
        return None if self._settings.location is None else self._settings.location / LINK_FILE

    def new_link(self) -> str:
        """Return a URL that signs in once."""
        return f"{self.url}?token={self._sessions.new_token()}"

    async def start(self) -> None:
        """Listen.

        Raises:
            BindError: the address cannot be listened on.
        """
        await self._server.start()

    async def keep_recording(self) -> None:
        """Have requests recorded for a while from now on, for the page that shows them."""
        with suppress(ControlError):
            await ask(self._connect(), REQUESTS, RecordedArguments(limit=1))

    async def stop(self) -> None:
        """Stop the jobs, end the sessions and close the port."""
        self._remove_link()
        await self._jobs.close()
        await self._server.stop()

    def write_link(self, url: str) -> bool:
        """Write a link to its file, which only its owner may read; return whether there is one."""
        path = self.link_file
        if path is None:
            return False
        self._remove_link()
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(f"{url}\n")
        except OSError as error:
            report(f"cannot write {path}: {error.strerror}")
            return False
        return True

    def _remove_link(self) -> None:
        if self.link_file is not None:
            with suppress(OSError):
                self.link_file.unlink()

    def _connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._store.channel.attach(theirs)
        return ours
