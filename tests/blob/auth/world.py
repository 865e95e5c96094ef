"""The Blob service in memory, asked with credentials of every kind."""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from xml.etree import ElementTree as ET

from azure.storage.blob import UserDelegationKey

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import EMULATORS
from lazulite.auth.bearer.authentication import BearerAuthentication
from lazulite.auth.bearer.jwks import KeySet, parse_jwks
from lazulite.auth.bearer.rules import BearerConventions, BearerRules
from lazulite.auth.sas import parse_sas_date
from lazulite.blob.auth.credentials import blob_string_to_sign
from lazulite.blob.service import BlobService
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.message import Request, Response, response_of
from lazulite.service.definition import ServiceDependencies
from tests.tokens import ISSUER, jwks, signing_key

START = datetime(2030, 1, 1, tzinfo=UTC)
EXPIRY = START + timedelta(hours=1)
VERSION = "2026-10-06"
SIGNING = signing_key("one")
NAME, KEY = "acct", b64encode(b"first").decode()
USER = {"oid": "00000000-0000-0000-0000-00000000000a", "tid": "00000000-0000-0000-0000-00000000000b"}
READER, CONTRIBUTOR, OWNER = (f"Storage Blob Data {role}" for role in ("Reader", "Contributor", "Owner"))
DELEGATOR = "Storage Blob Delegator"
EPOCH_TICKS = parse_sas_date("1970-01-01")


class _Keys:
    """The issuer's keys."""

    def __init__(self) -> None:
        self._keys = parse_jwks(jwks(SIGNING))

    async def current(self) -> KeySet:
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:
        return known


class World:
    """The service.

    Attributes:
        now: the time.
        reads: the rows that the service read.
    """

    def __init__(self, engine: RocksEngine) -> None:
        self.now = START
        accounts = [Account(NAME, (b"first", b"second"), switches=EMULATORS), Account("strict", (b"first",))]
        self.service = BlobService(
            ServiceDependencies(
                engine=engine,
                accounts=AccountDirectory({account.name: account for account in accounts}),
                contents=ContentMemory(),
                clock=self._ticks,
                bearer=self._bearer,
            )
        )

    def _ticks(self) -> int:
        return EPOCH_TICKS + int(self.now.timestamp() * TICKS_PER_SECOND)

    def _bearer(self, conventions: BearerConventions) -> BearerAuthentication:
        return BearerAuthentication(conventions, BearerRules(ISSUER), _Keys(), self._ticks, allow_http=False)

    async def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        version: str = VERSION,
        account: str = NAME,
    ) -> Response:
        """Send a request without credentials of its own, by HTTPS."""
        sent = {"x-ms-version": version} if version else {}
        sent |= headers or {}
        if body:
            sent["content-length"] = str(len(body))
        return await response_of(
            self.service, Request(method, f"/{account}/{path}", query, sent, body, "https", "10.0.0.1")
        )

    async def code(self, method: str, path: str, query: str = "", **more: Any) -> str:
        """Send a request; return its code, or the status if it succeeds."""
        response = await self.ask(method, path, query, **more)
        return response.error_code or str(response.status)

    async def owner(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Send a request signed with the account's key; it has to succeed."""
        sent = {"x-ms-version": VERSION, "x-ms-date": format_datetime(self.now, usegmt=True), **(headers or {})}
        if body:
            sent["content-length"] = str(len(body))
        full = f"/{NAME}/{path}"
        text = blob_string_to_sign("SharedKey", Request(method, full, query, sent), NAME, full, None)
        signature = Account(NAME, (b"first",)).signers[0].sign(text.encode()).decode()
        sent["authorization"] = f"SharedKey {NAME}:{signature}"
        response = await response_of(self.service, Request(method, full, query, sent, body))
        assert response.status < 300, (response.error_code, response.body)
        return response

    async def put(self, path: str, body: bytes = b"x", **headers: str) -> None:
        """Put a block blob."""
        await self.owner("PUT", path, "", {"x-ms-blob-type": "BlockBlob", **headers}, body)

    def bearer(self, *roles: str, **claims: str) -> dict[str, str]:
        """Return the header of a token."""
        given: dict[str, Any] = {**USER, **claims, "roles": list(roles)}
        return {"authorization": f"Bearer {SIGNING.token(now=self.now.timestamp(), **given)}"}

    async def delegation_key(self, *roles: str) -> UserDelegationKey:
        """Return a user delegation key for a user with roles."""
        expiry = EXPIRY.isoformat().replace("+00:00", "Z")
        body = f"<KeyInfo><Start>2030-01-01T00:00:00Z</Start><Expiry>{expiry}</Expiry></KeyInfo>".encode()
        query = "restype=service&comp=userdelegationkey"
        response = await self.ask("POST", "", query, self.bearer(*roles), body)
        assert response.status == 200, response.body
        found = {leaf.tag: leaf.text or "" for leaf in ET.fromstring(response.body.decode("utf-8-sig"))}
        key = UserDelegationKey()  # type: ignore[no-untyped-call]  # the SDK
        key.signed_oid, key.signed_tid = found["SignedOid"], found["SignedTid"]
        key.signed_start, key.signed_expiry = found["SignedStart"], found["SignedExpiry"]
        key.signed_service, key.signed_version = found["SignedService"], found["SignedVersion"]
        key.signed_delegated_user_tid = ""
        key.value = found["Value"]
        return key


@asynccontextmanager
async def opened() -> AsyncIterator[World]:
    """Open a service with the containers `box`, `photos` (public blobs) and `site` (public)."""
    engine = RocksEngine.open(None, lambda: EPOCH_TICKS)
    world = World(engine)
    await world.service.start()
    for name, level in (("box", ""), ("photos", "blob"), ("site", "container")):
        headers = {"x-ms-blob-public-access": level} if level else {}
        await world.owner("PUT", name, "restype=container", headers)
        await world.put(f"{name}/a/b.txt", b"hello", **{"x-ms-blob-content-type": "text/plain"})
    try:
        yield world
    finally:
        await engine.close()
