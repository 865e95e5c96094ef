"""Digests of content: which are computed, compared and returned."""

import hashlib
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.transfers.crc64 import crc64, write_crc64
from lazulite.blob.transfers.digests import (
    SOURCE_HEADERS,
    Digests,
    SentDigests,
    digests_of_write,
    read_sent_digests,
)
from lazulite.protocol.errors import ServiceError

VERSION = "2021-12-02"
CONTENT = b"content"
MD5 = hashlib.md5(CONTENT).digest()
MD5_TEXT = b64encode(MD5).decode()
CRC = crc64(CONTENT)


@given(st.lists(st.binary()))
def test_chunks_make_the_digests_of_the_whole(chunks: list[bytes]) -> None:
    digests = Digests(md5=True, crc64=True)
    for chunk in chunks:
        digests.update(chunk)
    whole = b"".join(chunks)
    assert (digests.length, digests.md5, digests.crc64) == (len(whole), hashlib.md5(whole).digest(), crc64(whole))


def test_sent_digests_are_read() -> None:
    assert read_sent_digests({}, VERSION) == SentDigests()
    assert read_sent_digests({"content-md5": MD5_TEXT}, VERSION) == SentDigests(md5=MD5)
    assert read_sent_digests({"x-ms-content-crc64": write_crc64(CRC)}, VERSION) == SentDigests(crc64=CRC)
    source = {"x-ms-source-content-md5": MD5_TEXT, "content-md5": "x"}
    assert read_sent_digests(source, VERSION, SOURCE_HEADERS) == SentDigests(md5=MD5)


def test_an_old_version_has_no_crc64() -> None:
    headers = {"x-ms-content-crc64": "?", "content-md5": MD5_TEXT}
    assert read_sent_digests(headers, "2018-11-09") == SentDigests(md5=MD5)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"content-md5": MD5_TEXT, "x-ms-content-crc64": write_crc64(CRC)}, "BothCrc64AndMd5HeaderPresent"),
        ({"content-md5": "x"}, "InvalidMd5"),
        ({"content-md5": "AAAA"}, "InvalidMd5"),
        ({"x-ms-content-crc64": "AAAA"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": ""}, "InvalidHeaderValue"),
    ],
)
def test_wrong_headers_are_rejected(headers: dict[str, str], code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_sent_digests(headers, VERSION)
    assert rejected.value.code == code


def test_content_is_compared_with_what_was_sent() -> None:
    for sent in (SentDigests(), SentDigests(md5=MD5), SentDigests(crc64=CRC)):
        digests = Digests(sent)
        digests.update(CONTENT)
        digests.check()
        digests.update(b"more")
        if sent != SentDigests():
            with pytest.raises(ServiceError, match="Mismatch"):
                digests.check()


def test_a_mismatch_names_both_digests() -> None:
    with pytest.raises(ServiceError) as rejected:
        Digests(SentDigests(md5=MD5)).check()
    empty = "1B2M2Y8AsgTpgAmY7PhCfg=="
    assert rejected.value.details == (("UserSpecifiedMd5", MD5_TEXT), ("ServerCalculatedMd5", empty))
    with pytest.raises(ServiceError) as rejected:
        Digests(SentDigests(crc64=CRC)).check()
    assert rejected.value.code == "Crc64Mismatch"
    assert dict(rejected.value.details)["ServerCalculatedCrc"] == "AAAAAAAAAAA="


@pytest.mark.parametrize(
    ("sent", "version", "both", "names"),
    [
        (SentDigests(), "2018-11-09", True, ["Content-MD5"]),
        (SentDigests(), "2018-11-09", False, ["Content-MD5"]),
        (SentDigests(), "2019-02-02", True, ["Content-MD5", "x-ms-content-crc64"]),
        (SentDigests(), "2019-02-02", False, ["x-ms-content-crc64"]),
        (SentDigests(crc64=1), "2019-02-02", False, ["x-ms-content-crc64"]),
        (SentDigests(md5=MD5), "2019-02-02", False, ["Content-MD5"]),
        (SentDigests(md5=MD5), "2026-10-06", False, ["Content-MD5", "x-ms-content-crc64"]),
    ],
)
def test_a_response_has_what_its_version_has(sent: SentDigests, version: str, both: bool, names: list[str]) -> None:
    digests = digests_of_write(sent, version, both=both)
    assert [name for name, _ in digests.headers()] == names


def test_headers_of_empty_content() -> None:
    expected = [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("x-ms-content-crc64", "AAAAAAAAAAA=")]
    assert digests_of_write(SentDigests(), VERSION, both=True).headers() == expected
