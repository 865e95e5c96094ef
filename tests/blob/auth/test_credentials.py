"""The string-to-sign of blobs: the SDK signs the same one.

Of requests without credentials: what is public, how the others are rejected, and what a stranger costs.
"""

from base64 import b64encode

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.rest import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import EMULATORS
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant, Requirement, authorize
from lazulite.auth.shared_key import SharedKey, parse_http_date
from lazulite.blob.auth import requirements as may
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS, BlobPublicAccess, blob_string_to_sign
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import resolve_version
from lazulite.records.catalog import StoredAccessPolicy

ACCOUNT = Account("acct", (b"first", b"second"))
DATE = "Tue, 01 Jan 2030 00:00:00 GMT"
NOW = parse_http_date(DATE)
NAME = st.text("abcxyz019_", min_size=1, max_size=8)

NEW, OLD = "2019-12-12", "2019-12-11"

REJECTED = [
    may.WRITE,
    may.CREATE_OR_WRITE,
    may.DELETE,
    may.READ_TAGS,
    may.FIND,
    may.OWNER,
    may.ACCOUNT_INFORMATION,
    may.CONTAINER_BATCH,
    Requirement("o", ("r",), ("r",)),
]


def is_signed(request: Request) -> bool:
    header, address = request.headers["authorization"], Addressing().locate(request)
    try:
        SharedKey(ACCOUNT, header, address, None, blob_string_to_sign).check(request, NOW)
    except ServiceError:
        return False
    return True


def sent_by_the_sdk(metadata: dict[str, str], query: str = "") -> Request:
    url = f"http://localhost/acct/c/d/%C3%A9%20b{query}"
    headers = {"x-ms-version": "2026-10-06", "x-ms-date": DATE, "x-ms-blob-type": "BlockBlob", "Content-Length": "0"}
    request = HttpRequest("PUT", url, headers=headers | {f"x-ms-meta-{name}": text for name, text in metadata.items()})
    policy = SharedKeyCredentialPolicy("acct", b64encode(b"second").decode())  # type: ignore[no-untyped-call]  # the SDK
    policy.on_request(  # type: ignore[no-untyped-call]  # the SDK
        PipelineRequest(request, PipelineContext(None))
    )
    found = {name.lower(): value for name, value in request.headers.items()}
    return Request("PUT", "/acct/c/d/%C3%A9%20b", query.removeprefix("?"), found)


@given(st.dictionaries(NAME, st.text("ab ", min_size=1).map(str.strip), max_size=6))
def test_the_sdk_signs_the_same(metadata: dict[str, str]) -> None:
    request = sent_by_the_sdk(
        {name.lower(): text or "x" for name, text in metadata.items()}, "?comp=metadata&timeout=5"
    )
    assert is_signed(request)
    request.path += "1"
    assert not is_signed(request)


@pytest.mark.parametrize(("version", "full"), [("2009-09-18", False), ("2009-09-19", True), ("", True)])
def test_old_versions_sign_what_shared_key_lite_does(version: str, full: bool) -> None:
    headers = {"x-ms-date": DATE, "range": "bytes=0-1"} | ({"x-ms-version": version} if version else {})
    request = Request("GET", "/acct/c/b", "comp=metadata&timeout=5", headers)
    lite = blob_string_to_sign("SharedKeyLite", request, "acct", request.path, "metadata")
    found = blob_string_to_sign("SharedKey", request, "acct", request.path, "metadata")
    assert (found == lite) is not full
    assert ("bytes=0-1" in found) is full


