"""Requests with plans and without: the same responses, field by field, and the same facts in the logs.

Two services with the same clock and the same random numbers get the same requests. One of them caches plans. Whatever
clients do to blobs, containers, the account and its properties in between, a plan must not change a response.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.accounts.switches import Switches
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.blob.auth.credentials import blob_string_to_sign
from lazulite.blob.auth.sas import BlobSas, sign_blob_sas
from lazulite.blob.content.crc64 import crc64, crc64_to_bytes
from lazulite.blob.service import BlobService
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Clock, Engine
from lazulite.protocol.clock import TICKS_PER_SECOND, format_http_date
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, response_of
from lazulite.service.definition import ServiceDependencies
from tests.fuzz.memory import MemoryEngine

NAME = "acct"
NOW = 13_569_465_600 * TICKS_PER_SECOND
"""2031-01-01, in ticks."""
HEAD = {"host": "h", "accept": "*/*", "user-agent": "test"}
VERSION = "2021-12-02"
KEYS = ((b"first", b"second"), (b"third", b"second"), (b"fourth", b"fifth"))
START, EXPIRY = "2030-12-31", "2031-01-09"
LEASES = ("11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555")
BODIES = (b"x", b"", b"0123456789" * 100, b"0123456789" * 2000)
BLOBS = ("a", "folder/b.txt", "x y", "\xe9/%2e", ".odd", "end.")
ENCODED = (
    "x y",
    "a%",
    "%2e",
    "a%2Fb",
    "\xe9\xbd",
    "\u65e5\u672c/\u8a9e.txt",
    "\u0939",
    "it's",
    "a(1);b",
    "a?b#c",
    "\xa0",
)
"""Names that a path has percent-encoded."""
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})


class Answer(NamedTuple):
    """What a client and the logs see of a response."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    record: str

    def field(self, name: str) -> str:
        return dict(self.fields)[name]


class Question(NamedTuple):
    """A request, without its credentials."""

    method: str
    path: str
    query: str = ""
    headers: Headers = NO_HEADERS
    body: bytes = b""
    credentials: str = "account"
    version: str = VERSION


class _Service(BlobService):
    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(dependencies)
        self.garbage = self._context.garbage


class World:
    """The Blob service. Two of them have the same ids.

    Args:
        open_engine: opens the engine.

    Attributes:
        host: of the account; "" for path style.
    """

    def __init__(self, open_engine: Callable[[Clock], Engine] = MemoryEngine) -> None:
        self.now = NOW
        self.host = ""
        self.engine = open_engine(lambda: self.now)
        self.contents = ContentMemory()
        self.accounts = AccountDirectory({})
        self.switch(Switches())
        self.service = _Service(
            ServiceDependencies(
                engine=self.engine,
                accounts=self.accounts,
                contents=self.contents,
                clock=lambda: self.now,
                random=Random(1),
            )
        )
        self.planned: Counter[str] = Counter()

    def switch(self, switches: Switches, keys: tuple[bytes, ...] = KEYS[0]) -> None:
        """Change the account."""
        self.accounts.replace({NAME: StoredAccount(keys, switches=switches)})

    @property
    def account(self) -> Account:
        account = self.accounts.get(NAME)
        assert account is not None
        return account

    async def ask(self, question: Question, *, steady: bool) -> Answer:
        """Send a request; a plan can be found only if it is `steady`."""
        method, path, query, headers, body, _, version = question
        headers = {**HEAD, "x-ms-version": version, "content-length": str(len(body)), **headers}
        if self.host:
            headers["host"] = self.host
        if not version:
            del headers["x-ms-version"]
        signed = _sas(question.credentials)
        whole = "&".join(filter(None, (query, signed)))
        request = Request(method, f"{'' if self.host else '/' + NAME}/{quote(path)}", whole, headers, body, id="id")
        if question.credentials == "key":
            headers["x-ms-date"] = format_http_date(self.now)
            text = blob_string_to_sign("SharedKey", request, NAME, request.path, _component(query))
            signature = self.account.signers[0].sign(text.encode()).decode()
            headers["authorization"] = f"SharedKey {NAME}:{signature}"
        return await self.respond(request, steady=steady)

    async def respond(self, request: Request, *, steady: bool) -> Answer:
        """Respond to a request; see `ask`."""
        if steady:
            request.headers = Fields.of(request.headers)
        hits = self.service.plans.hits
        response = await response_of(self.service, request)
        self.planned[request.record.operation] += self.service.plans.hits - hits
        content = response.body
        if response.content is not None:
            content = b"".join([chunk async for chunk in response.content.chunks()])
            await response.content.aclose()
        record = f"{request.record} {request.authenticated}"
        return Answer(response.status, tuple(response.fields()), content, record)


