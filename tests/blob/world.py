"""The Blob service on a store in memory, asked without a connection, with a clock that tests set."""

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.blob import resource
from lazulite.blob.requests.call import Context
from lazulite.blob.service import BlobService
from lazulite.engine.content.contract import ContentId
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Clock, KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_DAY, system_clock
from lazulite.protocol.message import Request, response_of
from lazulite.service.definition import ServiceDependencies
from lazulite.service.fetching import FetchSource
from lazulite.service.routing import QueryLimits

ACCOUNT = DEVELOPMENT_ACCOUNT.name
VERSION = "2021-12-02"
CONTAINER = "docs"


@dataclass(frozen=True)
class Answer:
    """A response, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    code: str


class World:
    """The service, and what it keeps.

    Attributes:
        days: how far the clock is ahead.
        present: the time of a database that the next process shares; None: it shares none.
        fetch_source: of the next process.
        limits: of the next process.
        random: of all processes, so that no number comes again.

    Args:
        clock: the time, to which the days are added.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self.days = 0
        self._now = clock
        self.present: Clock | None = None
        self.random = Random(1)
        self.fetch_source: FetchSource | None = None
        self.limits = QueryLimits()
        self.engine = RocksEngine.open(None, self._clock)
        self.contents = ContentMemory()
        self.directory = AccountDirectory({ACCOUNT: DEVELOPMENT_ACCOUNT})
        self.restart()

    def restart(self) -> None:
        """Replace the process."""
        dependencies = ServiceDependencies(
            engine=self.engine,
            accounts=self.directory,
            contents=self.contents,
            clock=self._clock,
            present=self.present,
            random=self.random,
            fetch_source=self.fetch_source,
            limits=self.limits,
        )
        self.service = BlobService(dependencies)

    @property
    def context(self) -> Context:
        """What the operations work with."""
        return self.service.context

    def _clock(self) -> int:
        return self._now() + self.days * TICKS_PER_DAY

    async def ask(
        self,
        method: str,
        path: str = f"{CONTAINER}/blob",
        query: str = "",
        body: bytes = b"",
        version: str = VERSION,
        **headers: str,
    ) -> Answer:
        """Send a request with an account SAS; underscores in the names of headers stand for hyphens."""
        named = {name.replace("_", "-").lower(): text for name, text in headers.items()}
        request = Request(
            method,
            f"/{ACCOUNT}/{quote(path)}",
            "&".join(part for part in (query, token()) if part),
            {"x-ms-version": version, "content-length": str(len(body)), **named},
            body,
            client="127.0.0.1",
        )
        return await self._send(request)

    async def anonymous(self, method: str, path: str) -> Answer:
        """Send a request without credentials and without a version."""
        return await self._send(Request(method, f"/{ACCOUNT}/{quote(path)}", "", {"host": "h"}, client="127.0.0.1"))

    async def send_as_is(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> Answer:
        """Send a request with no other credentials than it has."""
        return await self._send(Request(method, path, query, headers, client="127.0.0.1"))

    async def _send(self, request: Request) -> Answer:
        response = await response_of(self.service, request)
        content = response.body
        if response.content is not None:
            if request.method != "HEAD":
                content = b"".join([chunk async for chunk in response.content.chunks()])
            await response.content.aclose()
        fields = {name.lower(): text for name, text in response.fields()}
        return Answer(response.status, fields, content, response.error_code)

    async def put_block(self, name: str, data: bytes, blob: str = "blob", **headers: str) -> Answer:
        """Put a block."""
        return await self.ask("PUT", f"{CONTAINER}/{blob}", f"comp=block&blockid={quote(id_of(name))}", data, **headers)

    async def put_list(self, *entries: tuple[str, str], blob: str = "blob", **headers: str) -> Answer:
        """Put a list of blocks: the element and the name of each."""
        leaves = "".join(f"<{source}>{id_of(name)}</{source}>" for source, name in entries)
        body = f"<BlockList>{leaves}</BlockList>".encode()
        return await self.ask("PUT", f"{CONTAINER}/{blob}", "comp=blocklist", body, **headers)

    async def rows(self) -> list[str]:
        """Return the rows of the container, once no garbage is being deleted."""
        await self.context.garbage.wait_until_idle()
        container = await self.context.catalog.require(ACCOUNT, CONTAINER)
        found: list[str] = []
        async for part in self.engine.scan(container.space, [KeyRange(("", ""), None)]):
            found += [part.key(index)[1] for index in range(len(part.values))]
        return found

    async def kept(self) -> set[ContentId]:
        """Return the contents of the store, once no garbage is being deleted."""
        await self.context.garbage.wait_until_idle()
        return set(self.contents._contents)


def id_of(name: str) -> str:
    """Return the id of a block in base64."""
    return b64encode(name.encode()).decode()


@asynccontextmanager
async def opened(clock: Clock = system_clock) -> AsyncIterator[World]:
    """Yield a world with one container, and with a clock."""
    world = World(clock)
    try:
        await world.service.start()
        created = await world.ask("PUT", CONTAINER, "restype=container")
        assert created.status == 201, created
        yield world
        await world.context.garbage.wait_until_idle()
    finally:
        await world.engine.close()


def token() -> str:
    """Return an account SAS that permits everything."""
    sas = AccountSas(services="b", resource_types="sco", permission="rwdxylacuptfi", expiry="2999-01-01T00:00:00Z")
    return sign_account_sas(DEVELOPMENT_ACCOUNT, sas)


@contextmanager
def stored_names() -> Iterator[None]:
    """Store blobs under the names of their paths, as earlier versions did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "normal_path", lambda path: path)
        patch.setattr(resource, "check_blob_name", lambda *_: None)
        resource._cached.cache_clear()
        yield
    resource._cached.cache_clear()
