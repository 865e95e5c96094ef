"""Checksums of requests and responses: each cell of the tables of reference §36.5, which this module reads."""

import hashlib
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import pytest
from awscrt.checksums import crc64nvme  # type: ignore[import-untyped]  # The package has no types.
from tests.conformance.answers import Answer, xml_text
from tests.conformance.sas import account_sas
from tests.docs_support import table_rows

from .blobs import Container, id_of, new_name
from .resources import Resource
from .test_errors import APPEND_BLOB

PAGE = "docs/protocol/blob-writes.md"
MD5, CRC64 = "Content-MD5", "x-ms-content-crc64"
CONTENT = bytes(range(256)) * 2
"""One page."""
EIGHT_BYTES = "MDAwMDAwMDA="
"""An MD5 of another length, in base64."""
STRUCTURE = "XSM/1.0; properties=crc64"
LIST = f"<BlockList><Latest>{id_of('a')}</Latest></BlockList>".encode()
TAGS = b"<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"
POLICIES = b"<SignedIdentifiers></SignedIdentifiers>"
BLOCK = f"comp=block&blockid={quote(id_of('a'), safe='')}"
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
PAGE_BLOB = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
UPDATE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
CLEAR = {"x-ms-page-write": "clear", "x-ms-range": "bytes=0-511"}
USUAL = "2021-12-02"

Headers = Mapping[str, str]


def md5_of(content: bytes) -> str:
    """The MD5 of content, as headers have it."""
    return b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def crc64_of(content: bytes) -> str:
    """The CRC-64 of content, as headers have it."""
    return b64encode(struct.pack("<Q", crc64nvme(content))).decode()


def structured(content: bytes) -> bytes:
    """Content as a structured body of one segment."""
    checksum = struct.pack("<Q", crc64nvme(content))
    length = 13 + 10 + len(content) + 2 * len(checksum)
    return struct.pack("<BQHH", 1, length, 1, 1) + struct.pack("<HQ", 1, len(content)) + content + 2 * checksum


class Source(NamedTuple):
    """A blob to copy from; its stored MD5 is none of its content."""

    url: str


def _put(blob: Resource, **headers: str) -> None:
    blob.put(b"before", {name.replace("_", "-"): text for name, text in headers.items()}).expect(201)


def _log(blob: Resource) -> None:
    blob.send("PUT", headers=APPEND_BLOB | {"x-ms-blob-content-md5": EIGHT_BYTES}).expect(201)


def _pages(blob: Resource) -> None:
    blob.send("PUT", headers=PAGE_BLOB | {"x-ms-blob-content-md5": EIGHT_BYTES}).expect(201)


def _uncommitted(blob: Resource) -> None:
    blob.send("PUT", BLOCK, body=b"before").expect(201)


def _nothing(_: Resource) -> None:
    """The operation needs no blob."""


class Operation(NamedTuple):
    """How a client requests an operation."""

    row: str
    """The operation of the tables."""
    query: str = ""
    headers: Headers = MappingProxyType({})
    body: bytes = b""
    content: bytes = b""
    """What the checksums are of."""
    prepare: Callable[[Resource], None] = _nothing
    """Makes what the operation needs."""
    reads_source: bool = False
    since: str = ""
    """The first version that has it."""
    on_container: bool = False

    def send(self, blob: Resource, source: Source, headers: Headers, version: str, body: bytes | None = None) -> Answer:
        """Send the request with more headers, perhaps with another body."""
        url = {"x-ms-copy-source": source.url} if self.reads_source else {}
        target = Resource(blob.container) if self.on_container else blob
        sent = self.body if body is None else body
        return target.send("PUT", self.query, {**self.headers, **url, **headers}, body=sent, version=version)


