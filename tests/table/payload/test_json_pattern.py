"""A pattern gives what the general path gives, for the bodies that it takes; few patterns are made and cached."""

import json
import re
from base64 import b64encode
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.edm import TYPES
from lazulite.table.model.entity import EncodedEntity
from lazulite.table.payload import json_pattern
from lazulite.table.payload.json_pattern import (
    ACCOUNTS_MAX,
    BODIES_PER_PATTERN,
    BODY_BYTES_MAX,
    CHARACTERS_MAX,
    PATTERN_CHARACTERS_MAX,
    TABLES_MAX,
    PatternCache,
    TablePatterns,
    pattern_of,
)
from lazulite.table.payload.json_reader import read_encoded, read_members
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
        assert not isinstance(expected, EncodedEntity | str)
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


@pytest.mark.parametrize(
    ("number", "literal"),
    [
        *[
            ("1.5", "1.5"),
            ("-0.25", "-0.25"),
            ("1.50", "1.5"),
            ("0.0001", "0.0001"),
            ("1e-05", "1E-05"),
            ("1e+16", "1E+16"),
        ],
        *[("123456789012.345", "123456789012.345"), ("1234567890123.4567", "1234567890123.4568"), ("0.1e1", "1.0")],
    ],
)
def test_numbers_get_their_literals(number: str, literal: str) -> None:
    """A number that is sent as Python writes it may be its literal, or not."""
    body = body_of(KEYS | {"A": 1.25, "A@odata.type": "Edm.Double"})
    pattern = pattern_like(body)
    assert pattern is not None
    other = body.replace(b"1.25", number.encode())
    found = pattern.encode(other, by_name=False)
    assert found == general(other, by_name=False)
    assert found is not None
    assert found[-1] == f',"A":{literal}'


def test_percent_signs_are_literal() -> None:
    members: Any = (("PartitionKey", "%s"), ("RowKey", "%d"), ("A", "%(x)s%"))
    body = b'{"PartitionKey":"%s","RowKey":"%d","A":"%(x)s%"}'
    pattern = pattern_of(body, members)
    assert pattern is not None
    keys = '"PartitionKey":"%s","RowKey":"%d"'
    assert pattern.encode(body, by_name=False) == ("%s", "%d", keys, ',"A":"%(x)s%"')


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


BODY = b'{"PartitionKey":"p","RowKey":"r","A":1}'


def teach(patterns: TablePatterns, body: bytes, times: int = BODIES_PER_PATTERN) -> None:
    """Read a body that often."""
    for _ in range(times):
        finish(read_encoded(body, False, patterns))


def test_a_pattern_is_made_of_bodies_that_repeat() -> None:
    patterns = TablePatterns()
    teach(patterns, BODY, BODIES_PER_PATTERN - 1)
    assert patterns.encode(BODY, by_name=False) is None
    teach(patterns, BODY, 1)
    assert patterns.encode(BODY, by_name=False) == general(BODY, by_name=False)
    assert patterns.encode(BODY.replace(b"1", b"25"), by_name=True) is not None


def test_the_read_entity_is_the_one_of_the_general_path_before_and_after() -> None:
    patterns = TablePatterns()
    for number in range(2 * BODIES_PER_PATTERN):
        for body in (BODY.replace(b"1", b"%d" % number), BODY.replace(b"1", b"%d.5" % number), BODY[:-1]):
            expected = general(body, by_name=False)
            matched = patterns.encode(body, by_name=False)
            if matched is not None:
                assert matched == expected
                continue
            try:
                found = finish(read_encoded(body, False, patterns))
            except ServiceError as error:
                assert f"{error.code}: {error.message}" == expected
            else:
                assert not isinstance(expected, EncodedEntity | str)
                partition_key, row_key, _, members = expected
                assert found == EncodedEntity(partition_key, row_key, members)
    assert len(patterns) == 1


def test_shapes_of_one_table_have_their_own_patterns() -> None:
    patterns = TablePatterns()
    other = b'{"PartitionKey":"p","RowKey":"r","A":1,"B":"x"}'
    teach(patterns, BODY)
    teach(patterns, other)
    assert len(patterns) == 2
    assert all(patterns.encode(body, by_name=False) is not None for body in (BODY, other))


def test_a_shape_takes_the_place_of_another_with_as_many_quotes() -> None:
    patterns = TablePatterns()
    other = BODY.replace(b'"A"', b'"B"')
    teach(patterns, BODY)
    teach(patterns, other)
    assert len(patterns) == 1
    assert patterns.encode(other, by_name=False) is not None


def test_bodies_that_are_long_or_not_ascii_are_not_matched() -> None:
    patterns = TablePatterns()
    text = b'{"PartitionKey":"p","RowKey":"r","A":"%b"}'
    teach(patterns, text % "é".encode())
    teach(patterns, text % (b"x" * BODY_BYTES_MAX))
    assert len(patterns) == 0
    teach(patterns, text % b"x")
    assert patterns.encode(text % b"y", by_name=False) is not None
    assert patterns.encode(text % "é".encode(), by_name=False) is None
    assert patterns.encode(text % (b"x" * BODY_BYTES_MAX), by_name=False) is None


def test_the_expressions_of_a_table_are_bounded() -> None:
    patterns = TablePatterns()
    for count in range(1, 40):
        members = b",".join(b'"%b%02d":1' % (b"P" * 30, number) for number in range(count % 20 + 1))
        teach(patterns, b'{"PartitionKey":"p","RowKey":"%b",%b}' % (b"r", members))
    characters = [len(pattern.expression) for pattern in patterns._by_quotes.values()]
    assert 0.5 * CHARACTERS_MAX < sum(characters) <= CHARACTERS_MAX


def test_other_accounts_and_tables_evict_nothing() -> None:
    cache = PatternCache()
    known = cache.of("victim", "Table")
    teach(known, BODY)
    for number in range(10 * TABLES_MAX):
        cache.of("hostile", f"Table{number}")
    assert cache.of("victim", "Table") is known
    assert cache.of("hostile", "Table") is not known
    assert cache.of("victim", "Other") is not known


def test_the_number_of_tables_and_accounts_is_bounded() -> None:
    cache = PatternCache()
    for number in range(5 * TABLES_MAX):
        cache.of("a", f"Table{number}")
        cache.of(f"a{number}", "Table")
    assert len(cache._accounts) <= ACCOUNTS_MAX
    for number in range(5 * TABLES_MAX):
        cache.of("a", f"Table{number}")
    tables = cache._accounts.get("a")
    assert tables is not None
    assert len(tables) <= TABLES_MAX


def test_making_patterns_is_bounded_by_the_bodies_read(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = TablePatterns()
    made = Mock(side_effect=pattern_of)
    monkeypatch.setattr(json_pattern, "pattern_of", made)
    for number in range(10 * BODIES_PER_PATTERN):
        body = BODY.replace(b'"A"', b'"A%d"' % number)
        patterns.learn(body, finish(read_members(body)))
    assert made.call_count == 10
