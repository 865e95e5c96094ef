"""Which sources a copy may read (§41): what its URL may read by itself, and for Copy Blob those of its own account."""

from collections.abc import Mapping

import pytest
from tests.conformance.sas import account_sas, moment

from .blobs import Container, id_of, new_name
from .resources import Resource

BYTES = b"s" * 512
PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}
COPIES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "Copy Blob": ("", "", {}),
    "Copy Blob, synchronous": ("", "", {"x-ms-requires-sync": "true"}),
    "Put Blob From URL": ("", "", {"x-ms-blob-type": "BlockBlob"}),
    "Put Block From URL": ("", f"comp=block&blockid={id_of('a')}", {}),
    "Append Block From URL": ("AppendBlob", "comp=appendblock", {}),
    "Put Page From URL": ("PageBlob", "comp=page", PAGE),
}
"""The type of the blob that must be there, the query, and the headers of each operation that reads a source."""
CREDENTIALS = {
    "none": None,
    "a SAS without the permission": {"sp": "w"},
    "a SAS that expired": {"se": moment(-60)},
    "a SAS of the account that copies": {},
    "a SAS of the account of the source": {},
}
"""The fields of the SAS in the URL of the source."""
REJECTED = 401, 403, 404, 409
"""What a read without credentials gets depends on whether the account allows public containers."""


def url_of(container: Container, name: str, sas: str = "") -> str:
    return f"{container.blobs.client.endpoint.base}{container.name}/{name}" + (f"?{sas}" if sas else "")


def sas_of(container: Container, fields: Mapping[str, str]) -> str:
    return account_sas(container.blobs.client.endpoint, {"ss": "b", "sp": "r", **fields})


@pytest.fixture
def source(versioned: Container) -> str:
    """The name of a private blob of another account."""
    name = new_name()
    versioned.put(name, BYTES).expect(201)
    return name


@pytest.fixture(params=COPIES)
def copy(request: pytest.FixtureRequest, shared: Container) -> "Copy":
    """An operation that reads a source, and the blob that it is for."""
    type_, query, headers = COPIES[request.param]
    target = Resource(shared, new_name())
    if type_:
        size = {"x-ms-blob-content-length": "512"} if type_ == "PageBlob" else {}
        target.send("PUT", "", {"x-ms-blob-type": type_, **size}, body=b"").expect(201)
    return Copy(target, query, headers)


class Copy:
    """An operation that reads a source, with the Shared Key of its account."""

    def __init__(self, target: Resource, query: str, headers: Mapping[str, str]) -> None:
        self.target = target
        self._query = query
        self._headers = headers

    def send(self, source: str) -> tuple[int, str]:
        answer = self.target.send("PUT", self._query, {**self._headers, "x-ms-copy-source": source}, body=b"")
        return answer.status, answer.header("x-ms-error-code") or ""

    def has_the_bytes(self) -> bool:
        """Tell whether the blob, or a block of it, has anything of the source."""
        blocks = self.target.send("GET", "comp=blocklist&blocklisttype=uncommitted")
        blob = self.target.send("GET")
        return b"<Size>" in blocks.body or (blob.status == 200 and BYTES in blob.body)


@pytest.mark.parametrize("credentials", CREDENTIALS)
def test_a_private_blob_of_another_account_needs_credentials_of_that_account(
    copy: Copy, versioned: Container, source: str, credentials: str
) -> None:
    fields = CREDENTIALS[credentials]
    signer = copy.target.container if credentials == "a SAS of the account that copies" else versioned
    status, code = copy.send(url_of(versioned, source, "" if fields is None else sas_of(signer, fields)))
    if credentials == "a SAS of the account of the source":
        assert status in (201, 202)
        assert copy.has_the_bytes()
    else:
        assert code == "CannotVerifyCopySource"
        assert status in REJECTED
        assert not copy.has_the_bytes()


def test_a_private_blob_of_its_own_account_is_read_by_copy_blob_alone(
    copy: Copy, shared: Container, request: pytest.FixtureRequest
) -> None:
    name = new_name()
    shared.put(name, BYTES).expect(201)
    is_opened = "[Copy Blob]" in request.node.name
    status, code = copy.send(url_of(shared, name))
    assert code == ("" if is_opened else "CannotVerifyCopySource")
    assert status in ((202,) if is_opened else REJECTED)
    assert copy.has_the_bytes() is is_opened


def test_a_blob_of_another_account_that_all_may_read_needs_no_credentials(
    container: Container, versioned: Container
) -> None:
    container.send("PUT", query="restype=container&comp=acl", headers={"x-ms-blob-public-access": "blob"}).expect(200)
    container.put("source", BYTES).expect(201)
    for type_, query, headers in COPIES.values():
        if not type_:
            copy = Copy(Resource(versioned, new_name()), query, headers)
            assert copy.send(url_of(container, "source"))[0] in (201, 202)
            assert copy.has_the_bytes()


def test_a_snapshot_or_version_of_another_account_is_as_private_as_its_blob(
    shared: Container, versioned: Container, source: str
) -> None:
    snapshot = versioned.send("PUT", source, "comp=snapshot").expect(201).header("x-ms-snapshot")
    version = versioned.put(source, b"later").expect(201).header("x-ms-version-id")
    target = Resource(shared, new_name())
    for selection in (f"snapshot={snapshot}", f"versionid={version}"):
        for headers in ({}, {"x-ms-requires-sync": "true"}, {"x-ms-blob-type": "BlockBlob"}):
            sent = {**headers, "x-ms-copy-source": url_of(versioned, source, selection)}
            answer = target.send("PUT", "", sent, body=b"")
            assert answer.header("x-ms-error-code") == "CannotVerifyCopySource"
            assert answer.status in REJECTED
    target.send("HEAD").expect(404)