OPERATIONS: dict[str, Operation] = {
    "block blob": Operation("Put Blob", "", BLOCK_BLOB, CONTENT, CONTENT),
    "empty block blob": Operation("Put Blob", "", BLOCK_BLOB),
    "append blob": Operation("Put Blob of an append or page blob", "", APPEND_BLOB, since="2015-02-21"),
    "page blob": Operation("Put Blob of an append or page blob", "", PAGE_BLOB),
    "blob from a URL": Operation(
        "Put Blob From URL", "", BLOCK_BLOB, content=CONTENT, reads_source=True, since="2020-04-08"
    ),
    "block": Operation("Put Block", BLOCK, {}, CONTENT, CONTENT),
    "block from a URL": Operation(
        "Put Block From URL", BLOCK, {}, content=CONTENT, reads_source=True, since="2018-11-09"
    ),
    "list": Operation("Put Block List", "comp=blocklist", {}, LIST, LIST, _uncommitted),
    "append": Operation("Append Block", "comp=appendblock", {}, CONTENT, CONTENT, _log, since="2015-02-21"),
    "append from a URL": Operation(
        "Append Block From URL", "comp=appendblock", {}, b"", CONTENT, _log, True, since="2018-11-09"
    ),
    "page": Operation("Put Page", "comp=page", UPDATE, CONTENT, CONTENT, _pages),
    "page from a URL": Operation(
        "Put Page From URL",
        "comp=page",
        UPDATE | {"x-ms-source-range": "bytes=0-511"},
        b"",
        CONTENT,
        _pages,
        True,
        since="2018-11-09",
    ),
    "clearing": Operation("Put Page that clears", "comp=page", CLEAR, prepare=_pages),
    "copy": Operation("Copy Blob", reads_source=True),
    "synchronous copy": Operation(
        "Copy Blob From URL", "", {"x-ms-requires-sync": "true"}, b"", CONTENT, reads_source=True, since="2018-11-09"
    ),
    "properties": Operation("Set Blob Properties", "comp=properties", prepare=_put),
    "tags": Operation("Set Blob Tags", "comp=tags", {}, TAGS, TAGS, _put, since="2019-12-12"),
    "metadata": Operation("any other", "comp=metadata", prepare=_put),
    "snapshot": Operation("any other", "comp=snapshot", prepare=_put),
    "policies": Operation("any other", "comp=acl", {}, POLICIES, POLICIES, on_container=True),
}
"""At least one of each row."""

_ROWS = table_rows(PAGE)
_NAMES, *_CELLS = (row for row in _ROWS if len(row) == 8)
COMPARED = {row[0]: dict(zip((name.strip("`") for name in _NAMES), row, strict=True)) for row in _CELLS}
"""By operation, the cells of the first table by their column."""
_COLUMNS, *_CELLS = (row for row in _ROWS if len(row) == 5 and row[0] != "head")
ANSWERED = {row[0]: dict(zip(_COLUMNS, row, strict=True)) for row in _CELLS}
"""By operation, the cells of the second table by their column."""
HEADERS = {
    MD5: MD5,
    CRC64: CRC64,
    "x-ms-blob-content-md5": MD5,
    "x-ms-source-content-md5": MD5,
    "x-ms-source-content-crc64": CRC64,
}
"""The headers of the first table; for each, the header of responses of its kind."""
OF = {MD5: md5_of, CRC64: crc64_of}
VERSIONS = {
    "Before 2012-02-12": ("2011-08-18",),
    "From 2012-02-12": ("2012-02-12", "2018-11-09"),
    "From 2019-02-02": ("2019-02-02", "2020-04-08", "2026-06-06"),
    "From 2026-10-06": ("2026-10-06", "2026-12-06"),
}
"""Versions of each column of the second table."""


def is_compared(operation: Operation, header: str) -> bool:
    """Tell whether an operation compares a header."""
    return "compared" in COMPARED[operation.row][header]


@pytest.fixture(scope="module")
def source(shared: Container) -> Source:
    """A blob of the same account."""
    return source_in(shared)


def source_in(container: Container) -> Source:
    """Make a source; return it with a SAS."""
    blob = Resource(container, new_name())
    blob.send("PUT", BLOCK, body=CONTENT).expect(201)
    container.put_list(blob.name, ("Latest", "a"), headers={"x-ms-blob-content-md5": EIGHT_BYTES}).expect(201)
    endpoint = container.blobs.client.endpoint
    sas = account_sas(endpoint, {"ss": "b", "srt": "o", "sp": "r"})
    return Source(f"{endpoint.base}{container.name}/{blob.name}?{sas}")


