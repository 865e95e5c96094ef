"""Reference §5.2: counts and sizes, with the exact code and message of each."""

import base64
import json
from typing import Any

import pytest

from .answers import Rejection
from .client import Client
from .tables import Entity, Table, entity

TOO_MANY = Rejection(
    400,
    "TooManyProperties",
    "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. "
    "Each entity also has 3 system properties.",
)
NAME_TOO_LONG = Rejection(400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
VALUE_TOO_LARGE = Rejection(
    400,
    "PropertyValueTooLarge",
    "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
    "encoded and the maximum number of characters should be 32K or less.",
)
ENTITY_TOO_LARGE = Rejection(400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")
BODY_TOO_LARGE = Rejection(
    413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit."
)
ENTITY_BYTES_MAX = 1_048_576
BODY_BYTES_MAX = 4 * 1024 * 1024
ACCEPTED = Rejection(201, "", "")


def binary(size: int) -> Entity:
    """Members of a binary property B."""
    return {"B@odata.type": "Edm.Binary", "B": base64.b64encode(b"\xa5" * size).decode()}


def properties(count: int, value: Any = 1) -> Entity:
    """That many properties."""
    return {f"P{number:04}": value for number in range(count)}


def outcome(table: Table, content: Entity) -> Rejection:
    """What an insert answers; a success is ACCEPTED."""
    rejection = table.insert(json.dumps(entity("p", "r") | content)).rejection
    return ACCEPTED if rejection.status == 201 else rejection


LIMITS: dict[str, tuple[Entity, Rejection]] = {
    "252 properties": (properties(252), ACCEPTED),
    "253 properties": (properties(253), TOO_MANY),
    "252 and a null": (properties(252) | {"Null": None}, ACCEPTED),
    "252 and Timestamp": (properties(252) | {"Timestamp": "2020-01-01T00:00:00Z"}, ACCEPTED),
    "name of 255": ({"n" * 255: 1}, ACCEPTED),
    "name of 256": ({"n" * 256: 1}, NAME_TOO_LONG),
    "non-ASCII name of 255": ({"é" * 255: 1}, ACCEPTED),
    "non-ASCII name of 256": ({"é" * 256: 1}, NAME_TOO_LONG),
    "string of 32768": ({"S": "x" * 32_768}, ACCEPTED),
    "string of 32769": ({"S": "x" * 32_769}, VALUE_TOO_LARGE),
    "non-ASCII string of 32768": ({"S": "日" * 32_768}, ACCEPTED),
    "non-ASCII string of 32769": ({"S": "日" * 32_769}, VALUE_TOO_LARGE),
    "astral string of 16384": ({"S": "😀" * 16_384}, ACCEPTED),
    "astral string of 16385": ({"S": "😀" * 16_385}, VALUE_TOO_LARGE),
    "binary of 65536": (binary(65_536), ACCEPTED),
    "binary of 65537": (binary(65_537), VALUE_TOO_LARGE),
    "binary of 1 MiB": (binary(ENTITY_BYTES_MAX), ENTITY_TOO_LARGE),
    "string of 1 MiB": ({"S": "x" * ENTITY_BYTES_MAX}, ENTITY_TOO_LARGE),
}


@pytest.mark.parametrize(("content", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits_are_checked_on_insert(table: Table, content: Entity, expected: Rejection) -> None:
    came = outcome(table, content)
    assert came == expected
    assert len(table.page().rows) == (1 if expected == ACCEPTED else 0)


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize(("content", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits_are_checked_on_upsert(shared_table: Table, method: str, content: Entity, expected: Rejection) -> None:
    shared_table.write("PUT", shared_table.at("upsert", method), {}).expect(204)
    answer = shared_table.write(method, shared_table.at("upsert", method), json.dumps(content))
    if expected == ACCEPTED:
        answer.expect(204)
    else:
        assert answer.rejection == expected


def _sized(size: int) -> Entity:
    """An entity (p, r) of exactly that size by the formula of §5.2.

    4 + 2·(1 + 1), then for each string property 8 + 2·len(name) + 2·len + 4.
    """
    content: Entity = entity("p", "r")
    left, number = size - 8, 0
    while left > 0:
        name = f"S{number:02}"
        overhead = 8 + 2 * len(name) + 4
        room = min(left - overhead, 65_536)
        if 0 < left - overhead - room <= overhead + 2:
            room -= 2 * overhead  # leave the next property something to hold
        content[name] = "x" * (room // 2)
        left -= overhead + room
        number += 1
    assert left == 0
    return content


def test_an_entity_of_one_mebibyte_fits(table: Table) -> None:
    table.insert(_sized(ENTITY_BYTES_MAX), Prefer="return-no-content").expect(204)
    assert table.insert(_sized(ENTITY_BYTES_MAX + 2) | {"RowKey": "s"}).rejection == ENTITY_TOO_LARGE
    assert [row["RowKey"] for row in table.page("$select=RowKey").rows] == ["r"]


def test_nulls_do_not_count_against_the_entity_size(table: Table) -> None:
    table.insert(_sized(ENTITY_BYTES_MAX) | {"Null": None}, Prefer="return-no-content").expect(204)


def test_limits_are_checked_on_the_merged_result(table: Table) -> None:
    table.add(entity("p", "r", **properties(252)))
    address = table.at("p", "r")
    assert table.write("MERGE", address, {"One": 1}, If_Match="*").rejection == TOO_MANY
    assert table.write("PATCH", address, {"One": 1}).rejection == TOO_MANY
    table.write("MERGE", address, {"P0000": 2}).expect(204)
    row = table.get("p", "r", accept="application/json;odata=nometadata").json()
    assert len(row) == 255
    assert row["P0000"] == 2


def test_the_entity_size_is_checked_on_the_merged_result(table: Table) -> None:
    table.insert(_sized(ENTITY_BYTES_MAX - 100), Prefer="return-no-content").expect(204)
    answer = table.write("MERGE", table.at("p", "r"), {"More": "x" * 100})
    assert answer.rejection == ENTITY_TOO_LARGE


def test_a_body_beyond_four_mebibytes(table: Table) -> None:
    content = f'{{"PartitionKey":"p","RowKey":"r","Null":null{" " * (BODY_BYTES_MAX + 1)}}}'
    assert table.insert(content).rejection == BODY_TOO_LARGE
    assert table.page().rows == []


def test_a_body_beyond_four_mebibytes_leaves_the_service_usable(table: Table, client: Client) -> None:
    table.insert("x" * (2 * BODY_BYTES_MAX)).expect(413)
    client.send("GET", "/Tables", "$top=1").expect(200)
