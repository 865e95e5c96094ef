"""Members merged as text equal the members of the merged properties."""

from collections.abc import Mapping

import pytest
from hypothesis import given

from lazulite.table.model.edm import INT32, INT64, STRING
from lazulite.table.model.entity import PROPERTIES_MAX, SURELY_SMALL
from lazulite.table.model.member_merge import merge_members
from lazulite.table.model.row import (
    Property,
    assemble,
    decode_members,
    decode_row,
    encode_keys,
    encode_properties,
    in_order,
)
from tests.table.strategies import keys, properties


def row_of(some: Mapping[str, Property], partition: str = "p", row: str = "r") -> bytes:
    return assemble(10**17, encode_keys(partition, row), encode_properties(some))


@given(properties, properties, keys, keys)
def test_texts_merge_as_decoded_properties_do(
    stored: dict[str, Property], sent: dict[str, Property], partition: str, row: str
) -> None:
    current = row_of(stored, partition, row)
    merged = merge_members(current, encode_properties(in_order(sent)))
    expected = encode_properties(in_order({**stored, **sent}))
    is_plain = "".join({**stored, **sent}).isascii()
    assert merged == (expected if is_plain else None)


@given(properties)
def test_members_decode_to_the_properties_that_were_encoded(some: dict[str, Property]) -> None:
    assert decode_members(encode_properties(some)) == some == decode_row(row_of(some)).properties


def test_a_type_replaces_a_type() -> None:
    current = row_of({"A": Property(INT64, '"5"'), "b": Property(INT32, "1"), "C": Property(INT64, '"6"')})
    sent = {"A": Property(STRING, '"x"'), "C": Property(INT32, "7")}
    assert merge_members(current, encode_properties(sent)) == ',"A":"x","C":7,"b":1'


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ({"é": Property(INT32, "1")}, {"A": Property(INT32, "1")}),
        ({"A": Property(INT32, "1")}, {"é": Property(INT32, "1")}),
        ({"A": Property(STRING, f'"{"x" * (SURELY_SMALL // 2)}"')}, {"A": Property(INT32, "1")}),
        ({}, {"A": Property(STRING, f'"{"x" * (SURELY_SMALL // 2)}"')}),
        ({f"A{number}": Property(INT32, "1") for number in range(PROPERTIES_MAX)}, {"B": Property(INT32, "1")}),
    ],
)
def test_unusual_merges_take_the_decoded_properties(stored: dict[str, Property], sent: dict[str, Property]) -> None:
    assert merge_members(row_of(stored), encode_properties(sent)) is None