class World:
    """An authenticator of blobs, with two public containers."""

    def __init__(self) -> None:
        self.levels = {("acct", "photos"): "blob", ("acct", "site"): "container", ("acct", "$root"): "blob"}
        self.looked_up: list[tuple[str, str]] = []
        accounts = [Account("acct", (b"key",), switches=EMULATORS), Account("strict", (b"key",))]
        self.authenticator = Authenticator(
            AccountDirectory({account.name: account for account in accounts}),
            lambda: 0,
            self._policies,
            BLOB_CREDENTIALS,
            public_access=BlobPublicAccess(self._level_of),
        )

    async def _policies(self, account: str, container: str) -> tuple[StoredAccessPolicy, ...]:
        raise AssertionError((account, container))

    async def _level_of(self, account: str, container: str) -> str:
        self.looked_up.append((account, container))
        return self.levels.get((account, container), "")

    async def ask(
        self, path: str, query: str = "", method: str = "GET", version: str = NEW, account: str = "acct"
    ) -> Grant:
        headers = {"x-ms-version": version} if version else {}
        request = Request(method, f"/{account}/{path}", query, headers)
        address = Addressing().locate(request)
        parameters = parse_query_string(query)
        found = self.authenticator.account(address)
        resolved = resolve_version(headers, parameters)
        return (await self.authenticator.authenticate(found, request, address, parameters, resolved)).grant

    async def rejection(
        self, path: str, query: str = "", method: str = "GET", version: str = NEW, account: str = "acct"
    ) -> str:
        with pytest.raises(ServiceError) as caught:
            await self.ask(path, query, method, version, account)
        return caught.value.code


@pytest.fixture
def world() -> World:
    return World()


def outcome(grant: Grant, requirement: Requirement, resource: str) -> str:
    try:
        authorize(grant, requirement, resource)
    except ServiceError as error:
        return error.code
    return ""


@pytest.mark.parametrize(("container", "listed"), [("photos", False), ("site", True)])
async def test_the_level_tells_what_is_public(world: World, container: str, listed: bool) -> None:
    grant = await world.ask(f"{container}/a/b")
    assert outcome(grant, may.READ, f"{container}/a/b") == ""
    rejected = "" if listed else "NoAuthenticationInformation"
    assert outcome(grant, may.LIST, container) == rejected
    assert outcome(grant, may.READ_CONTAINER, container) == rejected
    assert outcome(grant, may.READ, "other/a") == "NoAuthenticationInformation"
    for requirement in REJECTED:
        assert outcome(grant, requirement, f"{container}/a/b") == "NoAuthenticationInformation"


@pytest.mark.parametrize(
    ("version", "code"), [(NEW, "NoAuthenticationInformation"), (OLD, "ResourceNotFound"), ("", "ResourceNotFound")]
)
async def test_the_version_tells_the_code(world: World, version: str, code: str) -> None:
    assert await world.rejection("private/b", version=version) == code
    assert await world.rejection("photos/b", method="PUT", version=version) == code
    assert await world.rejection("", "comp=list", version=version) == code
    assert outcome(await world.ask("photos/b", version=version), may.LIST, "photos") == code


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
async def test_a_write_looks_nothing_up(world: World, method: str) -> None:
    await world.rejection("photos/b", method=method)
    assert world.looked_up == []


async def test_the_root_looks_nothing_up(world: World) -> None:
    assert await world.rejection("") == "InvalidQueryParameterValue"
    assert await world.rejection("", "comp=list") == "NoAuthenticationInformation"
    assert await world.rejection("x" * 64 + "/b") == "NoAuthenticationInformation"
    assert world.looked_up == []


async def test_a_blob_of_the_root_container(world: World) -> None:
    assert outcome(await world.ask("b"), may.READ, "$root/b") == ""
    assert await world.rejection("b", "restype=container&comp=list") == "NoAuthenticationInformation"
    assert world.looked_up == [("acct", "$root"), ("acct", "b")]


async def test_an_account_without_public_containers(world: World) -> None:
    world.levels["strict", "photos"] = "container"
    for path in ("photos/b", "private/b", "missing"):
        assert await world.rejection(path, account="strict") == "PublicAccessNotPermitted"
    assert await world.rejection("photos/b", method="PUT", account="strict") == "NoAuthenticationInformation"
    assert await world.rejection("", "comp=list", account="strict") == "NoAuthenticationInformation"
    assert world.looked_up == []


async def test_bad_credentials_are_not_public_access(world: World) -> None:
    assert await world.rejection("photos/b", "sv=2019-12-12&sr=b&sp=r&se=2030-01-01&sig=x") == "AuthenticationFailed"
    assert await world.rejection("photos/b", "sig=x") == "AuthenticationFailed"
    assert world.looked_up == []
