"""The Table service, to which each request goes as a server would send it: first at once, else by `handle`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.contract import Clock, Engine
from lazulite.protocol.clock import TICKS_PER_SECOND, unix_seconds
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, Response
from lazulite.service.definition import ServiceDependencies
from lazulite.table.credentials import TableSas, sign_table_sas, table_string_to_sign
from lazulite.table.service import TableService
from tests.fuzz.memory import MemoryEngine

NAME = "acct"
KEYS = (b"first", b"second")
NOW = 13_569_465_600 * TICKS_PER_SECOND
"""2031-01-01, in ticks."""
START, EXPIRY = "2030-12-31", "2031-01-02T00:00:00Z"
VERSION = "2019-02-02"
JSON = "application/json"
HEAD = {"host": "h", "accept": JSON, "content-type": JSON, "x-ms-version": VERSION, "user-agent": "sdk"}
ENTITY = "orders(PartitionKey='p',RowKey='r')"


@dataclass(frozen=True)
class Answer:
    """What a client and the logs see of a response."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    error_code: str
    record: str

    def field(self, name: str) -> str | None:
        return dict(self.fields).get(name)


class World:
    """The service, its accounts, and its clocks, which a test sets.

    Attributes:
        immediate: how many requests got a response that was ready.
        authenticated: whether the last request's credentials were found good before it was handled.
    """

    def __init__(self, open_engine: Callable[[Clock], Engine] = MemoryEngine) -> None:
        self.now, self.monotonic_s = NOW, 0.0
        self.immediate = 0
        self.accounts = AccountDirectory({})
        self.accounts.replace({NAME: StoredAccount(KEYS)})
        self.engine = open_engine(lambda: self.now)
        self.authenticated = False
        self.service = TableService(
            ServiceDependencies(
                engine=self.engine, accounts=self.accounts, clock=lambda: self.now, monotonic=lambda: self.monotonic_s
            )
        )

    @property
    def account(self) -> Account:
        account = self.accounts.get(NAME)
        assert account is not None
        return account

    def sas(self, permission: str = "rwdlacu", **values: str) -> str:
        token = AccountSas(services="t", resource_types="sco", permission=permission, start=START, expiry=EXPIRY)
        return sign_account_sas(self.account, replace(token, **values))

    def table_sas(self, table: str = "orders", permission: str = "raud", **values: str) -> str:
        token = TableSas(table=table, permission=permission, start=START, expiry=EXPIRY)
        return sign_table_sas(self.account, replace(token, **values))

    def shared_key(self, method: str, path: str, headers: Mapping[str, str], query: str = "") -> dict[str, str]:
        """Return the fields that sign a request, by the account's first key."""
        dated = {**headers, "x-ms-date": formatdate(unix_seconds(self.now), usegmt=True)}
        comp = dict(pair.split("=") for pair in query.split("&") if "=" in pair).get("comp")
        text = table_string_to_sign("SharedKey", Request(method, path, query, dated), NAME, path, comp)
        signature = self.account.signers[0].sign(text.encode()).decode()
        return {"x-ms-date": dated["x-ms-date"], "authorization": f"SharedKey {NAME}:{signature}"}

    @property
    def planned(self) -> int:
        """How many requests ran by a cached plan."""
        return self.service.plans.hits

    async def ask(
        self,
        method: str,
        path: str = ENTITY,
        query: str | None = None,
        body: Any = b"",
        headers: Mapping[str, str] | None = None,
        *,
        root: str = f"/{NAME}/",
        scheme: str = "http",
        client: str = "192.0.2.1",
        steady: bool = True,
    ) -> Answer:
        """Send a request, by SAS or, with an empty query, signed by Shared Key.

        Args:
            method: of the request.
            path: below the account.
            query: None for the account SAS of this world.
            body: bytes, or an object to be sent as JSON.
            headers: beside `HEAD`, or instead of its fields.
            root: the path of the account.
            scheme: of the connection.
            client: its address.
            steady: whether the server knows the steady fields, so that a plan can be found.
        """
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        query = self.sas() if query is None else query
        sent = {**HEAD, "content-length": str(len(payload)), **(headers or {})}
        if not query and "authorization" not in sent:
            sent |= self.shared_key(method, root + path, sent)
        request = Request(
            method, root + path, query, Fields.of(sent) if steady else sent, payload, scheme, client, "id"
        )
        response = self.service.respond(request)
        self.authenticated = request.authenticated
        if not isinstance(response, Response):
            return _answer(request, await response)
        self.immediate += 1
        return _answer(request, response)

    async def prepare(self) -> "World":
        """Make the table `orders` with one entity."""
        assert (await self.ask("POST", "Tables", body={"TableName": "orders"})).status == 201
        assert (await self.ask("PUT", body={"A": 1})).status == 204
        return self


def _answer(request: Request, response: Response) -> Answer:
    return Answer(
        response.status,
        tuple(response.fields()),
        response.body,
        response.error_code,
        f"{request.record} {request.authenticated}",
    )
