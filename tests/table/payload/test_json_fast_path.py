"""The short way gives what the long way gives, or leaves it to it."""

import json
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.edm import TYPES, Json
from lazulite.table.model.entity import EncodedEntity, encode_entity
from lazulite.table.names import PROPERTY_NAME_MAX
from lazulite.table.payload import json_fast_path
from lazulite.table.payload.json_fast_path import ANNOTATION, MEMBERS_MAX, SHAPES_MAX, encode_plain
from lazulite.table.payload.json_pattern import TablePatterns
from lazulite.table.payload.json_reader import read_encoded, read_entity, read_members

NAME_MAX = PROPERTY_NAME_MAX + len(ANNOTATION)

NAMES = st.sampled_from(
    ["PartitionKey", "RowKey", "Timestamp", "odata.etag", "A", "b", "Zoë", "_", "", "1", "\u20ac", "\U00010400", "a@b"]
)
GOOD_NAMES = st.sampled_from(["PartitionKey", "RowKey", "Timestamp", "odata.etag", "b", "A", "_", "Zoë", "ñ"])
ANNOTATIONS = st.builds("{}@odata.type".format, NAMES)
SPELLED: list[Json] = [
    None, True, False, 0, -1, 2**31, 2**63, 1.5, 1e300, "", "a", "é\n", "5", "-5", "05", "1.50", "NaN", "-INF", "true",
    "2024-02-29T12:34:56.7890000Z", "1600-12-31T00:00:00Z", "AAECAw==", "AAEC", "C9F9B0E5-3D7B-4F2A-9F5D-0B7A6C1D2E3F",
    [], {}, [1], {"a": 1},
]  # fmt: skip
VALUES: st.SearchStrategy[Json] = st.sampled_from(SPELLED) | st.floats(allow_nan=False, allow_infinity=False)
TYPE_NAMES: st.SearchStrategy[Json] = st.sampled_from([*TYPES, "Edm.Single", "", 1, None, []])
MEMBERS = st.lists(st.tuples(NAMES, VALUES) | st.tuples(ANNOTATIONS, TYPE_NAMES), max_size=8)
Typed = tuple[str | None, Json]
TYPED: st.SearchStrategy[Typed] = st.sampled_from([
    (None, None), (None, True), (None, 5), (None, 1.5), (None, "x"),
    ("Edm.String", "x"), ("Edm.Boolean", True), ("Edm.Int32", 5), ("Edm.Int64", "5"), ("Edm.Int64", None),
    ("Edm.Double", 5), ("Edm.Double", "1.5"), ("Edm.Binary", "AAEC"), ("Edm.Int64", "x"),
    ("Edm.DateTime", "2024-02-29T12:34:56.7890000Z"), ("Edm.Guid", "C9F9B0E5-3D7B-4F2A-9F5D-0B7A6C1D2E3F"),
])  # fmt: skip
"""Types, None where the value shows it, and values, which are of that type as a rule."""


def typed(name: str, type_name: str | None, value: Json) -> list[tuple[str, Json]]:
    """Return a property with its annotation."""
    return [*([] if type_name is None else [(f"{name}@odata.type", cast("Json", type_name))]), (name, value)]


USUAL = st.dictionaries(GOOD_NAMES, TYPED, max_size=6).map(
    lambda properties: [member for name, (edm, value) in properties.items() for member in typed(name, edm, value)]
)


def body_of(members: Sequence[tuple[str, Json]]) -> bytes:
    """Spell an object, whose names may repeat."""
    return ("{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members) + "}").encode()


def long_way(body: bytes, by_name: bool) -> EncodedEntity | str:
    """What the body means, or the code of its rejection."""
    try:
        return encode_entity(finish(read_entity(body)), by_name)
    except ServiceError as error:
        return f"{error.code}: {error.message}"


def either_way(body: bytes, by_name: bool) -> EncodedEntity | str:
    try:
        return finish(read_encoded(body, by_name, TablePatterns()))
    except ServiceError as error:
        return f"{error.code}: {error.message}"


