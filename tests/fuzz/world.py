"""The service that the fuzzers talk to: in process, the same for every input.

Invariants: clock, randomness and engine are fixed; after each input the engine is put back, with a new service on it
where something was written. A rejected request and a reading one change nothing that anybody could see.
"""

import asyncio
import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.shared_key import Canonicalize
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.key_encoding import space_prefix
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, Service, response_of
from lazulite.protocol.query_string import parse_query_string
from lazulite.records.spaces import COUNTERS
from lazulite.service.definition import ServiceDependencies
from lazulite.table.credentials import table_string_to_sign
from lazulite.table.service import TableService

from .issuer import authentication
from .memory import MemoryEngine
from .oracles import check_answer, read_parts, require

ACCOUNT = DEVELOPMENT_ACCOUNT.name
ROOT = f"/{ACCOUNT}/"
NOW = 134_116_992_000_000_000
"""2026-01-01T00:00:00Z in ticks."""
NOW_SECONDS = 1_767_225_600
"""The same since 1970."""
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
VERSION = "2019-02-02"
PLAIN_HEADERS = {
    "host": "127.0.0.1:10002",
    "accept": "application/json;odata=minimalmetadata",
    "content-type": "application/json",
    "x-ms-date": DATE,
    "x-ms-version": VERSION,
}
TYPES_ROW = {
    "S": "it's",
    "E": "",
    "T": True,
    "I": 5,
    "L@odata.type": "Edm.Int64",
    "L": "12345678901",
    "D": 1.5,
    "N@odata.type": "Edm.Double",
    "N": "NaN",
    "W@odata.type": "Edm.DateTime",
    "W": "2008-07-10T00:00:00.1234567Z",
    "G@odata.type": "Edm.Guid",
    "G": "6b3a2b2e-0aaf-4222-8333-4444555566ff",
    "B@odata.type": "Edm.Binary",
    "B": "Cgs=",
    "é": "e",
}
KEYS = [("p", "r"), ("p", "s"), ("p", ""), ("", ""), ("q'%", "\U0001f600"), ("\ufb01", "\uffef"), ("z", "r 1+2")]
"""Partition and row of what the table holds."""


@dataclass(frozen=True)
class Exchange:
    """A request, what came of it, and whether it wrote."""

    request: Request
    response: Response
    wrote: bool

    @property
    def status(self) -> int:
        return self.response.status

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.response.fields() if key.lower() == name.lower()), None)


class World:
    """A service with a few tables. `table` names the one with rows, `Empty` is another."""

    table = "Fuzz"
    reading = frozenset({"GET", "HEAD", "OPTIONS"})
    """The methods that change nothing."""
    transactional = True
    """Whether a batch is done wholly or not at all."""
    hidden: Sequence[int] = (COUNTERS,)
    """The spaces that no request shows: a number may be taken and never used."""
    headers: Mapping[str, str] = PLAIN_HEADERS
    string_to_sign: Canonicalize = staticmethod(table_string_to_sign)
    make: Callable[[ServiceDependencies], Service] = TableService

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = MemoryEngine(lambda: NOW)
        self.contents = ContentMemory()
        self.renew()
        self.fill()
        self._start = self.engine.state()
        self.renew()

    def fill(self) -> None:
        """Make what is there before the first input."""
        for name in (self.table, "Empty"):
            self.expect(201, "POST", "Tables", body=json.dumps({"TableName": name}).encode())
        for partition, row in KEYS:
            entity = {"PartitionKey": partition, "RowKey": row, **TYPES_ROW}
            self.expect(201, "POST", self.table, body=json.dumps(entity).encode())
        self.expect(201, "POST", self.table, body=b'{"PartitionKey":"p","RowKey":"x","S":5,"I":"five"}')
        policy = (
            "<SignedIdentifier><Id>policy</Id><AccessPolicy><Expiry>2100-01-01</Expiry><Permission>r</Permission>"
            "</AccessPolicy></SignedIdentifier>"
        )
        acl = f"<SignedIdentifiers>{policy}</SignedIdentifiers>".encode()
        self.expect(204, "PUT", self.table, "comp=acl", acl)

    def expect(self, status: int, method: str, path: str, query: str = "", body: bytes = b"") -> None:
        found = self.ask(method, ROOT + path, query, body=body)
        require(found.status == status, f"the world can be made: {found.response}")

    def renew(self) -> None:
        """Put a new service on the engine, which caches nothing."""
        dependencies = ServiceDependencies(
            engine=self.engine,
            contents=self.contents,
            accounts=AccountDirectory({}, None),
            clock=lambda: NOW,
            monotonic=lambda: 0.0,
            random=Random(0),
            bearer=authentication(lambda: NOW),
        )
        self.service = type(self).make(dependencies)

    def reset(self) -> None:
        """Forget what the last input did."""
        if self.engine.writes:
            self.engine.restore(self._start)
            self.renew()

    def close(self) -> None:
        """Let go of the event loop."""
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        signed: bool = True,
    ) -> Exchange:
        """Send a request, by Shared Key unless it has an Authorization or is not to be signed; check the answer."""
        fields = {**self.headers, **(headers or {})}
        request = Request(method, path, query, fields, body, client="192.0.2.7", id="fuzz")
        if signed and "authorization" not in fields:
            fields["authorization"] = self._authorization(request)
        before, writes = self.engine.state(), self.engine.writes
        response = self.loop.run_until_complete(self.handle(request))
        self.check(request, response)
        wrote = self.engine.writes != writes and self.visible(self.engine.state().rows) != self.visible(before.rows)
        if wrote:
            require(response.status < 300, f"a rejected request changes nothing: {response.status}")
            require(request.method not in self.reading, f"a {request.method} changes nothing")
            if self.transactional and dict(response.fields()).get("Content-Type", "").startswith("multipart/mixed"):
                parts = read_parts(response)
                require(all(part.status < 300 for part in parts), "a rejected batch changes nothing")
        return Exchange(request, response, wrote)

    def _authorization(self, request: Request) -> str:
        try:
            comp = parse_query_string(request.query).get("comp")
        except ServiceError:
            comp = None
        text = self.string_to_sign("SharedKey", request, ACCOUNT, request.path, comp)
        digest = hmac.digest(DEVELOPMENT_ACCOUNT.keys[0], text.encode("latin-1", "replace"), "sha256")
        return f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"

    async def handle(self, request: Request) -> Response:
        """Return the response to a request."""
        return await response_of(self.service, request)

    def check(self, request: Request, response: Response) -> None:
        """Hold a response against the rules for every response."""
        check_answer(response, head=request.method == "HEAD")

    def visible(self, rows: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Return the rows that a request can show."""
        hidden = tuple(space_prefix(space) for space in self.hidden)
        return {key: value for key, value in rows.items() if not key.startswith(hidden)}
