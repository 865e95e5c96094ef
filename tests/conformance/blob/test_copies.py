"""Copies of blobs: what a copy has of its source. Source: reference §41."""

from random import Random
from urllib.parse import quote

import pytest
from tests.conformance.answers import Answer
from tests.conformance.client import HeaderChanges
from tests.conformance.sas import account_sas

from .blobs import Container, new_name
from .resources import Resource
from .test_errors import APPEND_BLOB, url_of

LARGE = Random(1).randbytes(700_000)
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
KINDS: tuple[dict[str, str], ...] = ({}, BLOCK_BLOB)
"""The headers of Copy Blob, and of Put Blob From URL."""
PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=512-1023", "x-ms-source-range": "bytes=0-511"}


def read_url(source: Resource, permission: str = "r", query: str = "") -> str:
    """The URL of a source with a SAS."""
    token = account_sas(source.container.blobs.client.endpoint, {"ss": "b", "srt": "o", "sp": permission})
    return f"{url_of(source)}?{query}{token}"


def copy(
    source: Resource, target: Resource, query: str = "", headers: HeaderChanges | None = None, url: str = ""
) -> Answer:
    """Send a write of a target from the URL of a source."""
    sent = {"x-ms-copy-source": url or read_url(source), **(headers or {})}
    return target.send("PUT", query, sent, body=b"")


def test_metadata_of_the_request_replace_those_of_the_source(blob: Resource, missing: Resource) -> None:
    blob.put(b"x", {"x-ms-meta-colour": "red"}).expect(201)
    copy(blob, missing).expect(202)
    assert missing.send("HEAD").expect(200).header("x-ms-meta-colour") == "red"
    copy(blob, missing, headers={"x-ms-meta-size": "1"}).expect(202)
    found = missing.send("HEAD").expect(200)
    assert (found.header("x-ms-meta-size"), found.header("x-ms-meta-colour")) == ("1", None)


def test_a_snapshot_of_an_append_blob_is_copied_as_it_was(shared: Container, missing: Resource) -> None:
    source, append = Resource(shared, new_name()), "comp=appendblock"
    source.send("PUT", headers=APPEND_BLOB).expect(201)
    source.send("PUT", append, body=LARGE).expect(201)
    past = source.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    source.send("PUT", append, body=b"small").expect(201)
    copy(source, missing, url=read_url(source, query=f"snapshot={quote(past)}&")).expect(202)
    assert missing.send("GET").body == LARGE
    missing.send("PUT", append, body=b"end").expect(201)
    assert missing.send("GET").body == LARGE + b"end"
    assert source.send("GET").body == LARGE + b"small"


def test_a_blob_may_be_copied_onto_itself(blob: Resource) -> None:
    blob.put(LARGE).expect(201)
    copy(blob, blob, headers={"x-ms-meta-a": "b"}).expect(202)
    found = blob.send("GET").expect(200)
    assert (found.body, found.header("x-ms-meta-a")) == (LARGE, "b")


@pytest.mark.parametrize(
    ("url", "status", "code"),
    [
        ("http://169.254.169.254/latest/meta-data", 404, "ResourceNotFound"),
        ("http://127.0.0.1:22/docs/source", 404, "ResourceNotFound"),
    ],
)
def test_a_source_elsewhere(missing: Resource, url: str, status: int, code: str) -> None:
    for kind in KINDS:
        answer = copy(missing, missing, headers=kind, url=url)
        assert answer.code == (status, "CannotVerifyCopySource")
        assert answer.header("x-ms-copy-source-error-code") == code
    assert missing.send("HEAD").status == 404


def test_a_source_that_the_request_may_not_read(blob: Resource, shared: Container, missing: Resource) -> None:
    absent = Resource(shared, new_name())
    for url, status, code in (
        (read_url(absent), 404, "BlobNotFound"),
        (read_url(blob, "w"), 403, "AuthorizationPermissionMismatch"),
    ):
        for kind in KINDS:
            answer = copy(blob, missing, headers=kind, url=url)
            assert answer.code == (status, "CannotVerifyCopySource")
            assert answer.header("x-ms-copy-source-error-code") == code
    assert missing.send("HEAD").status == 404


