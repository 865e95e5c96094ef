"""Requests without credentials: what is public, how the others are rejected, and what a stranger costs."""

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.switches import EMULATORS
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant, Requirement, authorize
from lazulite.blob.auth import requirements as may
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.blob.auth.public_access import BlobPublicAccess
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import resolve_version
from lazulite.records.catalog import StoredAccessPolicy

NEW, OLD = "2019-12-12", "2019-12-11"


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
