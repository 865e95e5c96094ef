"""Get Blob, Get Blob Properties and Get Blob Metadata: ranges, headers, overrides of a SAS."""

import base64
import hashlib

import pytest
from tests.conformance.sas import moment, query_text
from tests.conformance.signing import Endpoint, anonymous, signature

from .blobs import Container, new_name
from .resources import Resource

CONTENT = b"0123456789"


def md5_of(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


@pytest.mark.parametrize(
    ("header", "status", "content", "of_whole"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=0-", 206, CONTENT, "bytes 0-9/10"),
        ("bytes=0-9", 206, CONTENT, "bytes 0-9/10"),
        ("bytes=5-100", 206, b"56789", "bytes 5-9/10"),
        ("bytes=9-9", 206, b"9", "bytes 9-9/10"),
    ],
)
@pytest.mark.parametrize("name", ["Range", "x-ms-range"])
def test_ranges(blob: Resource, name: str, header: str, status: int, content: bytes, of_whole: str) -> None:
    answer = blob.send("GET", "", {name: header}).expect(status)
    assert (answer.body, answer.header("Content-Range")) == (content, of_whole)
    assert answer.header("Content-Length") == str(len(content))
    assert answer.header("Accept-Ranges") == "bytes"
    assert answer.header("x-ms-blob-content-md5") == md5_of(CONTENT)
    assert answer.header("Content-MD5") is None


@pytest.mark.unverified
@pytest.mark.parametrize("header", ["bytes=-3", "bytes=0-1,4-5", "bytes=4-2", "lines=1-2", "bytes=x-"])
def test_ranges_that_are_ignored(blob: Resource, header: str) -> None:
    answer = blob.send("GET", "", {"Range": header}).expect(200)
    assert (answer.body, answer.header("Content-Range")) == (CONTENT, None)


def test_the_range_of_the_service_comes_first(blob: Resource) -> None:
    assert blob.send("GET", "", {"Range": "bytes=0-1", "x-ms-range": "bytes=2-3"}).expect(206).body == b"23"


def test_ranges_beyond_the_end(blob: Resource) -> None:
    answer = blob.send("GET", "", {"x-ms-range": "bytes=10-"})
    message = "The range specified is invalid for the current size of the resource."
    assert answer.rejection == (416, "InvalidRange", message)
    assert answer.header("Content-Range") == "bytes */10"


def test_a_range_of_nothing(blob: Resource) -> None:
    blob.put(b"").expect(201)
    answer = blob.send("GET", "", {"x-ms-range": "bytes=0-33554431"})
    assert answer.code == (416, "InvalidRange")
    assert answer.header("Content-Range") == "bytes */0"
    assert blob.send("GET").expect(200).body == b""


def test_the_digest_of_a_range(blob: Resource) -> None:
    headers = {"x-ms-range": "bytes=2-4", "x-ms-range-get-content-md5": "true"}
    assert blob.send("GET", "", headers).expect(206).header("Content-MD5") == md5_of(b"234")
    blob.put(bytes(4 * 1024 * 1024 + 1)).expect(201)
    headers["x-ms-range"] = f"bytes=0-{4 * 1024 * 1024}"
    assert blob.send("GET", "", headers).code == (400, "OutOfRangeInput")


def test_properties(shared: Container) -> None:
    blob = Resource(shared, new_name())
    stored = {
        "x-ms-blob-content-type": "text/plain; charset=utf-8",
        "x-ms-blob-content-encoding": "identity",
        "x-ms-blob-content-language": "de",
        "x-ms-blob-content-disposition": "inline",
        "x-ms-blob-cache-control": "no-store",
        "x-ms-meta-Key": "value",
    }
    created = blob.put(CONTENT, stored).expect(201)
    for method in ("GET", "HEAD"):
        answer = blob.send(method).expect(200)
        assert answer.body == (CONTENT if method == "GET" else b"")
        assert answer.header("Content-Length") == "10"
        assert answer.header("Content-MD5") == md5_of(CONTENT) == created.header("Content-MD5")
        assert (answer.etag, answer.header("Last-Modified")) == (created.etag, created.header("Last-Modified"))
        assert answer.header("x-ms-blob-type") == "BlockBlob"
        assert answer.header("x-ms-server-encrypted") == "true"
        assert answer.header("x-ms-creation-time") == created.header("Last-Modified")
        assert answer.header("x-ms-meta-Key") == "value"
        for name, text in stored.items():
            if name.startswith("x-ms-blob-"):
                assert answer.header(name.removeprefix("x-ms-blob-")) == text
    assert blob.send("HEAD").header("x-ms-access-tier") == "Hot"
    assert blob.send("HEAD").header("x-ms-access-tier-inferred") == "true"


def test_head_takes_no_range(blob: Resource) -> None:
    answer = blob.send("HEAD", "", {"x-ms-range": "bytes=2-4"}).expect(200)
    assert answer.header("Content-Length") == "10"


def test_metadata_alone(blob: Resource) -> None:
    blob.send("PUT", "comp=metadata", {"x-ms-meta-Key": "v"}).expect(200)
    for method in ("GET", "HEAD"):
        answer = blob.send(method, "comp=metadata").expect(200)
        assert answer.header("x-ms-meta-Key") == "v"
        assert answer.body == b""
        assert answer.header("x-ms-blob-type") is None
        assert answer.header("Content-MD5") is None


def test_what_is_missing(missing: Resource, shared: Container) -> None:
    nowhere = Resource(Container(shared.blobs, new_name()), "a")
    assert missing.send("GET").rejection == (404, "BlobNotFound", "The specified blob does not exist.")
    assert nowhere.send("GET").rejection == (404, "ContainerNotFound", "The specified container does not exist.")
    for resource, code in ((missing, "BlobNotFound"), (nowhere, "ContainerNotFound")):
        answer = resource.send("HEAD")
        assert (answer.status, answer.header("x-ms-error-code"), answer.body) == (404, code, b"")
        assert answer.header("Content-Type") is None, "a client may parse an empty document"


def test_snapshots(blob: Resource) -> None:
    time = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    blob.put(b"new").expect(201)
    answer = blob.send("GET", f"snapshot={time}").expect(200)
    assert answer.body == CONTENT
    assert answer.header("x-ms-lease-state") is None
    assert blob.send("GET", "snapshot=yesterday").code == (400, "InvalidQueryParameterValue")
    assert blob.send("GET", "snapshot=2019-06-17T23:55:48.8621956Z").code == (404, "BlobNotFound")


OVERRIDES = {
    "rscc": ("Cache-Control", "no-cache"),
    "rscd": ("Content-Disposition", "attachment; filename=x"),
    "rsce": ("Content-Encoding", "x-own"),
    "rscl": ("Content-Language", "fr"),
    "rsct": ("Content-Type", "image/png"),
}


def test_overrides_of_a_sas(blob: Resource, blob_endpoint: Endpoint) -> None:
    values = {"sv": "2020-12-06", "se": moment(60), "sp": "r", "sr": "b"}
    values |= {name: text for name, (_, text) in OVERRIDES.items()}
    resource = f"/blob/{blob_endpoint.account}/{blob.container.name}/{blob.name}"
    lines = ["r", "", values["se"], resource, "", "", "", values["sv"], "b", "", ""]
    lines += [values[name] for name in OVERRIDES]
    query = query_text(values | {"sig": signature(blob_endpoint.key, "\n".join(lines))})
    for method in ("GET", "HEAD"):
        answer = blob.send(method, query, signer=anonymous).expect(200)
        for header, text in OVERRIDES.values():
            assert answer.header(header) == text
    forged = query.replace("image%2Fpng", "text%2Fhtml")
    assert blob.send("GET", forged, signer=anonymous).code == (403, "AuthenticationFailed")
    signed = blob.send("GET", "rsct=text%2Fhtml").expect(200)
    assert signed.header("Content-Type") == "application/octet-stream"
