"""SAS of blobs: what a token reaches, what its letters permit, and its terms. Source: reference §46, §34.1.

The tokens are those of the SDK. The rejection of a request is compared by its code.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas
from tests.conformance.signing import anonymous

from .blobs import Blobs, Container, new_name
from .resources import Resource

NEW = "2026-10-06"
"""A version that has all kinds of tokens."""
NAME = "a/b.txt"
PUT = {"x-ms-blob-type": "BlockBlob"}
DENIED = "AuthorizationPermissionMismatch"
FAILED = "AuthenticationFailed"
SOME_TIME = "2029-01-01T00:00:00.0000000Z"


class Box:
    """A container with a blob, asked with tokens alone.

    Attributes:
        container: the container.
        blob: its blob `NAME`.
    """

    def __init__(self, container: Container) -> None:
        self.container = container
        self.blob = Resource(container, NAME)
        self._endpoint = container.blobs.client.endpoint
        self.expiry = datetime.now(UTC) + timedelta(hours=1)

    def of_blob(self, permission: str | None, name: str = NAME, **more: Any) -> str:
        """A service SAS for a blob."""
        endpoint = self._endpoint
        terms = {"account_key": endpoint.key, "permission": permission, "expiry": self.expiry} | more
        return generate_blob_sas(endpoint.account, self.container.name, name, **terms)

    def of_container(self, permission: str | None, **more: Any) -> str:
        """A service SAS for the container."""
        endpoint = self._endpoint
        terms = {"account_key": endpoint.key, "permission": permission, "expiry": self.expiry} | more
        return generate_container_sas(endpoint.account, self.container.name, **terms)

    def of_account(self, permission: str, types: str = "sco", services: str = "b") -> str:
        """An account SAS."""
        account, key = self._endpoint.account, self._endpoint.key
        return generate_account_sas(account, key, types, permission, self.expiry, services=services)

    def code(self, method: str, blob: str, query: str, **options: Any) -> str:
        """Send a request without credentials of its own; return its code, or the status if it succeeds."""
        sent = {"signer": anonymous, "version": NEW, **options}
        answer = self.container.send(method, blob, query, **sent)
        return answer.header("x-ms-error-code") or str(answer.status)

    def put(self, blob: str, token: str, data: bytes = b"x") -> str:
        """Put a block blob likewise."""
        return self.code("PUT", blob, token, headers=PUT, body=data)


@pytest.fixture
def box(container: Container) -> Box:
    """A container of the test's own."""
    container.put(NAME, b"hello", x_ms_blob_content_type="text/plain").expect(201)
    return Box(container)


def test_a_token_for_a_blob_is_for_that_blob(box: Box) -> None:
    token = box.of_blob("rwd")
    assert box.code("GET", NAME, token) == "200"
    box.container.put("a/c.txt").expect(201)
    for name in ("a/c.txt", "a", f"{NAME}/"):
        assert box.code("GET", name, token) == FAILED
    assert box.code("GET", "", f"{token}&restype=container") == FAILED
    assert box.code("GET", NAME, token) == "200"


def test_a_token_for_a_container_is_for_its_blobs(box: Box, shared: Container) -> None:
    token = box.of_container("rwdl")
    assert box.code("GET", NAME, token) == "200"
    assert box.put("new", token) == "201"
    assert Box(shared).code("GET", NAME, token) == FAILED
    for method in ("GET", "PUT", "DELETE"):
        assert box.code(method, "", f"{token}&restype=container") == "AuthorizationFailure", method


@pytest.mark.parametrize("letter", "rwdcax")
def test_a_token_does_what_its_letters_say(box: Box, letter: str) -> None:
    token = box.of_blob(letter)
    assert box.code("GET", NAME, token) == ("200" if letter == "r" else DENIED)
    assert box.code("PUT", NAME, f"comp=properties&{token}") == ("200" if letter == "w" else DENIED)
    assert box.put(NAME, token) == {"w": "201", "c": "UnauthorizedBlobOverwrite"}.get(letter, DENIED)
    found = box.code("PUT", NAME, f"comp=lease&{token}", headers={"x-ms-lease-action": "break"})
    assert found == ("LeaseNotPresentWithLeaseOperation" if letter in "wd" else DENIED)
    assert box.code("DELETE", NAME, token) == ("202" if letter == "d" else DENIED)