def state(blob: Resource) -> list[object]:
    """What a rejected write must leave as it is."""
    found, container = blob.send("HEAD"), Resource(blob.container).send("HEAD").expect(200)
    parts = [blob.send("GET", query) for query in ("comp=blocklist&blocklisttype=all", "comp=tags")]
    bodies = [part.body if part.status == 200 else b"" for part in parts]
    return [found.status, found.header("ETag"), container.etag, *bodies]


def test_each_row_of_the_tables_is_requested() -> None:
    rows = {operation.row for operation in OPERATIONS.values()}
    assert rows == COMPARED.keys() == ANSWERED.keys()
    assert set(_COLUMNS[1:]) == VERSIONS.keys()
    assert set(HEADERS) < {name.strip("`") for name in _NAMES}


CELLS = [(name, header) for name in OPERATIONS for header in HEADERS]
MALFORMED = {MD5: ("InvalidMd5", ("x", "AAAA", "")), CRC64: ("InvalidHeaderValue", ("x", "AAAA", ""))}


@pytest.mark.parametrize(("name", "header"), [cell for cell in CELLS if is_compared(OPERATIONS[cell[0]], cell[1])])
def test_a_header_that_is_compared(missing: Resource, source: Source, name: str, header: str) -> None:
    operation, kind = OPERATIONS[name], HEADERS[header]
    operation.prepare(missing)
    before = state(missing)
    wrong = {header: OF[kind](b"another")}
    mismatch = "Md5Mismatch" if kind == MD5 else "Crc64Mismatch"
    assert operation.send(missing, source, wrong, USUAL).code == (400, mismatch)
    code, values = MALFORMED[kind]
    for value in values:
        assert operation.send(missing, source, {header: value}, USUAL).code == (400, code), value
    assert state(missing) == before
    answer = operation.send(missing, source, {header: OF[kind](operation.content)}, USUAL)
    assert answer.status in (200, 201, 202, 204), answer


@pytest.mark.parametrize(("name", "header"), [cell for cell in CELLS if not is_compared(OPERATIONS[cell[0]], cell[1])])
def test_a_header_that_is_not_compared(missing: Resource, source: Source, name: str, header: str) -> None:
    operation, wrong = OPERATIONS[name], OF[HEADERS[header]](b"another")
    operation.prepare(missing)
    assert operation.send(missing, source, {header: wrong}, USUAL).status in (200, 201, 202, 204)
    if operation.row not in ("Put Block", "Put Block From URL") and not operation.on_container:
        is_stored = COMPARED[operation.row][header] == "stored"
        assert (missing.send("HEAD").expect(200).header(MD5) == wrong) is is_stored


STORED = [(name, header) for name, header in CELLS if COMPARED[OPERATIONS[name].row][header] == "stored"]


@pytest.mark.parametrize(("name", "header"), STORED)
def test_an_md5_that_is_stored_may_have_any_length(missing: Resource, source: Source, name: str, header: str) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    operation.send(missing, source, {header: EIGHT_BYTES}, USUAL)
    assert missing.send("HEAD").expect(200).header(MD5) == EIGHT_BYTES


@pytest.mark.unverified
@pytest.mark.parametrize(("name", "header"), STORED)
def test_an_md5_that_is_no_base64(missing: Resource, source: Source, name: str, header: str) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    assert operation.send(missing, source, {header: "no base64"}, USUAL).code == (400, "InvalidMd5")


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_md5_of_the_blob_afterwards(missing: Resource, source: Source, name: str) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    before = missing.send("HEAD").header(MD5)
    expected = {
        "–": before,
        "unchanged": before,
        "sent": None,
        "of the source": EIGHT_BYTES,
        "computed": md5_of(operation.content),
    }
    for version in ("2015-02-21", USUAL):
        if version >= operation.since:
            assert operation.send(missing, source, {}, version).status in (200, 201, 202, 204)
            found = missing.send("HEAD").header(MD5)
            assert found == expected[COMPARED[operation.row]["MD5 of the blob"]]


