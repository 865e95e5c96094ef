"""Get Page Ranges, whole and since a snapshot; sizes and content headers. Source: reference §38.2, §38.3."""

import re
from urllib.parse import quote

import pytest
from tests.conformance.answers import xml_text

from .resources import Resource
from .test_errors import url_of

PAGE = 512
Change = tuple[str, int, int]
"""`update` or `clear`, the first page, and the one behind the last."""


@pytest.fixture
def pages(missing: Resource) -> Resource:
    """A page blob of eight pages."""
    headers = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 * PAGE)}
    missing.send("PUT", headers=headers).expect(201)
    return missing


def change(pages: Resource, *changes: Change) -> None:
    """Write pages, or clear them."""
    for write, first, stop in changes:
        headers = {"x-ms-page-write": write, "x-ms-range": f"bytes={first * PAGE}-{stop * PAGE - 1}"}
        body = b"x" * PAGE * (stop - first) if write == "update" else b""
        pages.send("PUT", "comp=page", headers, body=body).expect(201)


def snapshot(pages: Resource) -> str:
    """Take a snapshot; return its time for a query string."""
    return quote(pages.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot"))


def listed(pages: Resource, query: str = "", headers: dict[str, str] | None = None) -> list[Change]:
    """The ranges that a response has, in its order, as the changes that would make them."""
    text = xml_text(pages.send("GET", f"comp=pagelist{query}", headers).expect(200).body)
    found = re.findall(r"<(Page|Clear)Range><Start>(\d+)</Start><End>(\d+)</End></\1Range>", text)
    kinds = {"Page": "update", "Clear": "clear"}
    return [(kinds[kind], int(start) // PAGE, (int(end) + 1) // PAGE) for kind, start, end in found]


def test_pages_that_were_written_and_cleared_since_a_snapshot_are_cleared(pages: Resource) -> None:
    since = snapshot(pages)
    change(pages, ("update", 0, 3), ("clear", 1, 2))
    assert listed(pages, f"&prevsnapshot={since}") == [("update", 0, 1), ("clear", 1, 2), ("update", 2, 3)]
    assert listed(pages) == [("update", 0, 1), ("update", 2, 3)]


def test_each_page_is_as_it_was_changed_last(pages: Resource) -> None:
    change(pages, ("update", 0, 4))
    since = snapshot(pages)
    change(pages, ("clear", 0, 3), ("update", 4, 6), ("clear", 5, 7), ("update", 1, 2))
    expected = [("clear", 0, 1), ("update", 1, 2), ("clear", 2, 3), ("update", 4, 5), ("clear", 5, 6)]
    assert listed(pages, f"&prevsnapshot={since}") == expected
    change(pages, ("update", 2, 3))
    assert listed(pages, f"&prevsnapshot={since}")[1:3] == [("update", 1, 3), ("update", 4, 5)]


def test_a_diff_of_two_snapshots_ends_at_the_second(pages: Resource) -> None:
    first = snapshot(pages)
    change(pages, ("update", 0, 2), ("clear", 0, 1))
    second = snapshot(pages)
    change(pages, ("clear", 1, 2), ("update", 0, 1))
    assert listed(pages, f"&prevsnapshot={first}&snapshot={second}") == [("clear", 0, 1), ("update", 1, 2)]
    assert listed(pages, f"&prevsnapshot={second}") == [("update", 0, 1), ("clear", 1, 2)]
    third = snapshot(pages)
    assert listed(pages, f"&prevsnapshot={third}") == []
    assert listed(pages, f"&prevsnapshot={first}&snapshot={third}") == [("update", 0, 1), ("clear", 1, 2)]


def test_content_headers_beside_a_length_or_a_sequence_number(pages: Resource) -> None:
    stored = {"x-ms-blob-content-md5": "AAAA", "x-ms-blob-content-type": "a/b"}
    pages.send("PUT", "comp=properties", stored).expect(200)
    length, number = {"x-ms-blob-content-length": "512"}, {"x-ms-sequence-number-action": "increment"}
    for headers in (length, number):
        pages.send("PUT", "comp=properties", headers).expect(200)
        found = pages.send("HEAD").expect(200)
        assert (found.header("Content-MD5"), found.header("Content-Type")) == ("AAAA", "a/b")
    for headers in (length, number):
        pages.send("PUT", "comp=properties", headers | {"x-ms-blob-content-md5": "AAEC"}).expect(200)
        found = pages.send("HEAD").expect(200)
        assert (found.header("Content-MD5"), found.header("Content-Type")) == ("AAEC", None)
        pages.send("PUT", "comp=properties", stored).expect(200)


def test_what_is_cut_off_is_cleared_when_the_blob_grows_again(pages: Resource) -> None:
    since = snapshot(pages)
    change(pages, ("update", 4, 8))
    for count in (6, 8):
        pages.send("PUT", "comp=properties", {"x-ms-blob-content-length": str(count * PAGE)}).expect(200)
    assert listed(pages, f"&prevsnapshot={since}") == [("update", 4, 6), ("clear", 6, 8)]


def test_a_range_and_pages_of_a_diff(pages: Resource) -> None:
    since = snapshot(pages)
    change(pages, ("update", 0, 8), ("clear", 2, 4), ("clear", 6, 7))
    within = {"x-ms-range": f"bytes={3 * PAGE}-{7 * PAGE - 1}"}
    query = f"&prevsnapshot={since}"
    assert listed(pages, query, within) == [("clear", 3, 4), ("update", 4, 6), ("clear", 6, 7)]
    text = xml_text(pages.send("GET", f"comp=pagelist{query}&maxresults=2").expect(200).body)
    marker = re.findall(r"<NextMarker>(.+)</NextMarker>", text)[0]
    assert listed(pages, f"{query}&maxresults=2") == [("update", 0, 2), ("clear", 2, 4)]
    assert listed(pages, f"{query}&marker={marker}") == [("update", 4, 6), ("clear", 6, 7), ("update", 7, 8)]


PREVIOUS = "x-ms-previous-snapshot-url"


def test_the_url_of_a_snapshot_stands_for_its_time(pages: Resource) -> None:
    first = snapshot(pages)
    change(pages, ("update", 0, 3), ("clear", 1, 2))
    second = snapshot(pages)
    change(pages, ("update", 1, 2))
    urls = {time: {PREVIOUS: f"{url_of(pages)}?snapshot={time}"} for time in (first, second)}
    assert listed(pages, "", urls[first]) == listed(pages, f"&prevsnapshot={first}") == [("update", 0, 3)]
    assert listed(pages, "", urls[second]) == [("update", 1, 2)]
    assert listed(pages, f"&snapshot={second}", urls[first]) == [("update", 0, 1), ("clear", 1, 2), ("update", 2, 3)]


def test_urls_that_name_no_snapshot_of_the_blob(pages: Resource) -> None:
    since = snapshot(pages)
    url = f"{url_of(pages)}?snapshot={since}"
    for value, query, code in (
        (url_of(pages), "", "InvalidHeaderValue"),
        ("nonsense", "", "InvalidHeaderValue"),
        (url, f"&prevsnapshot={since}", "InvalidHeaderValue"),
        (url.replace("?", "2?"), "", "PreviousSnapshotOperationNotSupported"),
        ("http://example.invalid/a/b", "", "PreviousSnapshotOperationNotSupported"),
        (f"{url_of(pages)}?snapshot=2020-01-01T00:00:00.0000000Z", "", "PreviousSnapshotNotFound"),
    ):
        answer = pages.send("GET", f"comp=pagelist{query}", {PREVIOUS: value})
        assert answer.rejection[1] == code, value