def _component(query: str) -> str | None:
    return next((pair[5:] for pair in query.split("&") if pair.startswith("comp=")), None)


def _signed_by(keys: tuple[bytes, ...]) -> Account:
    return Account(NAME, keys)


def _blob_sas(blob: str, permission: str) -> BlobSas:
    kind = "b" if blob else "c"
    return BlobSas(kind=kind, container="docs", blob=blob, permission=permission, start=START, expiry=EXPIRY)


def _sas(credentials: str) -> str:
    """Return the query of credentials: they are signed once and for all, so a rotated key ends them."""
    account = _signed_by(KEYS[0])
    permissions = {"account": "rwdlacuptxyfi", "read": "r", "create": "rc"}
    match credentials:
        case "account" | "read" | "create":
            allowed = permissions[credentials]
            sas = AccountSas(services="b", resource_types="sco", permission=allowed, start=START, expiry=EXPIRY)
            return sign_account_sas(account, sas)
        case "container" | "blob":
            blob = "a" if credentials == "blob" else ""
            return sign_blob_sas(account, _blob_sas(blob, "rwd"))
        case "styled":
            fields = ("no-store", "", "", "", "text/x")
            return sign_blob_sas(account, replace(_blob_sas("", "r"), version=VERSION, overrides=fields))
        case "policy":
            return sign_blob_sas(account, BlobSas(kind="c", container="docs", policy_id="p"))
        case _:
            return ""


class Both:
    """Two worlds, to which the same requests go: one with plans and one without."""

    def __init__(self, *worlds: World) -> None:
        self.worlds = worlds or (World(), World())
        self.switches = Switches()
        self.etags = ['"0x8D4BCC2E4835CD0"']
        self.snapshots: list[str] = []

    @property
    def planned(self) -> Counter[str]:
        return self.worlds[0].planned

    async def ask(self, *question: object, **more: object) -> Answer:
        """Send a request to both, given the fields of a `Question`."""
        asked = Question(*question, **more)  # type: ignore[arg-type]  # The fields of a tuple.
        planned, other = [await world.ask(asked, steady=world is self.worlds[0]) for world in self.worlds]
        for world in self.worlds:
            await world.service.garbage.wait_until_idle()  # Its commits take timestamps, too.
        assert planned == other, asked
        fields = dict(planned.fields)
        if "ETag" in fields:
            self.etags = [*self.etags[-3:], fields["ETag"]]
        if "x-ms-snapshot" in fields:
            self.snapshots = [*self.snapshots[-3:], fields["x-ms-snapshot"]]
        return planned

    async def end(self) -> None:
        for world in self.worlds:
            await world.service.garbage.wait_until_idle()
            await world.engine.close()


async def both_worlds() -> Both:
    both = Both()
    assert (await both.ask("PUT", "docs", "restype=container")).status == 201
    return both


@pytest.fixture(name="both")
async def _both() -> AsyncIterator[Both]:
    both = await both_worlds()
    yield both
    await both.end()


