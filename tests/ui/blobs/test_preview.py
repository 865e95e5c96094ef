"""What is shown of a content."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ui.blobs import preview as module
from lazulite.ui.blobs.preview import PreviewKind, image_type, parquet_preview, preview

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def shown(data: bytes, name: str = "x", media_type: str = "", length: int | None = None) -> module.Preview:
    return preview(data, len(data) if length is None else length, name, media_type)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", ""),
        (b"<html>", ""),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"", ""),
    ],
)
def test_an_image_is_known_by_its_first_bytes(data: bytes, expected: str) -> None:
    assert image_type(data) == expected


def test_html_is_a_text_whatever_its_owner_states() -> None:
    found = shown(b"<script>alert(1)</script>", "a.png", "image/png")
    assert (found.kind, found.text) == (PreviewKind.TEXT, "<script>alert(1)</script>")


def test_a_text_is_cut_between_characters_and_says_so() -> None:
    data = "aü".encode()[:2]
    found = shown(data, length=100)
    assert (found.kind, found.text) == (PreviewKind.TEXT, "a")
    assert "The first 2 of 100 bytes" in found.note
    assert shown(data).kind is PreviewKind.BINARY


def test_a_binary_is_shown_in_hexadecimal_digits() -> None:
    found = shown(bytes(range(20)))
    assert found.text == "0000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n0010  10 11 12 13"


def test_an_empty_blob_and_a_large_image_say_so() -> None:
    assert "0 bytes" in shown(b"").note
    assert shown(PNG, length=2**40).kind is PreviewKind.BINARY
    assert shown(PNG).kind is PreviewKind.IMAGE


def test_numbers_of_json_are_shown_as_they_are_written() -> None:
    text = '{"big":9007199254740993,"d":1.50,"e":[],"o":{},"s":"a,{\\"b\\"}:","l":[1,[2]]}'
    found = shown(text.encode())
    assert found.text.splitlines() == [
        "{",
        '  "big": 9007199254740993,',
        '  "d": 1.50,',
        '  "e": [],',
        '  "o": {},',
        '  "s": "a,{\\"b\\"}:",',
        '  "l": [',
        "    1,",
        "    [",
        "      2",
        "    ]",
        "  ]",
        "}",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON))
def test_indented_json_means_the_same(value: object) -> None:
    found = shown(json.dumps(value).encode())
    assert json.loads(found.text) == value
    assert "JSON" in found.note


@pytest.mark.parametrize("text", ["[1,", "[" * 5000, "[" * 900 + "1," * 40_000 + "1" + "]" * 900])
def test_what_is_no_json_or_becomes_too_long_is_shown_as_it_is(text: str) -> None:
    assert shown(text.encode()).text == text


def test_the_first_rows_of_a_csv_are_a_table() -> None:
    text = "a,b\n" + "".join(f'{n},"x,{n}"\n' for n in range(150))
    found = shown(text.encode(), "rows.CSV")
    assert (found.kind, found.columns) == (PreviewKind.TABLE, ["a", "b"])
    assert (len(found.rows), found.rows[99]) == (100, ["99", "x,99"])
    assert shown(text.encode(), media_type="text/csv; charset=utf-8").kind is PreviewKind.TABLE
    assert shown(b"a" * 200_000, "rows.csv").kind is PreviewKind.TEXT


def test_the_head_of_a_parquet_file_is_a_table() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    pq.write_table(pa.table({"n": list(range(300)), "s": [None] * 300}), file)
    found = parquet_preview(file.getvalue())
    assert found is not None
    assert (found.columns, len(found.rows), found.rows[7]) == (["n", "s"], 100, ["7", "null"])
    assert "100 of 300 rows" in found.note
    broken = parquet_preview(b"PAR1" + bytes(50) + b"PAR1")
    assert broken is not None
    assert broken.kind is PreviewKind.BINARY


def test_a_long_value_that_a_parquet_file_has_once_is_not_read_a_hundred_times() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(["x" * (12 << 20)]))
    file = io.BytesIO()
    table = pa.table({"a": column})
    pq.write_table(table, file, compression="zstd", dictionary_pagesize_limit=1 << 30, store_schema=False)
    assert len(file.getvalue()) < 10_000
    found = parquet_preview(file.getvalue())
    assert found is not None
    assert 1 <= len(found.rows) < 10
    assert "of 100 rows" in found.note
