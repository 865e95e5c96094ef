"""Put Page, sequence numbers and lengths of page blobs. Source: reference §38."""

import re

import pytest

from .resources import Resource

PAGE, SEGMENT_BYTES = 512, 4 << 20
UPDATE = {"x-ms-page-write": "update"}
_FIRST = {"x-ms-range": "bytes=0-511"}
_NOT_MET = (412, "SequenceNumberConditionNotMet")
_RANGE = re.compile(rb"<(PageRange|ClearRange)><Start>(\d+)</Start><End>(\d+)</End>")
NUMBER = "x-ms-blob-sequence-number"


def create(blob: Resource, length: int, **more: str) -> None:
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(length), **more}
    blob.send("PUT", headers=headers).expect(201)


def test_a_long_range_does_not_end_a_page_of_the_list(missing: Resource) -> None:
    create(missing, 3 * SEGMENT_BYTES)
    for base in range(0, 3 * SEGMENT_BYTES, SEGMENT_BYTES):
        within = {"x-ms-range": f"bytes={base}-{base + SEGMENT_BYTES - 1}"}
        missing.send("PUT", "comp=page", {**UPDATE, **within}, body=b"x" * SEGMENT_BYTES).expect(201)
    answer = missing.send("GET", "comp=pagelist&maxresults=1").expect(200)
    assert _RANGE.findall(answer.body) == [(b"PageRange", b"0", b"%d" % (3 * SEGMENT_BYTES - 1))]


def test_what_is_cut_off_reads_as_zeros_when_the_blob_grows_again(missing: Resource) -> None:
    create(missing, 4 * PAGE)
    missing.send("PUT", "comp=page", {**UPDATE, "x-ms-range": "bytes=0-2047"}, body=b"x" * 4 * PAGE).expect(201)
    for length in (2 * PAGE, 4 * PAGE):
        missing.send("PUT", "comp=properties", {"x-ms-blob-content-length": str(length)}).expect(200)
    assert missing.send("GET").body == b"x" * 2 * PAGE + bytes(2 * PAGE)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (_FIRST, (201, "")),
        ({"x-ms-range": "bytes=0-1023"}, (400, "InvalidHeaderValue")),
        ({}, (400, "MissingRequiredHeader")),
        (_FIRST | {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, (400, "Md5Mismatch")),
        (_FIRST | {"x-ms-if-sequence-number-le": "6"}, _NOT_MET),
        (_FIRST | {"x-ms-if-sequence-number-le": "7"}, (201, "")),
        (_FIRST | {"x-ms-if-sequence-number-lt": "7"}, _NOT_MET),
        (_FIRST | {"x-ms-if-sequence-number-eq": "7"}, (201, "")),
    ],
)
def test_writes_of_a_page(missing: Resource, headers: dict[str, str], expected: tuple[int, str]) -> None:
    create(missing, 4 * PAGE, **{NUMBER: "7"})
    assert missing.send("PUT", "comp=page", {**UPDATE, **headers}, body=b"a" * PAGE).code == expected


@pytest.mark.parametrize(
    ("action", "number", "results"),
    [("max", "5", ["9"]), ("max", "12", ["12"]), ("update", "5", ["5"]), ("increment", None, ["10", "11"])],
)
def test_sequence_numbers(missing: Resource, action: str, number: str | None, results: list[str]) -> None:
    create(missing, PAGE, **{NUMBER: "9"})
    for result in results:
        headers = {"x-ms-sequence-number-action": action, NUMBER: number}
        assert missing.send("PUT", "comp=properties", headers).expect(200).header(NUMBER) == result
