"""The end of a content's file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.content.contract import WINDOW_BYTES, ContentDamagedError, ContentUnsealedError
from lazulite.engine.content.footer import TRAILER_BYTES, Footer, footer_bytes, read_footer, windows, write_footer

_LENGTHS = st.integers(0, 20 * WINDOW_BYTES)


@st.composite
def footers(draw: st.DrawFn) -> Footer:
    length = draw(_LENGTHS)
    count = windows(length)
    checksums = draw(st.lists(st.integers(0, 2**32 - 1), min_size=count, max_size=count))
    return Footer(length, draw(st.text(st.characters(exclude_categories=["Cs"]))), tuple(checksums))


@given(footers())
def test_a_footer_is_read_as_it_was_written(footer: Footer) -> None:
    data = write_footer(footer)
    assert footer_bytes(data[-TRAILER_BYTES:], footer.length + len(data)) == len(data)
    assert read_footer(data) == footer


@given(footers(), st.data())
def test_each_changed_byte_is_noticed(footer: Footer, draw: st.DataObject) -> None:
    data = bytearray(write_footer(footer))
    data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(ContentDamagedError):
        _read(bytes(data), footer.length + len(data))


def _read(data: bytes, file_bytes: int) -> None:
    assert footer_bytes(data[-TRAILER_BYTES:], file_bytes) == len(data)
    read_footer(data)


@given(st.binary(max_size=60), st.integers(0, 1000))
def test_other_bytes_are_no_footer(trailer: bytes, size: int) -> None:
    with pytest.raises(ContentUnsealedError):
        footer_bytes(trailer[-TRAILER_BYTES:], size)


def test_the_format_does_not_change() -> None:
    footer = Footer(WINDOW_BYTES + 1, "ü", (1, 0x01020304))
    assert write_footer(footer).hex() == "c3bc0000000101020304000000000004000100000002" + "d7d71173" + b"LAZUCON1".hex()
