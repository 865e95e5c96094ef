"""Blocks and lists of them. Source: reference §36.2, §36.5."""

import base64
import hashlib
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import xml_text

from .blobs import Container, id_of

LIST = "comp=blocklist&blocklisttype=all"
CHANGE = ("ETag", "Last-Modified")
"""The headers that tell whether a blob was changed."""


def sizes(container: Container, query: str = LIST) -> dict[str, list[tuple[str, str]]]:
    root = ET.fromstring(xml_text(container.send("GET", "b", query).expect(200).body))
    return {part.tag: [(each.findtext("Name", ""), each.findtext("Size", "")) for each in part] for part in root}


def test_blocks_become_a_blob_in_the_order_of_the_list(container: Container) -> None:
    for name in "abc":
        container.put_block("b", name, name.encode() * 20_000).expect(201)
    assert container.send("GET", "b").status == 404
    container.put_list("b", ("Latest", "c"), ("Uncommitted", "a"), ("Latest", "c")).expect(201)
    assert container.send("GET", "b").expect(200).body == b"c" * 20_000 + b"a" * 20_000 + b"c" * 20_000
    assert sizes(container) == {
        "CommittedBlocks": [(id_of("c"), "20000"), (id_of("a"), "20000"), (id_of("c"), "20000")],
        "UncommittedBlocks": [],
    }


def test_a_list_takes_committed_blocks(container: Container) -> None:
    for name in "ab":
        container.put_block("b", name, name.encode())
    container.put_list("b", ("Latest", "a"), ("Latest", "b"))
    container.put_block("b", "a", b"new")
    container.put_list("b", ("Committed", "a"), ("Latest", "a"), ("Committed", "b")).expect(201)
    assert container.send("GET", "b").body == b"anewb"


@pytest.mark.parametrize("source", ["Committed", "Uncommitted", "Latest"])
def test_an_unknown_block(container: Container, source: str) -> None:
    container.put("b", b"old")
    assert container.put_list("b", (source, "z")).code == (400, "InvalidBlockList")
    assert container.send("GET", "b").body == b"old"


@pytest.mark.parametrize(
    ("query", "body", "code"),
    [
        ("", b"a", "MissingRequiredQueryParameter"),
        ("&blockid=%25", b"a", "InvalidQueryParameterValue"),
        ("&blockid=QQ", b"a", "InvalidQueryParameterValue"),
        (f"&blockid={'QUFB' * 22}", b"a", "InvalidQueryParameterValue"),
        ("&blockid=QQ%3D%3D", b"", "InvalidHeaderValue"),
    ],
    ids=["no id", "no base64", "no padding", "too long", "no bytes"],
)
def test_blocks_that_cannot_be(container: Container, query: str, body: bytes, code: str) -> None:
    assert container.send("PUT", "b", f"comp=block{query}", body=body).code == (400, code)


def test_ids_of_an_upload_have_one_length(container: Container) -> None:
    container.put_block("b", "one").expect(201)
    assert container.put_block("b", "three").code == (400, "InvalidBlobOrBlock")
    container.put_list("b", ("Latest", "one")).expect(201)
    container.put_block("b", "three").expect(201)


def test_a_block_leaves_the_blob_as_it_is(container: Container) -> None:
    container.put("b", b"x").expect(201)
    before = container.send("HEAD", "b")
    container.put_block("b", "a").expect(201)
    after = container.send("GET", "b").expect(200)
    assert [after.header(name) for name in CHANGE] == [before.header(name) for name in CHANGE]
    assert after.body == b"x"


def test_a_list_of_blocks_tells_of_the_blob_only_if_there_is_one(container: Container) -> None:
    assert container.send("GET", "b", "comp=blocklist").code == (404, "BlobNotFound")
    container.put_block("b", "a").expect(201)
    answer = container.send("GET", "b", "comp=blocklist").expect(200)
    assert [answer.header(name) for name in (*CHANGE, "x-ms-blob-content-length")] == [None] * 3
    assert answer.body.endswith(b"<BlockList><CommittedBlocks /></BlockList>")
    container.put_list("b", ("Latest", "a"), ("Latest", "a")).expect(201)
    answer = container.send("GET", "b", "comp=blocklist&blocklisttype=uncommitted").expect(200)
    assert None not in [answer.header(name) for name in CHANGE]
    assert answer.header("x-ms-blob-content-length") == "2"
    assert answer.body.endswith(b"<BlockList><UncommittedBlocks /></BlockList>")
    wrong = container.send("GET", "b", "comp=blocklist&blocklisttype=most")
    assert wrong.code == (400, "InvalidQueryParameterValue")