def test_a_destination_of_another_type_stays(blob: Resource, missing: Resource) -> None:
    missing.send("PUT", headers=APPEND_BLOB).expect(201)
    assert copy(blob, missing).code == (409, "InvalidBlobType")
    assert missing.send("HEAD").expect(200).header("x-ms-blob-type") == "AppendBlob"


def test_writes_from_a_url(blob: Resource, shared: Container) -> None:
    blob.put(LARGE, {"x-ms-blob-content-type": "text/plain"}).expect(201)
    whole, blocks, log, page = (Resource(shared, new_name()) for _ in range(4))
    copy(blob, whole, headers=BLOCK_BLOB).expect(201)
    found = whole.send("GET").expect(200)
    assert (found.body, found.header("Content-Type")) == (LARGE, "text/plain")
    part = {"x-ms-source-range": "bytes=100-299"}
    copy(blob, blocks, "comp=block&blockid=YQ%3D%3D", part).expect(201)
    shared.put_list(blocks.name, ("Latest", "a")).expect(201)
    assert blocks.send("GET").body == LARGE[100:300]
    log.send("PUT", headers=APPEND_BLOB).expect(201)
    for _ in range(2):
        copy(blob, log, "comp=appendblock", part).expect(201)
    assert log.send("GET").body == LARGE[100:300] * 2
    page.send("PUT", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}).expect(201)
    copy(blob, page, "comp=page", PAGE).expect(201)
    assert page.send("GET").body == bytes(512) + LARGE[:512]


@pytest.mark.parametrize("kind", KINDS, ids=["Copy Blob", "Put Blob From URL"])
def test_tags_are_copied_on_request_alone(blob: Resource, missing: Resource, kind: dict[str, str]) -> None:
    blob.put(b"x", {"x-ms-tags": "colour=red"}).expect(201)
    asking, count = {**kind, "x-ms-copy-source-tag-option": "COPY"}, "x-ms-tag-count"
    assert copy(blob, missing, headers=kind).status in (201, 202)
    assert missing.send("HEAD").expect(200).header(count) is None
    rejected = copy(blob, missing, headers=asking)
    assert rejected.code == (403, "CannotVerifyCopySource"), "the SAS of the source permits no tags"
    url = read_url(blob, "rt")
    assert copy(blob, missing, headers=asking, url=url).status in (201, 202)
    assert missing.send("HEAD").expect(200).header(count) == "1"
    both = copy(blob, missing, headers={**asking, "x-ms-tags": "a=b"}, url=url)
    assert both.code == (400, "BothUserTagsAndSourceTagsCopyPresentException")


@pytest.mark.parametrize(
    ("is_sealed", "header", "seals"),
    [
        (True, None, True),
        (True, "false", False),
        (True, "true", True),
        (False, None, False),
        (False, "false", False),
        (False, "true", True),
    ],
)
def test_a_copy_is_sealed_as_the_request_says_or_else_as_its_source(
    shared: Container, is_sealed: bool, header: str | None, seals: bool
) -> None:
    source, copy = Resource(shared, new_name()), Resource(shared, new_name())
    source.send("PUT", headers=APPEND_BLOB).expect(201)
    if is_sealed:
        source.send("PUT", "comp=seal").expect(200)
    copy.send("PUT", headers={"x-ms-copy-source": url_of(source), "x-ms-seal-blob": header}).expect(202)
    assert copy.send("HEAD").expect(200).header("x-ms-blob-sealed") == ("true" if seals else None)
    assert copy.send("PUT", "comp=appendblock", body=b"x").status == (409 if seals else 201)
    assert source.send("HEAD").header("x-ms-blob-sealed") == ("true" if is_sealed else None)


def test_a_block_blob_is_not_sealed(blob: Resource, missing: Resource) -> None:
    headers = {"x-ms-copy-source": url_of(blob), "x-ms-seal-blob": "true"}
    assert missing.send("PUT", headers=headers).code == (400, "InvalidHeaderValue")
    missing.send("PUT", headers=headers | {"x-ms-seal-blob": "false"}).expect(202)
