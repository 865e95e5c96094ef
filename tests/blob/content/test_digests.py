"""Checksums of content: which are compared, computed, stored and returned. The table is run over HTTP elsewhere."""

import hashlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.content.crc64 import crc64, crc64_to_bytes
from lazulite.blob.content.digests import (
    BLOB_MD5,
    CONTENT_CRC64,
    CONTENT_MD5,
    CRC64,
    HEADERS,
    MD5,
    PUT_BLOB,
    PUT_BLOCK,
    RULES,
    SOURCE_MD5,
    ChecksumHeader,
    Digests,
    Rule,
    Sent,
    Stored,
    digests_of_request,
    read_sent,
)
from lazulite.protocol.errors import ServiceError
from tests.docs_support import table_rows

VERSION = "2021-12-02"
CONTENT = b"content"
DIGEST = hashlib.md5(CONTENT).digest()
MD5_TEXT = b64encode(DIGEST).decode()
CRC = crc64_to_bytes(crc64(CONTENT))
CRC_TEXT = b64encode(CRC).decode()


def from_url(rule: Rule) -> Rule:
    assert rule.from_url is not None
    return rule.from_url


@given(st.lists(st.binary()))
def test_chunks_make_the_checksums_of_the_whole(chunks: list[bytes]) -> None:
    digests = Digests(answered=(MD5,), also=(CRC64,))
    for chunk in chunks:
        digests.update(chunk)
    whole = b"".join(chunks)
    assert digests.length == len(whole)
    assert digests.value(MD5) == hashlib.md5(whole).digest()
    assert digests.value(CRC64) == crc64_to_bytes(crc64(whole))
    assert [name for name, _ in digests.headers()] == ["Content-MD5"]


def test_checksums_of_a_request_are_read() -> None:
    assert list(read_sent(PUT_BLOCK, {}, VERSION)) == []
    assert read_sent(PUT_BLOCK, {"content-md5": MD5_TEXT}, VERSION) == [Sent(CONTENT_MD5, DIGEST)]
    assert read_sent(PUT_BLOCK, {"x-ms-content-crc64": CRC_TEXT}, VERSION) == [Sent(CONTENT_CRC64, CRC)]
    source = {"x-ms-source-content-md5": MD5_TEXT, "x-ms-content-crc64": CRC_TEXT}
    sent = [Sent(CONTENT_CRC64, CRC), Sent(SOURCE_MD5, DIGEST)]
    assert read_sent(from_url(PUT_BLOCK), source, VERSION) == sent
    assert read_sent(PUT_BLOCK, source, VERSION) == sent[:1]


def test_the_md5_of_a_blob_takes_the_place_of_that_of_the_body() -> None:
    headers = {"x-ms-blob-content-md5": MD5_TEXT, "content-md5": "no base64"}
    assert read_sent(PUT_BLOB, headers, VERSION) == [Sent(BLOB_MD5, DIGEST)]
    with pytest.raises(ServiceError, match="MD5"):
        read_sent(PUT_BLOCK, headers, VERSION)


def test_an_old_version_has_no_crc64() -> None:
    headers = {"x-ms-content-crc64": "?", "content-md5": MD5_TEXT}
    assert read_sent(PUT_BLOCK, headers, "2018-11-09") == [Sent(CONTENT_MD5, DIGEST)]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"content-md5": MD5_TEXT, "x-ms-content-crc64": CRC_TEXT}, "BothCrc64AndMd5HeaderPresent"),
        ({"x-ms-source-content-md5": "x", "x-ms-source-content-crc64": "x"}, "BothCrc64AndMd5HeaderPresent"),
        ({"content-md5": "x"}, "InvalidMd5"),
        ({"content-md5": "é"}, "InvalidMd5"),
        ({"content-md5": "AAAA"}, "InvalidMd5"),
        ({"x-ms-source-content-md5": "AAAA"}, "InvalidMd5"),
        ({"x-ms-content-crc64": "AAAA"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": "AAAAAAAAAAA"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": "AAAAAAAAAAA=\n"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": ""}, "InvalidHeaderValue"),
    ],
)
def test_wrong_headers_are_rejected(headers: dict[str, str], code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_sent(from_url(PUT_BLOCK), headers, VERSION)
    assert rejected.value.code == code


@pytest.mark.parametrize("sent", [Sent(CONTENT_MD5, DIGEST), Sent(CONTENT_CRC64, CRC), Sent(SOURCE_MD5, DIGEST)])
def test_content_is_compared_with_what_was_sent(sent: Sent) -> None:
    digests = Digests([sent])
    digests.update(CONTENT)
    digests.check()
    digests.update(b"more")
    with pytest.raises(ServiceError, match="Mismatch") as rejected:
        digests.check()
    shown = dict(rejected.value.details).values()
    assert (b64encode(sent.value).decode() in shown) is sent.header.is_shown


def test_a_checksum_that_is_only_compared_is_not_returned() -> None:
    assert Digests([Sent(CONTENT_MD5, DIGEST)]).headers() == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.operation)
def test_the_answers_of_a_rule_begin_with_the_newest_and_reach_back_to_the_first_version(rule: Rule) -> None:
    versions = [answer.since for answer in rule.answers]
    assert versions == sorted(versions, reverse=True)
    assert versions[-1] == ""


def test_names_of_operations_differ() -> None:
    assert len({rule.operation for rule in RULES}) == len(RULES)


def test_checksums_of_empty_content() -> None:
    expected = [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-ms-content-crc64", "AAAAAAAAAAA=")]
    assert digests_of_request(PUT_BLOB, {}, VERSION).headers() == expected


def cell_of(rule: Rule, header: ChecksumHeader) -> str:
    found = ["compared"] if header in rule.compared else []
    if header is BLOB_MD5 and rule.stored in (Stored.SENT, Stored.COMPUTED):
        found.append("stored")
    return ", ".join(found) or "–"


def answer_of(rule: Rule, version: str) -> str:
    answer = next(each for each in rule.answers if version >= each.since)
    names = {MD5: "MD5", CRC64: "CRC-64"}
    with_md5, without = (", ".join(names[each] for each in some) for some in answer[1:])
    if with_md5 == without:
        return with_md5 or "–"
    return f"{with_md5} if sent, else {without}" if without else f"{with_md5} if sent"


def test_the_reference_has_the_rows_of_the_table() -> None:
    rows = table_rows("docs/protocol/blob-writes.md")
    names, *compared = (row for row in rows if len(row) == 8)
    assert names[1:6] == [f"`{MD5.header if each is CONTENT_MD5 else each.name}`" for each in HEADERS]
    assert compared == [
        [
            rule.operation,
            *(cell_of(rule, header) for header in HEADERS),
            "yes" if rule.takes_structure else "no",
            rule.stored.value,
        ]
        for rule in RULES
    ]
    columns, *answers = (row for row in rows if len(row) == 5)
    versions = sorted({answer.since for rule in RULES for answer in rule.answers if answer.since})
    assert columns == ["Operation", f"Before {versions[0]}", *(f"From {version}" for version in versions)]
    assert answers == [[rule.operation, *(answer_of(rule, version) for version in ("", *versions))] for rule in RULES]