PAIRS = [(MD5, CRC64), ("x-ms-source-content-md5", "x-ms-source-content-crc64")]


@pytest.mark.parametrize("pair", PAIRS, ids=["own", "of the source"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_md5_and_crc64_in_one_request(missing: Resource, source: Source, name: str, pair: tuple[str, str]) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    both = {header: OF[HEADERS[header]](operation.content) for header in pair}
    answer = operation.send(missing, source, both, USUAL)
    if all(is_compared(operation, header) for header in pair):
        message = "Both x-ms-content-crc64 header and Content-MD5 header are present."
        assert answer.rejection == (400, "BothCrc64AndMd5HeaderPresent", message)
    else:
        assert answer.status in (200, 201, 202, 204)


ANSWERS = [
    (name, version, column, header)
    for name, operation in OPERATIONS.items()
    for column, versions in VERSIONS.items()
    for version in versions
    if version >= operation.since
    for header in [None, *(header for header in HEADERS if is_compared(operation, header))]
]
"""Operations, versions that have them, their column, and each header that is compared; None: the request has none."""


@pytest.mark.parametrize(("name", "version", "column", "header"), ANSWERS)
def test_the_checksums_of_a_response(
    missing: Resource, source: Source, name: str, version: str, column: str, header: str | None
) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    sent = {} if header is None else {header: OF[HEADERS[header]](operation.content)}
    answer = operation.send(missing, source, sent, version)
    assert answer.status in (200, 201, 202, 204), answer
    cell, has_choice, without = ANSWERED[operation.row][column].partition(" if sent")
    if has_choice and not (header and HEADERS[header] == MD5):
        cell = without.removeprefix(", else ")
    names = {"MD5": MD5, "CRC-64": CRC64}
    expected = {names[each]: OF[names[each]](operation.content) for each in cell.split(", ") if each in names}
    assert checksums(answer) == expected


def checksums(answer: Answer) -> Headers:
    """The checksums that a response has."""
    return {each: text for each in (MD5, CRC64) if (text := answer.header(each)) is not None}


@pytest.mark.parametrize(
    ("name", "header"),
    [cell for cell in CELLS if HEADERS[cell[1]] == CRC64 and is_compared(OPERATIONS[cell[0]], cell[1])],
)
def test_an_old_version_has_no_crc64(missing: Resource, source: Source, name: str, header: str) -> None:
    operation, version = OPERATIONS[name], "2018-11-09"
    if operation.since <= version:
        operation.prepare(missing)
        wrong = crc64_of(b"another")
        assert operation.send(missing, source, {header: wrong}, version).status in (200, 201, 202, 204)


@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if each.row != "any other"])
def test_structured_bodies(missing: Resource, source: Source, name: str) -> None:
    operation = OPERATIONS[name]
    operation.prepare(missing)
    takes = COMPARED[operation.row]["Structured body"] == "yes"
    body = structured(operation.body) if takes else None
    headers = {"x-ms-structured-body": STRUCTURE, "x-ms-structured-content-length": str(len(operation.body))}
    answer = operation.send(missing, source, headers, "2026-10-06", body)
    if takes:
        assert answer.expect(201).header("x-ms-structured-body") == STRUCTURE
        assert (answer.header(MD5), answer.header(CRC64)) == (md5_of(operation.body), crc64_of(operation.body))
    elif operation.row != "Set Blob Properties":
        assert answer.code == (400, "UnsupportedHeader")
        assert answer.header("x-ms-structured-body") is None