def put(blob: str = "a", body: bytes = b"x", credentials: str = "account", **headers: str) -> Question:
    """Return a Put Blob of a block blob; underscores in the names of headers stand for hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Question("PUT", f"docs/{blob}", "", {"x-ms-blob-type": "BlockBlob", **named}, body, credentials)


def checksums(body: bytes) -> st.SearchStrategy[Headers]:
    """Return the headers with checksums that a write may have."""
    md5, other = (b64encode(hashlib.md5(each).digest()).decode() for each in (body, b"other"))
    crc = b64encode(crc64_to_bytes(crc64(body))).decode()
    return st.sampled_from(
        [
            *({}, {"content-md5": md5}, {"content-md5": other}, {"x-ms-blob-content-md5": md5}, {"content-md5": "x"}),
            *({"x-ms-content-crc64": crc}, {"x-ms-content-crc64": "AAAAAAAAAAA="}, {"x-ms-content-crc64": "x"}),
            {"content-md5": md5, "x-ms-content-crc64": crc},
        ]
    )


CONDITIONS = st.sampled_from(
    [{}] * 6
    + [
        {"if-none-match": "*"},
        {"if-match": "*"},
        {"if-match": "ETAG"},
        {"if-none-match": "ETAG"},
        {"if-match": '"0x1"'},
    ]
    + [{"if-modified-since": "Wed, 01 Jan 2031 00:00:01 GMT"}, {"if-unmodified-since": "Wed, 01 Jan 2031 00:00:09 GMT"}]
    + [{"x-ms-lease-id": lease} for lease in LEASES]
    + [{"x-ms-lease-id": "x"}, {"x-ms-if-tags": "\"t\" = '1'"}]
)
RANGES = st.sampled_from(
    [{}] * 4
    + [{"range": "bytes=0-3"}, {"x-ms-range": "bytes=2-"}, {"range": "bytes=900-99999"}, {"range": "bytes=99999-"}]
    + [{"range": "x"}, {"range": "bytes=0-3", "x-ms-range": "bytes=5-6"}]
    + [{"x-ms-range": "bytes=0-3", "x-ms-range-get-content-md5": "true"}, {"x-ms-range-get-content-crc64": "true"}]
    + [{"x-ms-structured-body": "XSM/1.0; properties=crc64"}, {"x-ms-structured-body": "x"}]
)
STORED = st.sampled_from(
    [{}] * 5
    + [{"x-ms-meta-a": "1"}, {"x-ms-meta-A": "2"}, {"content-type": "text/plain"}, {"x-ms-tags": "t=1"}]
    + [{"x-ms-access-tier": "Archive"}, {"x-ms-access-tier": "Cool"}, {"x-ms-encryption-scope": "s"}]
    + [{"x-ms-blob-type": "AppendBlob"}, {"x-ms-blob-type": "x"}, {"x-ms-meta-a": "é\t"}]
)
CREDENTIALS = st.sampled_from(
    ["account"] * 4 + ["key"] * 2 + ["container"] * 2 + ["blob", "read", "create", "styled", "policy", "none"]
)
VERSIONS = st.sampled_from([VERSION] * 8 + ["2019-02-02", "2012-02-12", "2009-09-19", "", "x"])
NAMES = st.sampled_from(["a"] * 4 + list(BLOBS))


@st.composite
def writes(draw: st.DrawFn) -> Question:
    body = draw(st.sampled_from(BODIES))
    headers = {"x-ms-blob-type": "BlockBlob", **draw(checksums(body)), **draw(CONDITIONS), **draw(STORED)}
    query = draw(st.sampled_from([""] * 6 + ["snapshot=x", "timeout=30"]))
    return Question("PUT", f"docs/{draw(NAMES)}", query, headers, body, draw(CREDENTIALS), draw(VERSIONS))


@st.composite
def blocks(draw: st.DrawFn) -> Question:
    body = draw(st.sampled_from(BODIES))
    id_ = quote(b64encode(draw(st.sampled_from([b"1", b"2", b"long", b"\xff\xfb"]))).decode(), safe="")
    odd = [f"blockid={id_}&comp=block", f"comp=block&BlockId={id_}", f"comp=block&blockid={id_}&blockid=MQ=="]
    odd += ["comp=block", "comp=block&blockid=", "comp=block&blockid=%%", "comp=block&blockid=%C3%A9"]
    query = draw(st.sampled_from([f"comp=block&blockid={id_}"] * 12 + odd))
    headers = {**draw(checksums(body)), **draw(CONDITIONS)}
    return Question("PUT", f"docs/{draw(NAMES)}", query, headers, body, draw(CREDENTIALS), draw(VERSIONS))


@st.composite
def block_lists(draw: st.DrawFn) -> Question:
    names = draw(st.lists(st.sampled_from(["Latest", "Uncommitted", "Committed"]), max_size=2))
    blocks = "".join(f"<{name}>{draw(st.sampled_from(['MQ==', 'bG9uZw==', 'x']))}</{name}>" for name in names)
    body = f"<BlockList>{blocks}</BlockList>".encode()
    headers = {**draw(checksums(body)), **draw(CONDITIONS), **draw(STORED)}
    query = draw(st.sampled_from(["comp=blocklist"] * 6 + ["comp=blocklist&snapshot=x", "comp=blocklist&timeout=30"]))
    return Question("PUT", f"docs/{draw(NAMES)}", query, headers, body, draw(CREDENTIALS), draw(VERSIONS))


@st.composite
def reads(draw: st.DrawFn) -> Question:
    query = draw(st.sampled_from([""] * 8 + ["snapshot=SNAPSHOT", "versionid=SNAPSHOT", "snapshot=x"]))
    headers = {**draw(RANGES), **draw(CONDITIONS)}
    method = draw(st.sampled_from(["GET", "HEAD"]))
    return Question(method, f"docs/{draw(NAMES)}", query, headers, b"", draw(CREDENTIALS), draw(VERSIONS))


def account_properties(text: str) -> Question:
    body = f"<StorageServiceProperties>{text}</StorageServiceProperties>".encode()
    return Question("PUT", "", "restype=service&comp=properties", {}, body)


RETENTION = "<DeleteRetentionPolicy><Enabled>{}</DeleteRetentionPolicy>"
_LEASE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": LEASES[0]}
_RULE = "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds>"
_TAGS = b"<Tags><TagSet><Tag><Key>t</Key><Value>1</Value></Tag></TagSet></Tags>"
_POLICY = (
    "<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Expiry>2031-01-09</Expiry><Permission>{}</Permission>"
    "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)
CHANGES = st.sampled_from(
    [
        Question("PUT", "docs/a", "comp=lease", _LEASE),
        Question("PUT", "docs/a", "comp=lease", {**_LEASE, "x-ms-lease-duration": "-1"}),
        Question("PUT", "docs/a", "comp=lease", {"x-ms-lease-action": "release", "x-ms-lease-id": LEASES[0]}),
        Question("PUT", "docs/a", "comp=snapshot"),
        Question("PUT", "docs/a", "comp=tier", {"x-ms-access-tier": "Archive"}),
        Question("PUT", "docs/a", "comp=tier", {"x-ms-access-tier": "Hot"}),
        Question("PUT", "docs/a", "comp=tags", {}, _TAGS),
        Question("PUT", "docs/a", "comp=metadata", {"x-ms-meta-b": "2"}),
        Question("PUT", "docs/a", "comp=blocklist", {}, b"<BlockList><Latest>MQ==</Latest></BlockList>"),
        Question("DELETE", "docs/a", "", {"x-ms-delete-snapshots": "include"}),
        Question("DELETE", "docs", "restype=container"),
        Question("PUT", "docs", "restype=container"),
        Question("PUT", "docs", "restype=container&comp=acl", {"x-ms-blob-public-access": "blob"}, credentials="key"),
        Question("PUT", "docs", "restype=container&comp=acl", {}, _POLICY.format("rw").encode(), "key"),
        Question("PUT", "docs", "restype=container&comp=acl", {}, _POLICY.format("d").encode(), "key"),
        account_properties(RETENTION.format("true</Enabled><Days>1</Days>")),
        account_properties(RETENTION.format("false</Enabled>")),
        account_properties("<DefaultServiceVersion>2019-12-12</DefaultServiceVersion>"),
        account_properties("<DefaultServiceVersion>2012-02-12</DefaultServiceVersion>"),
        account_properties(f"<Cors><CorsRule>{_RULE}<AllowedHeaders/><ExposedHeaders>*</ExposedHeaders></CorsRule></Cors>"),
        Switches(versioning=True, public_access=True),
        Switches(public_access=True),
        Switches(),
        KEYS[0],
        KEYS[1],
        KEYS[2],
        1,
        20 * TICKS_PER_SECOND,
        TICKS_PER_SECOND * 3600 * 24,
    ]
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.integers(1, 4), writes() | reads() | blocks() | block_lists() | CHANGES | st.just(put())),
    min_size=5,
    max_size=25,
)


async def change(both: Both, step: object) -> None:
    """Send a request, or make another change."""
    if isinstance(step, Question):
        headers = {name: text.replace("ETAG", both.etags[-1]) for name, text in step.headers.items()}
        shown = both.snapshots[-1] if both.snapshots else "2031-01-01T00:00:00.0000000Z"
        await both.ask(*step._replace(headers=headers, query=step.query.replace("SNAPSHOT", shown)))
    if isinstance(step, Switches):
        both.switches = step
    for world in both.worlds:
        world.now += step if isinstance(step, int) else TICKS_PER_SECOND // 1000
        if isinstance(step, Switches):
            world.switch(step)
        elif isinstance(step, tuple) and not isinstance(step, Question):
            world.switch(both.switches, step)


async def run(steps: Sequence[tuple[int, object]]) -> Counter[str]:
    """Send requests and make changes, each so many times; return how many of an operation ran by a cached plan."""
    both = await both_worlds()
    for times, step in steps:
        for _ in range(times):
            await change(both, step)
    await both.end()
    return both.planned


@given(STEPS)
@settings(max_examples=50, deadline=None)
def test_plans_change_no_response(steps: list[tuple[int, object]]) -> None:
    asyncio.run(run(steps))


async def test_requests_that_come_again_have_plans(both: Both) -> None:
    for number in range(5):
        name = f"folder/{number}.txt"
        md5 = b64encode(hashlib.md5(b"%d" % number).digest()).decode()
        for credentials in ("account", "key", "container"):
            await both.ask(*put(name, b"%d" % number, credentials, content_md5=md5))
            await both.ask("GET", f"docs/{name}", credentials=credentials)
            await both.ask("GET", f"docs/{name}", "", {"range": f"bytes=0-{number}"}, credentials=credentials)
            await both.ask("HEAD", f"docs/{name}", "", {"if-match": both.etags[-1]}, credentials=credentials)
            path, block = f"docs/blocks/{number}", f"MDA{number}"
            await both.ask("PUT", path, f"comp=block&blockid={block}", {}, b"x", credentials)
            blocks = f"<BlockList><Latest>{block}</Latest></BlockList>".encode()
            assert (await both.ask("PUT", path, "comp=blocklist", {}, blocks, credentials)).status == 201
    planned = {"PutBlob": 9, "GetBlob": 18, "GetBlobProperties": 9, "PutBlock": 9, "PutBlockList": 9}
    assert +both.planned == planned
    for number in range(5):
        unplanned = {"x-odd": str(number)}
        assert (await both.ask("GET", f"docs/folder/{number}.txt", "", unplanned)).body == b"%d" % number


@pytest.mark.parametrize("credentials", ["blob", "policy", "none"])
async def test_credentials_that_are_looked_up_or_name_a_blob_have_no_plan(both: Both, credentials: str) -> None:
    await both.ask("PUT", "docs", "restype=container&comp=acl", {"x-ms-blob-public-access": "blob"}, b"", "key")
    await both.ask(*put())
    both.planned.clear()
    for _ in range(4):
        await both.ask("GET", "docs/a", credentials=credentials)
    assert not +both.planned


async def test_a_request_without_a_version_has_no_plan(both: Both) -> None:
    await both.ask(*put())
    for _ in range(4):
        await both.ask("GET", "docs/a", credentials="key", version="")
    assert not both.planned["GetBlob"]


@pytest.mark.parametrize(
    "blob", [".odd", "a/.b", "end.", "a\\b", "\U0001f600", "x" * 1025, "\xe9" * 171, "/".join("x" * 255)]
)
async def test_a_name_of_an_unusual_spelling_has_no_plan(both: Both, blob: str) -> None:
    for _ in range(4):
        await both.ask(*put(blob))
        await both.ask("GET", f"docs/{blob}")
    assert not +both.planned


@pytest.mark.parametrize(
    "blob", ["a", "a/b.txt", "a//b", "a.b.c", "x" * 1024, "/".join("x" * 254), "a~_-=@:,+$!", *ENCODED]
)
async def test_a_name_of_a_usual_spelling_has_one(both: Both, blob: str) -> None:
    for _ in range(3):
        await both.ask(*put(blob))
    assert both.planned["PutBlob"] == 1
