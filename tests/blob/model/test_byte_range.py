"""Ranges that requests name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.byte_range import ByteRange, read_range, read_source_range, require_page_range
from lazulite.protocol.errors import ServiceError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=5-", ByteRange(5)),
        ("bytes=0-33554431", ByteRange(0, 33_554_432)),
        ("", None),
        ("bytes=-5", None),
        ("bytes=5-4", None),
        ("bytes=0-1,3-4", None),
        ("bytes = 0-1", None),
        ("items=0-1", None),
        ("bytes=0-" + "9" * 20, None),
        ("bytes=٠-١", None),
    ],
)
def test_other_ranges_are_ignored_by_reads(text: str, expected: ByteRange | None) -> None:
    both = {"x-ms-range": text, "range": "bytes=7-8"} if text else {}
    assert read_range({"range": text}, "2011-08-18") == read_range(both, "2011-08-18") == expected


def test_ranges_of_old_versions_have_an_end() -> None:
    assert read_range({"range": "bytes=5-"}, "2009-09-19") is None
    assert read_range({"range": "bytes=5-6"}, "2009-09-19") == ByteRange(5, 7)


@given(st.integers(0, 20), st.none() | st.integers(1, 20), st.integers(0, 20))
def test_a_range_is_cut_off_at_the_end(start: int, size: int | None, length: int) -> None:
    found = ByteRange(start, None if size is None else start + size)
    try:
        first, stop = found.within(length)
    except ServiceError as error:
        assert error.code == "InvalidRange"
        assert error.headers == [("Content-Range", f"bytes */{length}")]
        assert start >= length
    else:
        expected = range(length)[start : None if size is None else start + size]
        assert list(expected) == list(range(first, stop))


def test_a_range_of_pages_is_aligned() -> None:
    assert require_page_range({"range": "bytes=512-1535"}) == (512, 1536)
    assert require_page_range({"x-ms-range": "bytes=0-511", "range": "x"}) == (0, 512)
    with pytest.raises(ServiceError, match="MissingRequiredHeader"):
        require_page_range({})
    for text in ("bytes=1-511", "bytes=0-510", "bytes=0-", "bytes=-512", "x"):
        with pytest.raises(ServiceError) as rejected:
            require_page_range({"x-ms-range": text})
        assert rejected.value.code == "InvalidHeaderValue"
        assert rejected.value.details == (("HeaderName", "x-ms-range"), ("HeaderValue", text))


def test_the_range_of_a_source() -> None:
    assert read_source_range({}) is None
    assert read_source_range({"x-ms-source-range": "bytes=1-2"}) == ByteRange(1, 3)
    with pytest.raises(ServiceError, match="InvalidHeaderValue"):
        read_source_range({"x-ms-source-range": "bytes=2-1"})
