"""A pattern gives what the general path gives, for the bodies that it takes."""

import json
import re
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.table.model.edm import TYPES
from lazulite.table.model.entity import EncodedEntity
from lazulite.table.payload.json_pattern import PATTERN_CHARACTERS_MAX, pattern_of
from tests.fuzz.json_shapes import general, pattern_like
from tests.table import strategies

KEYS = {"PartitionKey": "p", "RowKey": "r"}
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": ")])
KINDS = st.dictionaries(strategies.names, st.sampled_from([None, *TYPES]), max_size=6)
TEXTS = st.text(st.characters(codec="ascii"), max_size=8)
VALUES: dict[str | None, st.SearchStrategy[Any]] = {
    None: st.booleans() | st.integers(-(2**32), 2**32) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    "Edm.String": TEXTS,
    "Edm.Boolean": st.booleans(),
    "Edm.Int32": st.integers(-(2**31), 2**31 - 1),
    "Edm.Int64": st.integers(-(2**63), 2**63 - 1).map(str),
    "Edm.Double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**64), 2**64),
    "Edm.DateTime": st.datetimes().map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"),
    "Edm.Guid": st.uuids().map(str),
    "Edm.Binary": st.binary(max_size=9).map(lambda value: b64encode(value).decode()),
}


def body_of(members: dict[str, Any], comma: str = ", ", colon: str = ": ") -> bytes:
    return json.dumps(members, separators=(comma, colon)).encode()


@st.composite
def alike(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Draw a body and others of the same names, types and blanks."""
    kinds = draw(KINDS)
    comma, colon = draw(SEPARATORS)
    bodies = []
    for _ in range(4):
        members: dict[str, Any] = {name: draw(TEXTS) for name in KEYS}
        for name, kind in kinds.items():
            members |= {} if kind is None else {f"{name}@odata.type": kind}
            members[name] = draw(VALUES[kind])
        bodies.append(body_of(members, comma, colon))
    return bodies[0], bodies


@given(alike(), st.booleans())
def test_patterns_give_what_the_general_path_gives(drawn: tuple[bytes, list[bytes]], by_name: bool) -> None:
    first, bodies = drawn
    pattern = pattern_like(first)
    for body in bodies:
        found = None if pattern is None else pattern.encode(body, by_name)
        assert found in (None, general(body, by_name))


TYPICAL = {
    **KEYS,
    "Name": "x",
    "Age": 5,
    "Ratio": 0.5,
    "Active": True,
    "Gone": None,
    "Id@odata.type": "Edm.Int64",
    "Id": "5",
    "Seen@odata.type": "Edm.DateTime",
    "Seen": "2024-02-29T12:34:56.789000Z",
    "Guid@odata.type": "Edm.Guid",
    "Guid": "c9f9b0e5-3d7b-4f2a-9f5d-0b7a6c1d2e3f",
    "Data@odata.type": "Edm.Binary",
    "Data": "AAE=",
}
"""Everything that a pattern has a form for."""


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_typical_bodies_are_matched(by_name: bool, separators: tuple[str, str]) -> None:
    first = body_of(TYPICAL, *separators)
    other = first.replace(b'"p"', b'"q"').replace(b"0.5", b"0.3333333333333333").replace(b"true", b"false")
    pattern = pattern_like(first)
    assert pattern is not None
    for body in (first, other):
        expected = general(body, by_name)
        assert isinstance(expected, EncodedEntity)
        assert pattern.encode(body, by_name) == expected


@pytest.mark.parametrize(
    "change",
    [
        ('"x"', '"é"'), ('"x"', r'"\u0041"'), ('"x"', '"\x7f"'), ('"x"', '"\n"'), ('"x"', "null"), ('"x"', "1"),
        ("5,", "5.0,"), ("5,", "-0,"), ("5,", "05,"), ("5,", "9999999999,"), ("0.5", "1e999"), ("0.5", "1"),
        ('"5"', '"05"'), ('"5"', "5"), ("02-29", "02-30"), ("2024", "1600"), ("12:34", "24:34"), ("56.789000Z", "56"),
        ("c9f9", "C9F9"), ('"AAE="', '"AAF"'), ('"AAE="', '"A==="'), ("Name", "name"), ("null", "1"),
        ("Edm.Int64", "Edm.Guid"), ('"p"', "5"), ('"p"', '"/"'), ('"r"', '"#"'), ('"r"', '"?"'),
        ('"r"', f'"{"k" * 1025}"'), ("}", "} "), ("}", ',"A":1}'), ("{", ' {'), (",", " ,"),
    ],
)  # fmt: skip
def test_other_bodies_are_left_to_other_paths(change: tuple[str, str]) -> None:
    first = body_of(TYPICAL, ",", ":").decode()
    pattern = pattern_like(first.encode())
    assert pattern is not None
    assert change[0] in first
    assert pattern.encode(first.replace(*change, 1).encode(), by_name=False) is None


@pytest.mark.parametrize(
    "members",
    [
        {"RowKey": "r", "A": 1},
        {**KEYS, "PartitionKey": None},
        {**KEYS, "Timestamp": "x"},
        {**KEYS, "odata.etag": "x"},
        {**KEYS, "A@odata.type": "Edm.Double", "A": "NaN"},
        {**KEYS, "A": 'a "'},
        {**KEYS, **{f"P{number}": 1 for number in range(60)}, "x" * 250: PATTERN_CHARACTERS_MAX},
    ],
)
def test_shapes_without_a_pattern(members: dict[str, Any]) -> None:
    assert pattern_like(body_of(members)) is None


def test_percent_signs_are_literal() -> None:
    members: Any = (("PartitionKey", "%s"), ("RowKey", "%d"), ("A", "%(x)s%"))
    body = b'{"PartitionKey":"%s","RowKey":"%d","A":"%(x)s%"}'
    pattern = pattern_of(body, members)
    assert pattern is not None
    assert pattern.encode(body, by_name=False) == EncodedEntity(
        "%s", "%d", ',"A":"%(x)s%"', keys='"PartitionKey":"%s","RowKey":"%d"'
    )


def test_entities_that_are_nearly_too_large_take_the_general_path() -> None:
    pattern = pattern_like(body_of({**KEYS, "A": "x"}))
    assert pattern is not None
    assert pattern.encode(body_of({**KEYS, "A": "x" * 16_000}), by_name=False) is not None
    assert pattern.encode(body_of({**KEYS, "A": "x" * 33_000}), by_name=False) is None


def test_expressions_give_nothing_back() -> None:
    """Every repetition without a small bound is possessive, so that matching takes linear time."""
    pattern = pattern_like(body_of(TYPICAL))
    assert pattern is not None
    # Without its sets of characters and escaped characters, of which some look like a repetition.
    repetitions = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", "", pattern.expression)
    assert "*+" in repetitions
    assert re.findall(r"\*(?!\+)|(?<![*+?}])\+", repetitions) == []
