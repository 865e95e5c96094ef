"""Credentials of every kind at the service: what each can do, and what it cannot."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas

from lazulite.protocol.message import Request, Response, response_of

from .world import CONTRIBUTOR, DELEGATOR, EXPIRY, KEY, NAME, OWNER, READER, VERSION, World, opened

BLOB, CONTAINER = "box/a/b.txt", "box"
PUT = {"x-ms-blob-type": "BlockBlob"}
POLICY = (
    "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2030-01-01T00:30:00Z</Expiry>"
    "<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with opened() as world:
        yield world


def blob_sas(permission: str, name: str = "a/b.txt", **more: Any) -> str:
    terms: dict[str, Any] = {"account_key": KEY, "permission": permission, "expiry": EXPIRY} | more
    return generate_blob_sas(NAME, CONTAINER, name, **terms)


def container_sas(permission: str | None, **more: Any) -> str:
    terms: dict[str, Any] = {"account_key": KEY, "permission": permission, "expiry": EXPIRY} | more
    return generate_container_sas(NAME, CONTAINER, **terms)


def account_sas(permission: str, types: str = "sco", services: str = "b") -> str:
    return generate_account_sas(NAME, KEY, types, permission, EXPIRY, services=services)


def field(response: Response, name: str) -> str | None:
    return dict(response.fields()).get(name)


async def test_a_token_for_a_blob_is_for_that_blob(world: World) -> None:
    token = blob_sas("rwd")
    assert await world.code("GET", BLOB, token) == "200"
    assert await world.code("GET", "box/a%2Fb.txt", token) == "200"
    await world.put("box/a/c.txt")
    for path in ("box/a/c.txt", "photos/a/b.txt", "box/a", "box/a/b.txt/"):
        assert await world.code("GET", path, token) == "AuthenticationFailed"
    assert await world.code("GET", CONTAINER, f"{token}&restype=container") == "AuthenticationFailed"
    assert await world.code("GET", BLOB, token) == "200"


async def test_a_token_for_a_container_is_for_its_blobs(world: World) -> None:
    token = container_sas("rwdl")
    assert await world.code("GET", BLOB, token) == "200"
    assert await world.code("PUT", "box/new", token, headers=PUT, body=b"x") == "201"
    assert await world.code("GET", "photos/a/b.txt", token) == "AuthenticationFailed"
    for method in ("GET", "PUT", "DELETE"):
        code = await world.code(method, CONTAINER, f"{token}&restype=container")
        assert code == "AuthorizationFailure", method


@pytest.mark.parametrize("letter", "rwdcax")
async def test_a_token_does_what_its_letters_say(world: World, letter: str) -> None:
    token = blob_sas(letter)
    denied = "AuthorizationPermissionMismatch"
    assert await world.code("GET", BLOB, token) == ("200" if letter == "r" else denied)
    properties = await world.code("PUT", BLOB, f"comp=properties&{token}")
    assert properties == ("200" if letter == "w" else denied)
    expected = {"w": "201", "c": "UnauthorizedBlobOverwrite"}.get(letter, denied)
    assert await world.code("PUT", BLOB, token, headers=PUT, body=b"y") == expected
    breaking = {"x-ms-lease-action": "break"}
    expected = "LeaseNotPresentWithLeaseOperation" if letter in "wd" else denied
    assert await world.code("PUT", BLOB, f"comp=lease&{token}", headers=breaking) == expected
    assert await world.code("DELETE", BLOB, token) == ("202" if letter == "d" else denied)


@pytest.mark.parametrize("letter", "rwdc")
async def test_a_lease_of_a_container_needs_its_letters(world: World, letter: str) -> None:
    query = f"restype=container&comp=lease&{account_sas(letter, 'c')}"
    acquiring = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    denied = "AuthorizationPermissionMismatch"
    assert await world.code("PUT", CONTAINER, query, headers=acquiring) == ("201" if letter == "w" else denied)
    breaking = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    found = await world.code("PUT", CONTAINER, query, headers=breaking)
    assert found == {"w": "202", "d": "LeaseNotPresentWithLeaseOperation"}.get(letter, denied)
    query = f"restype=container&comp=lease&{container_sas('rwd')}"
    assert await world.code("PUT", CONTAINER, query, headers=breaking) == "AuthorizationFailure"


async def test_the_letter_to_create_does_not_overwrite(world: World) -> None:
    token = container_sas("c")
    assert await world.code("PUT", "box/new", token, headers=PUT, body=b"x") == "201"
    assert await world.code("PUT", "box/new", token, headers=PUT, body=b"y") == "UnauthorizedBlobOverwrite"
    assert (await world.owner("GET", "box/new")).body == b"x"


async def test_a_version_needs_a_letter_of_its_own(world: World) -> None:
    time = "2029-01-01T00:00:00.0000000Z"
    denied = "AuthorizationPermissionMismatch"
    assert await world.code("DELETE", BLOB, f"versionid={time}&{blob_sas('d')}") == denied
    assert await world.code("DELETE", BLOB, f"versionid={time}&{blob_sas('x')}") == "BlobNotFound"
    assert await world.code("DELETE", BLOB, f"versionid=&{blob_sas('x')}") == denied
    permanently = f"snapshot={time}&deletetype=permanent"
    assert await world.code("DELETE", BLOB, f"{permanently}&{blob_sas('dx')}") == denied
    assert await world.code("DELETE", BLOB, f"{permanently}&{blob_sas('y')}") == "BlobNotFound"


async def test_a_token_for_a_snapshot_reads_no_other_one(world: World) -> None:
    time = field(await world.owner("PUT", BLOB, "comp=snapshot"), "x-ms-snapshot")
    await world.put(BLOB, b"new")
    token = blob_sas("rwd", snapshot=time)
    assert (await world.ask("GET", BLOB, f"snapshot={time}&{token}")).body == b"hello"
    for query in (token, f"snapshot={time}0&{token}", f"snapshot={time}&versionid={time}&{token}"):
        assert await world.code("GET", BLOB, query) == "AuthenticationFailed"
    metadata = await world.code("PUT", BLOB, f"comp=metadata&snapshot={time}&{token}")
    assert metadata == "AuthorizationPermissionMismatch"
    assert await world.code("DELETE", BLOB, f"snapshot={time}&{token}") == "202"
    assert await world.code("GET", BLOB, blob_sas("r")) == "200"


async def test_a_token_for_a_directory_reads_below_it(world: World) -> None:
    token = blob_sas("r", "a", is_directory=True)
    assert await world.code("GET", BLOB, token) == "200"
    await world.put("box/ab/c")
    for path in ("box/ab/c", "box/a", "photos/a/b.txt"):
        assert await world.code("GET", path, token) == "AuthenticationFailed"


async def test_a_token_for_a_directory_lists_below_it(world: World) -> None:
    token = blob_sas("l", "a/b", is_directory=True)
    for name in ("a/b/c", "a/b/d/e", "a/bc", "a/c"):
        await world.put(f"box/{name}")
    listing = "restype=container&comp=list"
    for prefix, count in (("a/b/", 2), ("a%2Fb%2Fd", 1), ("a/b/x", 0)):
        page = await world.ask("GET", "box", f"{listing}&prefix={prefix}&{token}")
        assert (page.status, page.body.count(b"<Blob>")) == (200, count), page
    for query in (listing, *(f"{listing}&prefix={prefix}" for prefix in ("", "a/b", "a/", "a/bc", "a/c/", "x/a/b/"))):
        assert await world.code("GET", "box", f"{query}&{token}") == "AuthenticationFailed", query
    assert await world.code("GET", "photos", f"{listing}&prefix=a/b/&{token}") == "AuthenticationFailed"
    assert await world.code("GET", "box", f"restype=container&prefix=a/b/&{token}") == "AuthenticationFailed"
    reader = blob_sas("r", "a/b", is_directory=True)
    denied = await world.code("GET", "box", f"{listing}&prefix=a/b/&{reader}")
    assert denied == "AuthorizationPermissionMismatch"


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


async def test_a_stored_policy_of_the_container(world: World) -> None:
    by_container = generate_container_sas(NAME, CONTAINER, account_key=KEY, policy_id="readers")
    by_blob = generate_blob_sas(NAME, CONTAINER, "a/b.txt", account_key=KEY, policy_id="readers")
    for token in (by_container, by_blob):
        assert await world.code("GET", BLOB, token) == "AuthenticationFailed"
    await world.owner("PUT", CONTAINER, "restype=container&comp=acl", body=POLICY.encode())
    for token in (by_container, by_blob):
        assert await world.code("GET", BLOB, token) == "200"
        assert await world.code("DELETE", BLOB, token) == "AuthorizationPermissionMismatch"
    await world.owner("PUT", CONTAINER, "restype=container&comp=acl")
    for token in (by_container, by_blob):
        assert await world.code("GET", BLOB, token) == "AuthenticationFailed"


async def test_a_token_for_the_account(world: World) -> None:
    assert await world.code("GET", BLOB, account_sas("r")) == "200"
    assert await world.code("GET", BLOB, account_sas("r", services="q")) == "AuthorizationServiceMismatch"
    assert await world.code("GET", BLOB, account_sas("r", "sc")) == "AuthorizationResourceTypeMismatch"
    assert await world.code("GET", BLOB, account_sas("w")) == "AuthorizationPermissionMismatch"
    assert await world.code("PUT", "fresh", f"restype=container&{account_sas('c', 'c')}") == "201"
    assert await world.code("PUT", BLOB, account_sas("c"), headers=PUT, body=b"y") == "UnauthorizedBlobOverwrite"
    query = f"restype=container&comp=acl&{account_sas('rwdlac')}"
    assert await world.code("GET", CONTAINER, query) == "AuthorizationFailure"


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


@pytest.mark.parametrize(("container", "readable", "listed"), [("box", 0, 0), ("photos", 1, 0), ("site", 1, 1)])
async def test_public_containers(world: World, container: str, readable: int, listed: int) -> None:
    path = f"{container}/a/b.txt"
    denied = "NoAuthenticationInformation"
    for method in ("GET", "HEAD"):
        assert await world.code(method, path) == ("200" if readable else denied)
        assert await world.code(method, path, "comp=metadata") == ("200" if readable else denied)
        assert await world.code(method, container, "restype=container") == ("200" if listed else denied)
    assert await world.code("GET", f"{container}/missing") == ("BlobNotFound" if readable else denied)
    assert await world.code("GET", container, "restype=container&comp=acl") == denied
    assert await world.code("PUT", path, headers=PUT, body=b"x") == denied
    assert await world.code("DELETE", path) == denied
    assert await world.code("GET", path, version="") == ("200" if readable else "ResourceNotFound")
    assert await world.code("GET", path, "sig=x&sr=b&sp=r") == "AuthenticationFailed"
    assert await world.code("GET", path, headers={"authorization": "Bearer x"}) == denied


async def test_public_access_ends_at_once(world: World) -> None:
    assert await world.code("GET", "photos/a/b.txt") == "200"
    await world.owner("PUT", "photos", "restype=container&comp=acl")
    assert await world.code("GET", "photos/a/b.txt") == "NoAuthenticationInformation"


async def test_an_account_without_public_access(world: World) -> None:
    assert await world.code("GET", "photos/a/b.txt", account="strict") == "PublicAccessNotPermitted"
    assert await world.code("PUT", "photos/a/b.txt", account="strict") == "NoAuthenticationInformation"


async def test_a_stranger_fills_no_cache(world: World) -> None:
    cache = world.service._context.catalog._cache._entries
    known = set(cache)
    for number in range(20):
        assert await world.code("GET", f"c{number:03}/b") == "NoAuthenticationInformation"
    assert set(cache) == known


@pytest.mark.parametrize(("version", "creates"), [("2026-06-06", True), ("2026-06-05", False)])
async def test_blocks_of_a_new_blob_need_the_letter_to_create(world: World, version: str, creates: bool) -> None:
    token, denied = container_sas("c"), "AuthorizationPermissionMismatch"
    block = await world.code("PUT", "box/new", f"comp=block&blockid=YQ%3D%3D&{token}", body=b"x", version=version)
    assert block == ("201" if creates else denied)
    blocks = b"<BlockList><Latest>YQ==</Latest></BlockList>"
    made = await world.code("PUT", "box/new", f"comp=blocklist&{token}", body=blocks, version=version)
    assert made == ("201" if creates else denied)
    again = await world.code("PUT", "box/new", f"comp=blocklist&{token}", body=blocks, version=version)
    assert again == ("UnauthorizedBlobOverwrite" if creates else denied)


class RefusedBody:
    """A body that must not be accepted."""

    length = 100

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
