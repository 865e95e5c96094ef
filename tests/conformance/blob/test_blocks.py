"""Blocks and lists of them. Source: reference §36.2, §36.5."""

import base64
import hashlib
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import xml_text

from .blobs import Container, id_of

LIST = "comp=blocklist&blocklisttype=all"


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


def test_blocks_that_cannot_be(container: Container) -> None:
    assert container.put_block("b", "a", b"").code == (400, "InvalidHeaderValue")
    assert container.send("PUT", "b", "comp=block&blockid=QQ", body=b"x").code == (400, "InvalidQueryParameterValue")
    container.put_block("b", "a")
    assert container.put_block("b", "aa").code == (400, "InvalidBlobOrBlock")


def test_an_uncommitted_blob_has_a_list_and_no_version(container: Container) -> None:
    container.put_block("b", "a")
    answer = container.send("GET", "b", LIST).expect(200)
    assert answer.header("ETag") is None
    assert sizes(container)["UncommittedBlocks"] == [(id_of("a"), "1")]
    assert container.send("GET", "b", "comp=blocklist").expect(200).body.endswith(b"<CommittedBlocks /></BlockList>")


def test_a_list_stores_headers_and_creates_only_once(container: Container) -> None:
    container.put_block("b", "a")
    headers = {"x-ms-blob-content-type": "text/plain", "x-ms-meta-colour": "red", "If-None-Match": "*"}
    container.put_list("b", ("Latest", "a"), headers=headers).expect(201)
    stored = container.send("HEAD", "b").expect(200)
    assert stored.header("Content-Type") == "text/plain"
    assert stored.header("x-ms-meta-colour") == "red"
    assert container.put_list("b", ("Latest", "a"), headers=headers).code == (409, "BlobAlreadyExists")


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
