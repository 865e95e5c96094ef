"""The short way gives what the long way gives, or leaves it to it."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.table.edm import TYPES, Json
from lazulite.table.entity import EncodedEntity, encode_entity
from lazulite.table.payload.json_in import read_encoded, read_entity, read_members
from lazulite.table.payload.json_shape import MEMBERS_MAX, encode_plain

NAMES = st.sampled_from(
    ["PartitionKey", "RowKey", "Timestamp", "odata.etag", "A", "b", "Zoë", "_", "", "1", "\u20ac", "\U00010400", "a@b"]
)
ANNOTATIONS = st.builds("{}@odata.type".format, NAMES)
SPELLED: list[Json] = [
    None, True, False, 0, -1, 2**31, 2**63, 1.5, 1e300, "", "a", "é\n", "5", "-5", "05", "1.50", "NaN", "-INF", "true",
    "2024-02-29T12:34:56.7890000Z", "1600-12-31T00:00:00Z", "AAECAw==", "AAEC", "C9F9B0E5-3D7B-4F2A-9F5D-0B7A6C1D2E3F",
    [], {}, [1], {"a": 1},
]  # fmt: skip
VALUES: st.SearchStrategy[Json] = st.sampled_from(SPELLED) | st.floats(allow_nan=False, allow_infinity=False)
TYPE_NAMES: st.SearchStrategy[Json] = st.sampled_from([*TYPES, "Edm.Single", "", 1, None, []])
MEMBERS = st.lists(st.tuples(NAMES, VALUES) | st.tuples(ANNOTATIONS, TYPE_NAMES), max_size=8)


def body_of(members: Sequence[tuple[str, Json]]) -> bytes:
    """Spell an object, whose names may repeat."""
    return ("{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members) + "}").encode()


def long_way(body: bytes, by_name: bool) -> EncodedEntity | str:
    """What the body means, or the code of its refusal."""
    try:
        return encode_entity(read_entity(body), by_name)
    except ServiceError as error:
        return f"{error.code}: {error.message}"


def either_way(body: bytes, by_name: bool) -> EncodedEntity | str:
    try:
        return read_encoded(body, by_name)
    except ServiceError as error:
        return f"{error.code}: {error.message}"


@given(members=MEMBERS, by_name=st.booleans())
@example(members=[("A@odata.type", "Edm.Double"), ("A", "NaN")], by_name=False)
@example(members=[("A", 1), ("A@odata.type", "Edm.Int64"), ("A@odata.type", "Edm.String")], by_name=False)
@example(members=[("\U00010400", 1), ("\u20ac", 2), ("\uff21", 3)], by_name=True)
@example(members=[("A@odata.type", "Edm.Boolean"), ("A", None), ("PartitionKey", 1)], by_name=False)
def test_both_ways_agree(members: list[tuple[str, Json]], by_name: bool) -> None:
    body = body_of(members)
    assert either_way(body, by_name) == long_way(body, by_name)


@given(st.lists(st.tuples(NAMES, st.booleans() | st.sampled_from(["x", 5])), unique_by=lambda member: member[0]))
def test_what_was_remembered_changes_nothing(members: list[tuple[str, Json]]) -> None:
    for values in ([value for _, value in members], ["1"] * len(members), [None] * len(members)):
        body = body_of([(name, value) for (name, _), value in zip(members, values, strict=True)])
        assert either_way(body, False) == long_way(body, False)


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        (b'{"PartitionKey":"p","RowKey":"r","A":1,"Timestamp":"x","odata.etag":"y"}', True),
        (b'{"A":1,"B@odata.type":"Edm.Int64","B":"5"}', True),
        (b"{}", True),
        (b'{"A":1,"A":2}', False),
        (b'{"A":[]}', False),
        (b'{"A":"%s"}' % (b"x" * 40_000), False),
        (body_of([(f"A{number}", 1) for number in range(MEMBERS_MAX + 1)]), False),
        (body_of([("odata." + "x" * 300, 1)]), False),
        (body_of([("x" * 300 + "@odata.type", "Edm.Int64")]), False),
    ],
)
def test_what_goes_the_short_way(body: bytes, plain: bool) -> None:
    assert (encode_plain(read_members(body), False) is not None) is plain


def test_the_limits_hold_on_the_short_way() -> None:
    whole = b'{"PartitionKey":"p","RowKey":"r","A":"%s"}'
    assert isinstance(either_way(whole % (b"x" * 32_768), False), EncodedEntity)
    assert str(either_way(whole % (b"x" * 32_769), False)).startswith("PropertyValueTooLarge")