def test_a_snapshot_has_its_own_list_and_no_upload(container: Container) -> None:
    large = bytes(20_000)
    container.put_block("b", "a", large).expect(201)
    container.put_list("b", ("Latest", "a")).expect(201)
    past = f"snapshot={container.send('PUT', 'b', 'comp=snapshot').expect(201).required('x-ms-snapshot')}"
    container.put_block("b", "b").expect(201)
    container.put_list("b", ("Latest", "b")).expect(201)
    container.put_block("b", "c").expect(201)
    assert sizes(container, f"{LIST}&{past}") == {"CommittedBlocks": [(id_of("a"), "20000")], "UncommittedBlocks": []}
    assert container.send("GET", "b", past).expect(200).body == large


def test_an_uncommitted_blob_has_a_list_and_no_version(container: Container) -> None:
    container.put_block("b", "a")
    answer = container.send("GET", "b", LIST).expect(200)
    assert answer.header("ETag") is None
    assert sizes(container)["UncommittedBlocks"] == [(id_of("a"), "1")]
    assert container.send("GET", "b", "comp=blocklist").expect(200).body.endswith(b"<CommittedBlocks /></BlockList>")


def test_a_list_stores_headers(container: Container) -> None:
    container.put_block("b", "a").expect(201)
    stored = {"x-ms-blob-content-type": "text/plain", "x-ms-blob-content-md5": "AAAA", "x-ms-meta-colour": "red"}
    written = container.put_list("b", ("Latest", "a"), headers={"Content-Type": "application/xml", **stored}).expect(
        201
    )
    read = container.send("HEAD", "b").expect(200)
    names = ("Content-Type", "Content-MD5", "x-ms-meta-colour", "ETag")
    assert [read.header(name) for name in names] == ["text/plain", "AAAA", "red", written.etag]
    again = container.put_list("b", ("Latest", "a")).expect(201)
    read = container.send("HEAD", "b").expect(200)
    assert [read.header(name) for name in names] == ["application/octet-stream", None, None, again.etag]
    assert again.etag != written.etag


def test_a_list_creates_only_once(container: Container) -> None:
    container.put_block("b", "a").expect(201)
    new = {"If-None-Match": "*"}
    assert container.put_list("b", ("Latest", "a"), headers={"If-Match": "*"}).code == (412, "ConditionNotMet")
    container.put_list("b", ("Latest", "a"), headers=new).expect(201)
    assert container.put_list("b", ("Latest", "a"), headers=new).code == (409, "BlobAlreadyExists")
    conditional = container.put_list("b", ("Latest", "z"), headers={"If-Match": '"0x1"'})
    assert conditional.code == (412, "ConditionNotMet"), "conditions come before the blocks"


def test_a_digest_that_does_not_match(container: Container) -> None:
    wrong = base64.b64encode(bytes(16)).decode()
    assert container.put("b", b"data", Content_MD5=wrong).code == (400, "Md5Mismatch")
    assert container.put("b", b"data", x_ms_content_crc64="AAAAAAAAAAA=").code == (400, "Crc64Mismatch")
    right = base64.b64encode(hashlib.md5(b"data", usedforsecurity=False).digest()).decode()
    assert container.put("b", b"data", Content_MD5=right).expect(201).header("Content-MD5") == right


def test_recorded_crc64(container: Container) -> None:
    assert container.put("b", b"a" * 1024).expect(201).header("x-ms-content-crc64") == "ov8U1LLnyKc="
    answer = container.send(
        "GET", "b", headers={"x-ms-range": "bytes=0-1023", "x-ms-range-get-content-crc64": "true"}
    ).expect(206)
    assert answer.header("x-ms-content-crc64") == "ov8U1LLnyKc="
