"""Versions of a blob by their ids: the id of the current version names the blob itself. Source: reference §42.2."""

from urllib.parse import quote

import pytest
from tests.conformance.answers import Answer
from tests.conformance.client import HeaderChanges

from .blobs import Container, id_of, new_name
from .resources import Resource
from .test_errors import url_of

TAGS = b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"
NOT_FOUND = (404, "BlobNotFound")
READS: dict[str, tuple[str, str, HeaderChanges]] = {
    "GET": ("GET", "", {}),
    "a range": ("GET", "", {"x-ms-range": "bytes=0-0"}),
    "HEAD": ("HEAD", "", {}),
    "metadata": ("GET", "comp=metadata", {}),
    "metadata, HEAD": ("HEAD", "comp=metadata", {}),
    "tags": ("GET", "comp=tags", {}),
    "block list": ("GET", "comp=blocklist", {}),
}
"""Reads as clients request them: method, query and headers."""
ABOUT = ("x-ms-request-id", "Date", "x-ms-lease-status", "x-ms-lease-state")
"""Headers that differ for a blob and its current version by id, or with each request."""


class Versioned(Resource):
    """A blob of an account that keeps versions."""

    def by_id(
        self, id_: str, method: str, query: str = "", headers: HeaderChanges | None = None, **options: object
    ) -> Answer:
        """Send a request for one of its versions."""
        return self.send(method, f"{query}&versionid={quote(id_)}".lstrip("&"), headers, **options)


@pytest.fixture
def blob(versioned: Container) -> Versioned:
    """A blob that does not exist yet."""
    return Versioned(versioned, new_name())


def put(blob: Resource, content: bytes) -> str:
    """Put the blob; return the id of its version."""
    return blob.put(content).expect(201).required("x-ms-version-id")


def same(one: Answer, other: Answer) -> bool:
    """Tell whether two responses are alike, but for what each response has of its own."""
    facts = [sorted(pair for pair in each.headers if pair[0] not in ABOUT) for each in (one, other)]
    return (one.status, one.body, facts[0]) == (other.status, other.body, facts[1])


@pytest.mark.parametrize("read", READS)
def test_the_current_version_is_read_as_the_blob(blob: Versioned, read: str) -> None:
    method, query, headers = READS[read]
    first, current = put(blob, b"first"), put(blob, b"current")
    found = blob.by_id(current, method, query, headers)
    assert found.status in (200, 206)
    assert same(found, blob.send(method, query, headers))
    assert blob.by_id(first, method, query, headers).status in (200, 206)


def test_headers_of_versions(blob: Versioned) -> None:
    first, current = put(blob, b"first"), put(blob, b"current")
    for method in ("GET", "HEAD"):
        found = blob.by_id(current, method).expect(200)
        assert (found.header("x-ms-version-id"), found.header("x-ms-is-current-version")) == (current, "true")
        assert not [name for name, _ in found.headers if name.startswith("x-ms-lease")]
        past = blob.by_id(first, method).expect(200)
        assert (past.header("x-ms-version-id"), past.header("x-ms-is-current-version")) == (first, None)
    assert blob.send("HEAD").header("x-ms-lease-state") == "available"


def test_tier_and_tags_of_the_current_version_are_those_of_the_blob(blob: Versioned) -> None:
    first, current = put(blob, b"first"), put(blob, b"current")
    blob.by_id(current, "PUT", "comp=tier", {"x-ms-access-tier": "Cool"}).expect(200)
    blob.by_id(current, "PUT", "comp=tags", body=TAGS).expect(204)
    found = blob.send("HEAD").expect(200)
    assert (found.header("x-ms-access-tier"), found.header("x-ms-tag-count")) == ("Cool", "1")
    assert found.header("x-ms-version-id") == current
    past = blob.by_id(first, "HEAD").expect(200)
    assert (past.header("x-ms-access-tier"), past.header("x-ms-tag-count")) == ("Hot", None)
    blob.by_id(first, "PUT", "comp=tier", {"x-ms-access-tier": "Archive"}).expect(200)
    assert blob.send("HEAD").header("x-ms-access-tier") == "Cool"