@pytest.mark.parametrize(
    "name", [name for name, each in OPERATIONS.items() if COMPARED[each.row]["Structured body"] == "yes" and each.body]
)
@pytest.mark.parametrize("header", [MD5, CRC64, "x-ms-blob-content-md5"])
def test_checksums_of_a_structured_body_are_of_its_content(
    missing: Resource, source: Source, name: str, header: str
) -> None:
    operation, body = OPERATIONS[name], structured(OPERATIONS[name].body)
    operation.prepare(missing)
    headers = {"x-ms-structured-body": STRUCTURE, "x-ms-structured-content-length": str(len(operation.body))}
    for checked, status in ((body, 400), (operation.body, 201)):
        sent = {header: OF[HEADERS[header]](checked)}
        answer = operation.send(missing, source, headers | sent, "2026-10-06", body)
        assert answer.status == (status if is_compared(operation, header) else 201)


@pytest.mark.parametrize("data", [b"small", CONTENT * 50], ids=["small", "large"])
def test_a_structured_body_is_stored_without_its_frame(missing: Resource, data: bytes) -> None:
    body = structured(data)
    headers = {"x-ms-structured-body": STRUCTURE, "x-ms-structured-content-length": str(len(data))}
    missing.put(body, headers, version="2026-10-06").expect(201)
    assert missing.send("GET").expect(200).body == data
    broken = body[:-20] + bytes([body[-20] ^ 1]) + body[-19:]
    assert missing.put(broken, headers, version="2026-10-06").code == (400, "Crc64Mismatch")
    other = {**headers, "x-ms-structured-body": "XSM/2.0"}
    assert missing.put(body, other, version="2026-10-06").code == (400, "UnsupportedHeader")


@pytest.mark.parametrize("data", [b"0123456789", CONTENT * 50], ids=["small", "large"])
def test_a_read_can_be_structured(missing: Resource, data: bytes) -> None:
    missing.put(data).expect(201)
    headers = {"x-ms-range": "bytes=2-5", "x-ms-structured-body": STRUCTURE}
    answer = missing.send("GET", "", headers, version="2026-10-06").expect(206)
    assert answer.header("x-ms-structured-body") == STRUCTURE
    assert answer.header("x-ms-structured-content-length") == "4"
    assert answer.header("Content-Range") == f"bytes 2-5/{len(data)}"
    assert answer.body == structured(data[2:6])


@pytest.mark.parametrize("data", [b"", b"small", CONTENT * 50], ids=["empty", "small", "large"])
def test_put_blob_stores_the_md5(missing: Resource, data: bytes) -> None:
    missing.put(data).expect(201)
    assert missing.send("HEAD").expect(200).header(MD5) == md5_of(data)


def test_the_md5_of_a_block_blob_is_its_own(missing: Resource) -> None:
    wrong, right = md5_of(b"turnip"), md5_of(b"carrot")
    answer = missing.put(b"carrot", {"x-ms-blob-content-md5": wrong})
    message = "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    assert answer.rejection == (400, "Md5Mismatch", message)
    assert missing.send("HEAD").status == 404
    missing.put(b"carrot", {"x-ms-blob-content-md5": right, MD5: wrong}).expect(201)
    missing.put(b"carrot", {"x-ms-blob-content-md5": right, CRC64: crc64_of(b"carrot")}).expect(201)
    assert missing.put(b"carrot", {"x-ms-blob-content-md5": wrong, MD5: right}).code == (400, "Md5Mismatch")
    assert missing.send("HEAD").expect(200).header(MD5) == right


def test_before_2012_an_md5_is_stored_only_if_the_request_has_one(missing: Resource) -> None:
    for headers, stored in (({}, None), ({MD5: md5_of(b"x")}, md5_of(b"x"))):
        missing.put(b"x", headers, version="2011-08-18").expect(201)
        assert missing.send("HEAD").header(MD5) == stored


@pytest.mark.parametrize("header", HEADERS)
def test_the_rejection_of_other_content(missing: Resource, source: Source, header: str) -> None:
    operation = OPERATIONS["blob from a URL" if "source" in header else "block blob"]
    kind, wrong = HEADERS[header], OF[HEADERS[header]](b"another")
    text = xml_text(operation.send(missing, source, {header: wrong}, USUAL).body)
    sent, computed = (
        ("UserSpecifiedMd5", "ServerCalculatedMd5") if kind == MD5 else ("UserSpecifiedCrc", "ServerCalculatedCrc")
    )
    details = f"<{sent}>{wrong}</{sent}><{computed}>{OF[kind](CONTENT)}</{computed}>"
    assert text.endswith("</Message></Error>" if "source" in header else f"</Message>{details}</Error>")


