"""Texts of values: each type comes back as it was, whatever a form does to line ends."""

import json
import math
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.table.model.edm import TYPES
from lazulite.ui.tables.values import (
    AS_JSON,
    HEX,
    TYPE_NAMES,
    Value,
    ValueFormatError,
    as_entered,
    document_of,
    entities_of,
    entity_of,
    path_of,
    value_of,
    with_line_ends,
)

GIVEN = [
    ("String", "", ""),
    ("String", " a\nb ", " a\nb "),
    (AS_JSON, '"a\\u0001"', "a\x01"),
    ("Int32", " -2147483648 ", "-2147483648"),
    ("Int64", "9223372036854775807", "9223372036854775807"),
    ("Int64", "9007199254740993", "9007199254740993"),
    ("Double", "1.5", "1.5"),
    ("Double", "1", "1.0"),
    ("Double", "NaN", "NaN"),
    ("Double", "-Infinity", "-Infinity"),
    ("Boolean", "True", "true"),
    ("DateTime", "2026-11-28T09:30:00.1234567Z", "2026-11-28T09:30:00.1234567Z"),
    ("Guid", "{01234567-89AB-cdef-0123-456789abcdef}", "01234567-89ab-cdef-0123-456789abcdef"),
    ("Binary", "YWI=\n", "YWI="),
    (HEX, "61 62", "YWI="),
]


@pytest.mark.parametrize(("entered", "text", "expected"), GIVEN)
def test_an_entered_text_is_kept_in_its_canonical_form(entered: str, text: str, expected: str) -> None:
    value = value_of(entered, text)
    assert value.text == expected
    assert value_of(value.type, value.text) == value


@pytest.mark.parametrize(
    ("entered", "text"),
    [
        *[("Int32", text) for text in ("2147483648", "1.0", "x", "")],
        *[("Int64", text) for text in ("9223372036854775808", "1e3", "")],
        ("Double", "1,5"),
        ("Boolean", "yes"),
        ("DateTime", "28.11.2026"),
        ("Guid", "0123"),
        ("Binary", "a"),
        (HEX, "abc"),
        (AS_JSON, "1"),
        (AS_JSON, "'a'"),
        ("Decimal", "1"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_told(entered: str, text: str) -> None:
    with pytest.raises(ValueFormatError):
        value_of(entered, text)


values = st.one_of(
    st.builds(Value, st.just("String"), st.text(max_size=40)),
    st.builds(Value, st.just("Int32"), st.integers(-(2**31), 2**31 - 1).map(str)),
    st.builds(Value, st.just("Int64"), st.integers(-(2**63), 2**63 - 1).map(str)),
    st.floats().map(
        lambda number: value_of("Double", "NaN" if math.isnan(number) else repr(number).replace("inf", "Infinity"))
    ),
    st.builds(Value, st.just("Boolean"), st.sampled_from(("true", "false"))),
    st.builds(Value, st.just("Guid"), st.uuids().map(str)),
    st.builds(Value, st.just("Binary"), st.binary(max_size=40).map(lambda data: b64encode(data).decode())),
)


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex(r"[A-Za-z]\w{0,9}", fullmatch=True), values, max_size=5), st.text(max_size=9))
def test_what_is_written_is_what_is_read_back(properties: dict[str, Value], key: str) -> None:
    properties = {
        name: value for name, value in properties.items() if name not in ("PartitionKey", "RowKey", "Timestamp")
    }
    document = document_of(key, "r", properties)
    assert entity_of(document).values == properties
    for name, value in properties.items():
        edm = TYPES[TYPE_NAMES[value.type]]
        assert edm.literal(json.loads(document)[name]) == value.literal


@settings(max_examples=50)
@given(values)
def test_a_form_gives_back_what_it_showed(value: Value) -> None:
    type_name, text = as_entered(value)
    sent = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")  # As browsers do.
    assert with_line_ends(value_of(type_name, sent), value) == value


@pytest.mark.parametrize(("stored", "sent", "kept"), [("a\nb", "a\r\nb\r\nc", "a\nb\nc"), ("a\r\nb", "a\r\n", "a\r\n")])
def test_a_changed_text_keeps_its_kind_of_line_ends(stored: str, sent: str, kept: str) -> None:
    assert with_line_ends(Value("String", sent), Value("String", stored)).text == kept
    assert with_line_ends(Value("String", "a\r\nb"), None).text == "a\nb"


def test_what_is_missing_is_neither_empty_nor_null() -> None:
    typed = '"C@odata.type":"Edm.Int64","C":"9007199254740993"'
    body = f'{{"value":[{{"PartitionKey":"p","RowKey":"r","A":"","B":null,{typed},"D":1}}]}}'.encode()
    (entity,) = entities_of(body)
    assert entity.values == {
        "A": Value("String", ""),
        "C": Value("Int64", "9007199254740993"),
        "D": Value("Int32", "1"),
    }
    assert [entity.text(name) for name in ("PartitionKey", "A", "B")] == ["p", "", None]


def test_a_key_is_quoted_in_a_path() -> None:
    assert path_of("T", "o'b", "a%2F ü") == "T(PartitionKey='o%27%27b',RowKey='a%252F%20%C3%BC')"