@given(members=MEMBERS | USUAL, by_name=st.booleans())
@example(members=[("A@odata.type", "Edm.Double"), ("A", "NaN")], by_name=False)
@example(members=[("b", 1), ("A", 2)], by_name=True)
@example(members=[("b@odata.type", "Edm.Int64"), ("b", "1"), ("A", True)], by_name=False)
@example(members=[("A", 1), ("A@odata.type", "Edm.Int64"), ("A@odata.type", "Edm.String")], by_name=False)
@example(members=[("\U00010400", 1), ("\u20ac", 2), ("\uff21", 3)], by_name=True)
@example(members=[("A@odata.type", "Edm.Boolean"), ("A", None), ("PartitionKey", 1)], by_name=False)
def test_both_ways_agree(members: list[tuple[str, Json]], by_name: bool) -> None:
    body = body_of(members)
    assert either_way(body, by_name) == long_way(body, by_name)


@pytest.mark.parametrize(
    "text", ["plain", "\x7f", "é", "\U00010400", r"\"", r"\\", r"\u0041", r"\u001f", r"\u007f", "\t", "\n", "\0"]
)
@pytest.mark.parametrize("before", ["", '"A@odata.type":"Edm.String",'])
def test_both_ways_agree_on_strings_however_they_are_spelled(text: str, before: str) -> None:
    """The strings may be no JSON; another string of the body may be anything."""
    for body in (f'{{{before}"A":"{text}"}}', f'{{"A":"a",{before.replace("A", "B")}"B":"b{text}b"}}'):
        assert either_way(body.encode(), False) == long_way(body.encode(), False)


@pytest.mark.parametrize("value", ["1", "true", "null", "1.5", "[]", "{}"])
def test_both_ways_agree_on_what_is_no_string_though_declared_as_one(value: str) -> None:
    body = f'{{"A@odata.type":"Edm.String","A":{value}}}'.encode()
    assert either_way(body, False) == long_way(body, False)


@given(st.lists(st.tuples(GOOD_NAMES, TYPED, TYPED), unique_by=lambda each: each[0], max_size=6))
def test_what_was_cached_changes_nothing(properties: list[tuple[str, Typed, Typed]]) -> None:
    """Bodies of the same names, in the same order, with other types and values."""
    for again in (False, True):
        members = [member for name, one, other in properties for member in typed(name, *(other if again else one))]
        for values in (members, [(name, None if "@" not in name else value) for name, value in members]):
            body = body_of(values)
            assert either_way(body, False) == long_way(body, False)


def test_what_is_cached_is_of_use_and_has_a_bound() -> None:
    cached = json_fast_path._analyse
    cached.cache_clear()
    for number in range(SHAPES_MAX + 10):
        assert encode_plain(((f"A{number}", 1),), False)
        assert encode_plain(((f"A{number}", 2),), False)
    info = cached.cache_info()
    assert (info.hits, info.currsize) == (SHAPES_MAX + 10, SHAPES_MAX)
    cached.cache_clear()
    for _ in range(2):
        assert encode_plain((("x" * (PROPERTY_NAME_MAX + 1), 1),), False) is None
    assert cached.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        (b'{"PartitionKey":"p","RowKey":"r","A":1,"Timestamp":"x","odata.etag":"y"}', True),
        (b'{"A":1,"B@odata.type":"Edm.Int64","B":"5"}', True),
        (b"{}", True),
        (b'{"A":null,"B":true,"C":1.5,"D":"x"}', True),
        (b'{"A@odata.type":"Edm.Int64","A":null}', True),
        (b'{"A":1,"A@note":"Edm.Int64"}', False),
        (b'{"A":1,"A":2}', False),
        (b'{"A":[]}', False),
        (b'{"A":"%s"}' % (b"x" * 40_000), False),
        (body_of([(f"A{number}", 1) for number in range(MEMBERS_MAX + 1)]), False),
        (body_of(typed("x" * PROPERTY_NAME_MAX, "Edm.Int64", "5")), True),
        (body_of([("odata.".ljust(NAME_MAX, "x"), 1)]), True),
        (body_of([("odata.".ljust(NAME_MAX + 1, "x"), 1)]), False),
        (body_of([("x" * (PROPERTY_NAME_MAX + 1) + ANNOTATION, "Edm.Int64")]), False),
    ],
)
def test_what_goes_the_short_way(body: bytes, plain: bool) -> None:
    assert (encode_plain(finish(read_members(body)), False) is not None) is plain


def test_the_limits_hold_on_the_short_way() -> None:
    whole = b'{"PartitionKey":"p","RowKey":"r","A":"%s"}'
    assert isinstance(either_way(whole % (b"x" * 32_768), False), EncodedEntity)
    assert str(either_way(whole % (b"x" * 32_769), False)).startswith("PropertyValueTooLarge")
