import base64
import json
from collections.abc import Sequence

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model import edm
from lazulite.table.model.edm import Json
from lazulite.table.model.entity import Entity
from lazulite.table.model.row import Property
from lazulite.table.payload.json_reader import read_entity

KEYS: list[tuple[str, Json]] = [("PartitionKey", "p"), ("RowKey", "r")]


def _build(members: Sequence[tuple[str, Json]]) -> Entity:
    texts = (f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members)
    return finish(read_entity(f"{{{','.join(texts)}}}".encode()))


def _rejection(*members: tuple[str, Json]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        _build([*KEYS, *members])
    return caught.value


def test_values_are_typed_by_shape_or_by_annotation_before_or_after() -> None:
    entity = _build(
        [*KEYS, ("A", 1), ("B@odata.type", "Edm.Double"), ("B", 4), ("C", "5"), ("C@odata.type", "Edm.Int64")]
    )
    assert entity.properties == {
        "A": Property(edm.INT32, "1"),
        "B": Property(edm.DOUBLE, "4.0"),
        "C": Property(edm.INT64, '"5"'),
    }


def test_what_is_not_the_clients_is_ignored() -> None:
    entity = _build(
        [
            *KEYS,
            ("Timestamp", None),
            ("Timestamp@odata.type", "Edm.DateTime"),
            ("odata.etag", "x"),
            ("odata.metadata", "x"),
            ("X@odata.type@odata.type", "Edm.String"),
            ("PartitionKey@odata.type", "Edm.String"),
        ]
    )
    assert entity.properties == {}
    assert (entity.partition_key, entity.row_key) == ("p", "r")


def test_nulls_are_no_properties_even_with_a_type() -> None:
    assert _build([*KEYS, ("A", None), ("B", None), ("B@odata.type", "Edm.Guid")]).properties == {}


def test_names_differ_by_case_and_etag_is_ordinary() -> None:
    entity = _build([*KEYS, ("a", 1), ("A", 2), ("ETag", "x"), ("etag", "y"), ("timestamp", "z")])
    assert list(entity.properties) == ["a", "A", "ETag", "etag", "timestamp"]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ([("A", 1), ("A", 1)], "DuplicatePropertiesSpecified"),
        ([("RowKey", "r2")], "DuplicatePropertiesSpecified"),
        ([("a-b", 1)], "PropertyNameInvalid"),
        ([("a" * 256, 1)], "PropertyNameTooLong"),
        ([(f"P{i}", i) for i in range(253)], "TooManyProperties"),
        ([(f"-{i}", None) for i in range(2000)], "TooManyProperties"),
        ([("A", {})], "InvalidInput"),
        ([("A", [])], "InvalidInput"),
        ([("A", 2**31)], "InvalidInput"),
        ([("A", "x"), ("A@odata.type", "Edm.Nothing")], "InvalidInput"),
        ([("A", "x"), ("A@odata.type", 5)], "InvalidInput"),
        ([("A", "x"), ("A@odata.type", "Edm.Int64")], "InvalidInput"),
        ([("A", "1500-01-01T00:00:00Z"), ("A@odata.type", "Edm.DateTime")], "OutOfRangeInput"),
        ([("A", "a" * 32_769)], "PropertyValueTooLarge"),
        ([("A", "\U0001f600" * 16_385)], "PropertyValueTooLarge"),
        (
            [("A", base64.b64encode(bytes(65_537)).decode()), ("A@odata.type", "Edm.Binary")],
            "PropertyValueTooLarge",
        ),
        ([("A", base64.b64encode(bytes(2**20)).decode()), ("A@odata.type", "Edm.Binary")], "EntityTooLarge"),
        ([(f"P{i}", "a" * 32_768) for i in range(17)], "EntityTooLarge"),
    ],
)
def test_violations(members: list[tuple[str, Json]], code: str) -> None:
    assert _rejection(*members).code == code


@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_keys_are_strings(key: str) -> None:
    with pytest.raises(ServiceError) as caught:
        _build([(key, 1)])
    assert caught.value.code == "InvalidInput"


@pytest.mark.parametrize(
    "members",
    [
        [(f"P{i}", i) for i in range(252)],
        [("A", "a" * 32_768)],
        [("A", "\U0001f600" * 16_384)],
        [("A", base64.b64encode(bytes(65_536)).decode()), ("A@odata.type", "Edm.Binary")],
        [(f"P{i:02}", "a" * 32_768) for i in range(15)],
    ],
)
def test_the_limits_themselves_are_allowed(members: list[tuple[str, Json]]) -> None:
    _build([*KEYS, *members])


def test_the_size_is_the_billing_formulas_to_the_byte() -> None:
    # 4 + 2*(1+1) for the keys; each full string 8 + 2*1 + 2*32768 + 4; the last one fills up to 1 MiB exactly.
    room = 1024 * 1024 - 8 - 15 * (8 + 2 + 65_536 + 4)
    last = (room - 8 - 2 - 4) // 2
    names = "abcdefghijklmno"
    exact: list[tuple[str, Json]] = [*((name, "x" * 32_768) for name in names), ("z", "x" * last)]
    _build([*KEYS, *exact])
    assert _rejection(*exact[:-1], ("z", "x" * (last + 1))).code == "EntityTooLarge"


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ([("A", "a" * 32_769), *((f"P{i}", i) for i in range(252))], "TooManyProperties"),
        ([("A", "a" * 524_289)], "EntityTooLarge"),
        ([("A", "a" * 32_769), ("B", "x"), ("B@odata.type", "Edm.Int64")], "InvalidInput"),
        ([("A", "a" * 32_769), ("A@odata.type", "Edm.Int64")], "InvalidInput"),
    ],
)
def test_a_string_that_is_too_large_is_judged_with_the_rest(members: list[tuple[str, Json]], code: str) -> None:
    assert _rejection(*members).code == code