def test_the_md5_of_a_part_of_a_source_is_its_own(missing: Resource, source: Source) -> None:
    operation = OPERATIONS["blob from a URL"]
    operation.send(missing, source, {"x-ms-source-range": "bytes=0-99"}, USUAL).expect(201)
    found = missing.send("GET").expect(200)
    assert (found.body, found.header(MD5)) == (CONTENT[:100], md5_of(CONTENT[:100]))
    wrong = {"x-ms-source-range": "bytes=0-99", "x-ms-source-content-md5": md5_of(CONTENT)}
    assert operation.send(missing, source, wrong, USUAL).code == (400, "Md5Mismatch")


@pytest.mark.parametrize("header", ["x-ms-source-content-md5", "x-ms-source-content-crc64"])
def test_a_synchronous_copy_from_another_account(missing: Resource, versioned: Container, header: str) -> None:
    operation, source = OPERATIONS["synchronous copy"], source_in(versioned)
    wrong = {header: OF[HEADERS[header]](b"another")}
    assert operation.send(missing, source, wrong, USUAL).status == 400
    assert missing.send("HEAD").status == 404
    answer = operation.send(missing, source, {header: OF[HEADERS[header]](CONTENT)}, USUAL).expect(202)
    assert (answer.header(MD5), answer.header(CRC64)) == (None, crc64_of(CONTENT))
    found = missing.send("GET").expect(200)
    assert (found.body, found.header(MD5)) == (CONTENT, EIGHT_BYTES)


@pytest.mark.parametrize("type_", ["AppendBlob", "PageBlob"])
def test_only_block_blobs_are_put_from_a_url(missing: Resource, source: Source, type_: str) -> None:
    headers = {"x-ms-blob-type": type_, "x-ms-copy-source": source.url}
    assert missing.send("PUT", "", headers).code == (400, "InvalidHeaderValue")
    assert missing.send("HEAD").status == 404


def test_an_append_blob_keeps_the_md5_that_it_was_created_with(missing: Resource) -> None:
    _log(missing)
    missing.send("PUT", "comp=appendblock", body=b"x").expect(201)
    missing.send("PUT", "comp=appendblock", {"x-ms-blob-content-md5": "AAAA"}, body=b"y").expect(201)
    assert missing.send("HEAD").expect(200).header(MD5) == EIGHT_BYTES


RANGES = {"x-ms-range-get-content-md5": MD5, "x-ms-range-get-content-crc64": CRC64}
"""The headers that ask for the checksum of a range; for each, the header of the response."""


@pytest.mark.parametrize("header", RANGES)
def test_the_checksum_of_a_range(blob: Resource, header: str) -> None:
    asked = {"x-ms-range": "bytes=2-4", header: "true"}
    for version in ("2018-11-09", USUAL, "2026-10-06"):
        answer = blob.send("GET", "", asked, version=version).expect(206)
        known = header != "x-ms-range-get-content-crc64" or version >= "2019-02-02"
        expected = {RANGES[header]: OF[RANGES[header]](b"234")} if known else {}
        assert checksums(answer) == expected
        assert answer.header("x-ms-blob-content-md5") == md5_of(b"0123456789")
    assert blob.send("GET", "", asked | {header: "false"}).expect(206).header(RANGES[header]) is None
    assert blob.send("GET", "", {header: "true"}).code == (400, "InvalidHeaderValue")
    both = asked | dict.fromkeys(RANGES, "true")
    assert blob.send("GET", "", both).code == (400, "BothCrc64AndMd5HeaderPresent")
    assert blob.send("HEAD", "", asked).expect(200).header(MD5) == md5_of(b"0123456789")