@pytest.mark.parametrize("letter", "rwdc")
def test_a_lease_of_a_container_needs_its_letters(box: Box, letter: str) -> None:
    query = f"restype=container&comp=lease&{box.of_account(letter, 'c')}"
    acquiring = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
    assert box.code("PUT", "", query, headers=acquiring) == ("201" if letter == "w" else DENIED)
    breaking = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    found = box.code("PUT", "", query, headers=breaking)
    assert found == {"w": "202", "d": "LeaseNotPresentWithLeaseOperation"}.get(letter, DENIED)
    query = f"restype=container&comp=lease&{box.of_container('rwd')}"
    assert box.code("PUT", "", query, headers=breaking) == "AuthorizationFailure"


def test_the_letter_to_create_does_not_overwrite(box: Box) -> None:
    token = box.of_container("c")
    assert box.put("new", token) == "201"
    assert box.put("new", token, b"y") == "UnauthorizedBlobOverwrite"
    assert box.container.send("GET", "new").expect(200).body == b"x"


@pytest.mark.parametrize(("version", "creates"), [("2026-06-06", True), ("2026-06-05", False)])
def test_blocks_of_a_new_blob_need_the_letter_to_create(box: Box, version: str, creates: bool) -> None:
    token, blocks = box.of_container("c"), b"<BlockList><Latest>YQ==</Latest></BlockList>"
    for query, body, code in (
        ("comp=block&blockid=YQ%3D%3D", b"x", "201"),
        ("comp=blocklist", blocks, "201"),
        ("comp=blocklist", blocks, "UnauthorizedBlobOverwrite"),
    ):
        found = box.code("PUT", "new", f"{query}&{token}", body=body, version=version)
        assert found == (code if creates else DENIED)


def test_a_version_needs_a_letter_of_its_own(box: Box) -> None:
    for query, letters, code in (
        (f"versionid={SOME_TIME}", "d", DENIED),
        (f"versionid={SOME_TIME}", "x", "BlobNotFound"),
        ("versionid=", "x", DENIED),
        (f"snapshot={SOME_TIME}&deletetype=permanent", "dx", DENIED),
        (f"snapshot={SOME_TIME}&deletetype=permanent", "y", "BlobNotFound"),
    ):
        assert box.code("DELETE", NAME, f"{query}&{box.of_blob(letters)}") == code, (query, letters)


def test_a_token_for_a_snapshot_reads_no_other_one(box: Box) -> None:
    time = box.blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    box.container.put(NAME, b"new").expect(201)
    token = box.of_blob("rwd", snapshot=time)
    found = box.blob.send("GET", f"snapshot={time}&{token}", signer=anonymous, version=NEW).expect(200)
    assert found.body == b"hello"
    for query in (token, f"snapshot={time}0&{token}", f"snapshot={time}&versionid={time}&{token}"):
        assert box.code("GET", NAME, query) == FAILED
    assert box.code("PUT", NAME, f"comp=metadata&snapshot={time}&{token}") == DENIED
    assert box.code("DELETE", NAME, f"snapshot={time}&{token}") == "202"
    assert box.code("GET", NAME, box.of_blob("r")) == "200"


def test_a_token_for_a_directory_reads_below_it(box: Box) -> None:
    token = box.of_blob("r", "a", is_directory=True)
    assert box.code("GET", NAME, token) == "200"
    box.container.put("ab/c").expect(201)
    for name in ("ab/c", "a"):
        assert box.code("GET", name, token) == FAILED


def test_a_token_for_a_directory_lists_below_it(box: Box, shared: Container) -> None:
    token, listing = box.of_blob("l", "a/b", is_directory=True), "restype=container&comp=list"
    for name in ("a/b/c", "a/b/d/e", "a/bc", "a/c"):
        box.container.put(name).expect(201)
    for prefix, count in (("a/b/", 2), ("a%2Fb%2Fd", 1), ("a/b/x", 0)):
        query = f"{listing}&prefix={prefix}&{token}"
        page = box.container.send("GET", query=query, signer=anonymous, version=NEW).expect(200)
        assert page.body.count(b"<Blob>") == count
    for query in (listing, *(f"{listing}&prefix={prefix}" for prefix in ("", "a/b", "a/", "a/bc", "a/c/", "x/a/b/"))):
        assert box.code("GET", "", f"{query}&{token}") == FAILED, query
    assert Box(shared).code("GET", "", f"{listing}&prefix=a/b/&{token}") == FAILED
    assert box.code("GET", "", f"restype=container&prefix=a/b/&{token}") == FAILED
    reader = box.of_blob("r", "a/b", is_directory=True)
    assert box.code("GET", "", f"{listing}&prefix=a/b/&{reader}") == DENIED