def test_the_id_stays_with_its_content_when_the_blob_is_replaced_or_deleted(blob: Versioned) -> None:
    id_ = put(blob, b"first")
    blob.send("PUT", "comp=metadata", {"x-ms-meta-a": "b"}).expect(200)
    assert blob.by_id(id_, "GET").expect(200).body == b"first"
    second = blob.send("HEAD").required("x-ms-version-id")
    blob.send("DELETE").expect(202)
    for each in (id_, second):
        past = blob.by_id(each, "GET").expect(200)
        assert (past.body, past.header("x-ms-is-current-version")) == (b"first", None)
    assert blob.send("GET").code == NOT_FOUND


def test_a_snapshot_leaves_the_current_version_by_its_new_id(blob: Versioned) -> None:
    first = put(blob, b"first")
    taken = blob.send("PUT", "comp=snapshot").expect(201)
    current = taken.required("x-ms-version-id")
    for id_, is_current in ((first, None), (current, "true")):
        found = blob.by_id(id_, "HEAD").expect(200)
        assert found.header("x-ms-is-current-version") == is_current
    snapshot = quote(taken.required("x-ms-snapshot"))
    assert blob.send("HEAD", f"snapshot={snapshot}").expect(200).header("x-ms-is-current-version") is None


def test_the_current_version_is_no_past_to_delete(blob: Versioned) -> None:
    first, current = put(blob, b"first"), put(blob, b"current")
    assert blob.by_id(current, "DELETE").code == (403, "OperationNotAllowedOnRootBlob")
    blob.by_id(first, "DELETE").expect(202)
    assert blob.by_id(first, "HEAD").status == 404
    assert blob.by_id(current, "GET").expect(200).body == b"current"


def test_an_id_that_no_version_has(blob: Versioned) -> None:
    put(blob, b"first")
    for method, query, body in (("GET", "", None), ("GET", "comp=tags", None), ("PUT", "comp=tags", TAGS)):
        assert blob.by_id("2020-01-01T00:00:00.0000000Z", method, query, body=body).code == NOT_FOUND


def test_a_copy_of_the_current_version(blob: Versioned) -> None:
    first, current = put(blob, b"first"), put(blob, b"current")
    for number, (id_, content) in enumerate(((current, b"current"), (first, b"first"))):
        copy = Resource(blob.container, f"{blob.name}-{number}")
        headers = {"x-ms-copy-source": f"{url_of(blob)}?versionid={quote(id_)}"}
        copy.send("PUT", headers=headers).expect(202)
        assert copy.send("GET").expect(200).body == content


def test_a_leased_blob_by_the_id_of_its_current_version(blob: Versioned) -> None:
    id_ = put(blob, b"first")
    lease = blob.lease("acquire", duration=60).expect(201).required("x-ms-lease-id")
    assert blob.by_id(id_, "PUT", "comp=tags", body=TAGS).code == (412, "LeaseIdMissing")
    blob.by_id(id_, "PUT", "comp=tags", {"x-ms-lease-id": lease}, body=TAGS).expect(204)
    assert blob.send("HEAD").header("x-ms-lease-state") == "leased"
    blob.by_id(id_, "PUT", "comp=tier", {"x-ms-access-tier": "Cool", "x-ms-lease-id": lease}).expect(200)
    assert blob.send("HEAD").header("x-ms-lease-state") == "leased"


def test_blocks_and_pages_of_the_current_version(versioned: Container) -> None:
    blocks, pages = (Versioned(versioned, new_name()) for _ in range(2))
    versioned.put_block(blocks.name, "a", b"0123456789").expect(201)
    id_ = versioned.put_list(blocks.name, ("Latest", "a")).expect(201).required("x-ms-version-id")
    assert id_of("a").encode() in blocks.by_id(id_, "GET", "comp=blocklist").expect(200).body
    assert blocks.by_id(id_, "GET").body == b"0123456789"
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
    id_ = pages.send("PUT", headers=headers).expect(201).required("x-ms-version-id")
    page = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1023"}
    pages.send("PUT", "comp=page", page, body=b"x" * 512).expect(201)
    assert b"<Start>512</Start><End>1023</End>" in pages.by_id(id_, "GET", "comp=pagelist").expect(200).body
