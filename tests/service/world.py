"""The notes service behind everything that a process has in front of a service, by both servers."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from lazulite.app.servers import ServerGroup, open_servers
from lazulite.app.services import Make, open_services
from lazulite.app.stores import open_store
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import SIGNED_VERSION, AccountSas, sign_account_sas, write_query
from lazulite.protocol.message import Request
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.asgi.application import HttpApplication
from lazulite.server.middleware.scheduling import Scheduled
from lazulite.server.observability.access_log import RequestLog
from lazulite.server.observability.metrics import Metrics
from lazulite.settings.addresses import TABLE
from lazulite.settings.config import Settings

from .note_credentials import NoteSas, string_to_sign
from .notes import NOTES, NoteService

ACCOUNT = DEVELOPMENT_ACCOUNT.name
VERSION = "2021-01-01"
EXPIRY = "2100-01-01T00:00:00Z"


def account_sas(permission: str = "rw", services: str = "n", resource_types: str = "sco") -> str:
    """Return an account SAS."""
    return sign_account_sas(
        DEVELOPMENT_ACCOUNT,
        AccountSas(services=services, resource_types=resource_types, permission=permission, expiry=EXPIRY),
    )


def note_sas(note: str, permission: str) -> str:
    """Return a service SAS of one note."""
    token = NoteSas(note=note, permission=permission, expiry=EXPIRY)
    signature = DEVELOPMENT_ACCOUNT.signers[0].sign(token.string_to_sign(ACCOUNT).encode()).decode()
    values = {"nn": note, "sp": permission, "se": EXPIRY, "sv": SIGNED_VERSION, "sig": signature}
    return write_query(values)


class World:
    """The service, with one client.

    Attributes:
        server: the native server; None under ASGI.
        metrics: counts every exchange.
    """

    def __init__(
        self, client: httpx.AsyncClient, base: str, output: io.BytesIO, log: RequestLog, metrics: Metrics
    ) -> None:
        self.server: ServerGroup | None = None
        self.metrics = metrics
        self._client = client
        self._base = base
        self._output = output
        self._log = log

    async def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        key: bool = False,
        root: str = f"/{ACCOUNT}/",
    ) -> httpx.Response:
        """Send a request; with `key`, sign it by Shared Key."""
        sent = {"x-ms-version": VERSION, **(headers or {})}
        if key:
            sent["x-ms-date"] = formatdate(usegmt=True)
            comp = dict(pair.split("=") for pair in query.split("&") if pair).get("comp")
            text = string_to_sign("SharedKey", Request(method, "", headers=sent), ACCOUNT, root + path, comp)
            signature = DEVELOPMENT_ACCOUNT.signers[0].sign(text.encode()).decode()
            sent["authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        url = f"{self._base}{root}{path}" + (f"?{query}" if query else "")
        return await self._client.request(method, url, content=content or None, headers=sent)

    async def logged(self) -> list[dict[str, Any]]:
        """Close the request log, and return its lines."""
        await asyncio.to_thread(self._log.close)
        return [json.loads(line) for line in self._output.getvalue().splitlines()]


@asynccontextmanager
async def serving(server: str, location: Path | None = None, make: Make = NoteService) -> AsyncIterator[World]:
    """Serve notes, or what `make` makes.

    Args:
        server: `native`, or `asgi`.
        location: of the store; None for memory.
    """
    settings = Settings(location=location, services=(TABLE,), accounts={ACCOUNT: DEVELOPMENT_ACCOUNT})
    output, metrics = io.BytesIO(), Metrics("1", NOTES.operations | {"Health"}, ())
    log, numbers, scheduler = RequestLog(output), count(), FairScheduler()
    async with open_store(settings) as store:
        if server == "asgi":
            async with open_services(settings, store, scheduler, makes={TABLE: make}) as services:
                app = HttpApplication(
                    Scheduled(services[TABLE].service, scheduler),
                    settings.limits,
                    lambda: str(next(numbers)),
                    [log, metrics],
                )
                transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 4711))
                async with httpx.AsyncClient(transport=transport) as client:
                    yield World(client, "http://127.0.0.1", output, log, metrics)
            scheduler.close()
        else:
            async with (
                open_servers(settings, store, makes={TABLE: make}, logs=[log, metrics]) as native,
                httpx.AsyncClient() as client,
            ):
                await native.start()
                world = World(client, f"http://127.0.0.1:{native.port}", output, log, metrics)
                world.server = native
                try:
                    yield world
                finally:
                    await native.stop()
        await asyncio.to_thread(log.close)