def test_the_terms_of_a_token(box: Box) -> None:
    assert box.code("GET", NAME, box.of_blob("r", ip="203.0.113.1")) == "AuthorizationSourceIPMismatch"
    assert box.code("GET", NAME, box.of_blob("r", start=box.expiry)) == FAILED
    assert box.code("GET", NAME, box.of_blob("r", expiry=datetime.now(UTC) - timedelta(hours=1))) == FAILED


def test_a_stored_policy_of_the_container(box: Box) -> None:
    policies = (
        "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>"
        f"<Expiry>{box.expiry:%Y-%m-%dT%H:%M:%SZ}</Expiry><Permission>r</Permission>"
        "</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    tokens = [make(None, expiry=None, policy_id="readers") for make in (box.of_container, box.of_blob)]
    for body, read, delete in ((None, FAILED, FAILED), (policies, "200", DENIED), ("", FAILED, FAILED)):
        if body is not None:
            box.container.send("PUT", query="restype=container&comp=acl", body=body).expect(200)
        for token in tokens:
            assert (box.code("GET", NAME, token), box.code("DELETE", NAME, token)) == (read, delete)


def test_a_token_for_the_account(box: Box) -> None:
    for permission, types, services, code in (
        ("r", "sco", "b", "200"),
        ("r", "sco", "q", "AuthorizationServiceMismatch"),
        ("r", "sc", "b", "AuthorizationResourceTypeMismatch"),
        ("w", "sco", "b", DENIED),
    ):
        assert box.code("GET", NAME, box.of_account(permission, types, services)) == code
    assert box.put(NAME, box.of_account("c")) == "UnauthorizedBlobOverwrite"
    query = f"restype=container&comp=acl&{box.of_account('rwdlac')}"
    assert box.code("GET", "", query) == "AuthorizationFailure"


def test_a_container_is_created_with_a_token(box: Box, blobs: Blobs) -> None:
    other = Box(Container(blobs, new_name()))
    assert other.code("PUT", "", f"restype=container&{box.of_account('c', 'c')}") == "201"
    other.container.send("DELETE", query="restype=container").expect(202)


@pytest.fixture(params=["", "blob", "container"])
def published(request: pytest.FixtureRequest, blobs: Blobs) -> Iterator[Box]:
    """A container of each level of public access; its name ends with the level."""
    container = Container(blobs, f"{new_name()}{request.param}")
    headers = {"x-ms-blob-public-access": request.param} if request.param else {}
    container.send("PUT", query="restype=container", headers=headers).expect(201)
    container.put(NAME).expect(201)
    yield Box(container)
    container.send("DELETE", query="restype=container")


def test_what_is_public(published: Box) -> None:
    denied, name = "NoAuthenticationInformation", published.container.name
    is_read, is_listed = name.endswith(("blob", "container")), name.endswith("container")
    for method in ("GET", "HEAD"):
        assert published.code(method, NAME, "") == ("200" if is_read else denied)
        assert published.code(method, NAME, "comp=metadata") == ("200" if is_read else denied)
        assert published.code(method, "", "restype=container") == ("200" if is_listed else denied)
    assert published.code("GET", "missing", "") == ("BlobNotFound" if is_read else denied)
    assert published.code("GET", "", "restype=container&comp=acl") == denied
    assert published.put(NAME, "") == denied
    assert published.code("DELETE", NAME, "") == denied
    assert published.code("GET", NAME, "sig=x&sr=b&sp=r") == FAILED
    assert published.code("GET", NAME, "", headers={"Authorization": "Bearer x"}) != "200"


def test_public_access_ends_at_once(published: Box) -> None:
    published.container.send("PUT", query="restype=container&comp=acl").expect(200)
    assert published.code("GET", NAME, "") == "NoAuthenticationInformation"
