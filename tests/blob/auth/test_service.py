"""Credentials at the service: overrides, bearer tokens, delegation, and what a stranger costs."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from azure.storage.blob import generate_account_sas, generate_blob_sas

from lazulite.protocol.message import Request, Response, response_of

from .world import CONTRIBUTOR, DELEGATOR, EXPIRY, KEY, NAME, OWNER, READER, VERSION, World, opened

BLOB, CONTAINER = "box/a/b.txt", "box"
PUT = {"x-ms-blob-type": "BlockBlob"}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


def blob_sas(permission: str, name: str = "a/b.txt", **more: Any) -> str:
    terms: dict[str, Any] = {"account_key": KEY, "permission": permission, "expiry": EXPIRY} | more
    return generate_blob_sas(NAME, CONTAINER, name, **terms)


def account_sas(permission: str, types: str = "sco", services: str = "b") -> str:
    return generate_account_sas(NAME, KEY, types, permission, EXPIRY, services=services)


def field(response: Response, name: str) -> str | None:
    return dict(response.fields()).get(name)


async def test_a_token_replaces_fields_of_the_response(world: World) -> None:
    token = blob_sas(
        "r", content_type="image/png", content_disposition='inline; filename="é"', cache_control="no-store"
    )
    for method in ("GET", "HEAD"):
        response = await world.ask(method, BLOB, token)
        assert field(response, "Content-Type") == "image/png"
        assert field(response, "Content-Disposition") == 'inline; filename="Ã©"'
        assert field(response, "Cache-Control") == "no-store"
    assert await world.code("GET", BLOB, token.replace("rsct=image", "rsct=video")) == "AuthenticationFailed"
    assert field(await world.ask("GET", BLOB, blob_sas("r")), "Content-Type") == "text/plain"
    assert await world.code("GET", BLOB, f"{blob_sas('r')}&rsct=image%2Fpng") == "AuthenticationFailed"
    public = await world.ask("GET", "photos/a/b.txt", "rsct=image%2Fpng")
    assert field(public, "Content-Type") == "text/plain"


async def test_the_terms_of_a_token(world: World) -> None:
    assert await world.code("GET", BLOB, blob_sas("r", ip="10.0.0.1", protocol="https")) == "200"
    assert await world.code("GET", BLOB, blob_sas("r", ip="10.0.0.2")) == "AuthorizationSourceIPMismatch"
    assert await world.code("GET", BLOB, blob_sas("r", start=EXPIRY)) == "AuthenticationFailed"
    token = blob_sas("r")
    world.now = EXPIRY + timedelta(seconds=1)
    assert await world.code("GET", BLOB, token) == "AuthenticationFailed"


ROLES = [(READER, "rl"), (CONTRIBUTOR, "rlwd"), (OWNER, "rlwdx"), (DELEGATOR, ""), ("Another", "")]


@pytest.mark.parametrize(("role", "letters"), ROLES)
async def test_roles(world: World, role: str, letters: str) -> None:
    def expected(letter: str, code: str) -> str:
        return code if letter in letters else "AuthorizationPermissionMismatch"

    token = world.bearer(role)
    assert await world.code("GET", BLOB, headers=token) == expected("r", "200")
    assert await world.code("GET", CONTAINER, "restype=container", headers=token) == expected("l", "200")
    assert await world.code("PUT", BLOB, headers=token | PUT, body=b"y") == expected("w", "201")
    version = "versionid=2029-01-01T00:00:00.0000000Z"
    assert await world.code("DELETE", BLOB, version, headers=token) == expected("x", "BlobNotFound")
    assert await world.code("DELETE", BLOB, headers=token) == expected("d", "202")
    assert await world.code("GET", CONTAINER, "restype=container&comp=acl", headers=token) == "AuthorizationFailure"


@pytest.mark.parametrize(
    ("version", "status", "code"),
    [
        ("2019-12-12", 401, "NoAuthenticationInformation"),
        ("2019-12-11", 400, "InvalidAuthenticationInfo"),
        ("2017-11-08", 400, "InvalidAuthenticationInfo"),
    ],
)
async def test_a_bad_bearer_token(world: World, version: str, status: int, code: str) -> None:
    response = await world.ask("GET", BLOB, headers={"authorization": "Bearer x"}, version=version)
    assert (response.status, response.error_code) == (status, code)
    challenged = field(response, "WWW-Authenticate") or ""
    assert ("authorization_uri=https://login" in challenged) is (status == 401)


async def test_a_user_delegates(world: World) -> None:
    key = await world.delegation_key(CONTRIBUTOR)
    assert key.signed_service == "b"
    token = blob_sas("rwx", account_key=None, user_delegation_key=key, content_type="image/png")
    response = await world.ask("GET", BLOB, token)
    assert (response.status, field(response, "Content-Type")) == (200, "image/png")
    assert await world.code("PUT", BLOB, f"comp=metadata&{token}") == "200"
    assert await world.code("DELETE", BLOB, token) == "AuthorizationPermissionMismatch"
    version = "versionid=2029-01-01T00:00:00.0000000Z"
    assert await world.code("DELETE", BLOB, f"{version}&{token}") == "AuthorizationPermissionMismatch"
    assert await world.code("GET", "photos/a/b.txt", token) == "AuthenticationFailed"
    assert await world.code("GET", BLOB, f"{token}&si=readers") == "AuthenticationFailed"
    await world.ask("GET", BLOB, headers=world.bearer(READER))
    assert await world.code("PUT", BLOB, f"comp=metadata&{token}") == "AuthorizationPermissionMismatch"
    world.now = EXPIRY + timedelta(seconds=1)
    assert await world.code("GET", BLOB, token) == "AuthenticationFailed"


async def test_the_rejection_of_a_delegated_token_says_why(world: World) -> None:
    key = await world.delegation_key(READER)
    token = blob_sas("r", account_key=None, user_delegation_key=key)

    async def detail(query: str) -> str:
        response = await world.ask("GET", BLOB, query)
        assert response.error_code == "AuthenticationFailed"
        return response.body.decode().partition("<AuthenticationErrorDetail>")[2].partition("</")[0]

    text = await detail(token.replace("sp=r", "sp=rw"))
    start = f"Signature did not match. String to sign used was rw\n\n2030-01-01T01:00:00Z\n/blob/{NAME}/{BLOB}\n"
    assert text.startswith(start + f"{key.signed_oid}\n{key.signed_tid}\n")
    assert str(key.value) not in text
    world.now = EXPIRY + timedelta(seconds=1)
    assert await detail(token) == (
        "Signed expiry time [Tue, 01 Jan 2030 01:00:00 GMT] must be after signed start time "
        "[Tue, 01 Jan 2030 01:00:01 GMT]"
    )
    late = blob_sas("r", account_key=None, user_delegation_key=key, expiry=EXPIRY + timedelta(days=1))
    assert await detail(late) == (
        "Signature not valid in the specified key time frame: Start [Tue, 01 Jan 2030 00:00:00 GMT] - "
        "Expiry [Tue, 01 Jan 2030 01:00:00 GMT] - Current [Tue, 01 Jan 2030 01:00:01 GMT]"
    )


async def test_a_delegated_token_for_one_user(world: World) -> None:
    key = await world.delegation_key(READER)
    token = blob_sas("r", account_key=None, user_delegation_key=key, user_delegation_oid="guest")
    assert await world.code("GET", BLOB, token) == "AuthenticationFailed"
    assert await world.code("GET", BLOB, token, headers=world.bearer(oid="guest")) == "200"
    assert await world.code("GET", BLOB, token, headers=world.bearer(oid="other")) == "AuthenticationFailed"


async def test_a_delegated_token_for_requests_with_certain_fields(world: World) -> None:
    key = await world.delegation_key(READER)
    token = blob_sas(
        "r",
        account_key=None,
        user_delegation_key=key,
        request_headers={"x-colour": "red"},
        request_query_params={"comp": "metadata"},
    )
    assert await world.code("GET", BLOB, f"{token}&comp=metadata", headers={"x-colour": "red"}) == "200"
    assert await world.code("GET", BLOB, f"{token}&comp=metadata") == "AuthenticationFailed"
    assert await world.code("GET", BLOB, token, headers={"x-colour": "red"}) == "AuthenticationFailed"


async def test_only_a_bearer_gets_a_delegation_key(world: World) -> None:
    query = "restype=service&comp=userdelegationkey"
    body = b"<KeyInfo><Expiry>2030-01-01T01:00:00Z</Expiry></KeyInfo>"
    assert await world.code("POST", "", query, headers=world.bearer(DELEGATOR), body=body) == "200"
    assert await world.code("POST", "", query, headers=world.bearer("Another"), body=body) != "200"
    assert await world.code("POST", "", f"{query}&{account_sas('rwdlac')}", body=body) == "AuthenticationFailed"
    assert await world.code("POST", "", query, body=body) == "NoAuthenticationInformation"


async def test_an_account_without_public_access(world: World) -> None:
    assert await world.code("GET", "photos/a/b.txt", account="strict") == "PublicAccessNotPermitted"
    assert await world.code("PUT", "photos/a/b.txt", account="strict") == "NoAuthenticationInformation"


async def test_a_stranger_fills_no_cache(world: World) -> None:
    cache = world.service._context.catalog._cache._entries
    known = set(cache)
    for number in range(20):
        assert await world.code("GET", f"c{number:03}/b") == "NoAuthenticationInformation"
    assert set(cache) == known


class RefusedBody:
    """A body that must not be accepted."""

    length = 100
    is_whole = False

    async def read(self, bytes_max: int) -> bytes:
        raise AssertionError(bytes_max)

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError


BODIES = [("", PUT), ("comp=block&blockid=YQ%3D%3D", {}), ("comp=blocklist", {}), ("comp=appendblock", {})]


@pytest.mark.parametrize(("query", "headers"), BODIES)
async def test_a_body_without_permission_is_not_accepted(world: World, query: str, headers: dict[str, str]) -> None:
    sent = {"x-ms-version": VERSION, "content-length": "100", **headers}
    query = f"{query}&{blob_sas('r')}".removeprefix("&")
    request = Request("PUT", f"/{NAME}/{BLOB}", query, sent, scheme="https", body_to_come=RefusedBody())
    response = await response_of(world.service, request)
    assert response.error_code == "AuthorizationPermissionMismatch"
