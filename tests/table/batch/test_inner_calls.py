"""Heads that differ only in the keys of their URL are validated once, and have the same meaning alone."""

import json
from base64 import b64encode
from hashlib import md5
from unittest.mock import Mock

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.table.batch import inner_calls
from lazulite.table.credentials import TableSas, sign_table_sas
from lazulite.table.operations.entity_writes import ValidatedWrite
from lazulite.table.payload.json_pattern import BODIES_PER_PATTERN
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import FOREVER, Client, values

KEYS = ["a", "b.c", "d@e", "f=g+h", "it''s", "%C3%A9", "i%20j", ""]
"""Keys as URLs have them; some do not stand for themselves."""


@pytest.fixture(name="people", autouse=True)
async def _people(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "people"})


@pytest.fixture(name="validated")
def _validated(monkeypatch: pytest.MonkeyPatch) -> Mock:
    validated = Mock(side_effect=ValidatedWrite)
    monkeypatch.setattr(inner_calls, "ValidatedWrite", validated)
    return validated


def at(row: str, table: str = "people") -> str:
    return f"{table}(PartitionKey='p',RowKey='{row}')"


async def send(client: Client, *operations: Operation) -> list[int]:
    """Return the statuses of the answers."""
    response = await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
    return [part.status for part in parts(response)]


@pytest.mark.parametrize(
    ("method", "headers"),
    [("PUT", {}), ("MERGE", {}), ("PATCH", {"Content-ID": "1"}), ("POST", {"X-HTTP-Method": "MERGE"})],
)
async def test_updates_reach_the_entities_of_their_urls(
    client: Client, validated: Mock, method: str, headers: dict[str, str]
) -> None:
    operations = [Operation(method, at(key), {"A": key}, headers) for key in KEYS]
    assert await send(client, *operations) == [204] * len(KEYS)
    usual = 5  # of the keys stand for themselves
    assert validated.call_count == 1 + len(KEYS) - usual
    for key in KEYS:
        read = await client("GET", at(key))
        assert json.loads(read.body)["A"] == key


async def test_methods_and_fields_are_distinguished(client: Client, validated: Mock) -> None:
    operations = [
        Operation("PUT", at("a"), {"A": 1}),
        Operation("MERGE", at("b"), {"A": 1}),
        Operation("PUT", at("c"), {"A": 1}, {"Content-ID": "1"}),
        Operation("POST", "people", {"PartitionKey": "p", "RowKey": "d"}),
        Operation("POST", "people()", {"PartitionKey": "p", "RowKey": "e"}),
        Operation("PUT", at("f"), {"A": 1}),
    ]
    assert await send(client, *operations) == [204, 204, 204, 201, 201, 204]
    assert validated.call_count == len(operations) - 1


async def test_an_insert_is_no_update_of_the_same_table(client: Client) -> None:
    """The URLs are the same but for the keys."""
    insert = Operation("POST", "people", {"PartitionKey": "p", "RowKey": "a"})
    other = Operation("POST", at("b"), {"PartitionKey": "p", "RowKey": "b"})
    assert await send(client, insert, other) == [400]
    assert await send(client, other, insert) == [400]
    assert values(await client("GET", "people()")) == []


async def test_other_tables_are_distinguished(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "pets"})
    operations = [Operation("PUT", at("a"), {"A": 1}), Operation("PUT", at("b", "pets"), {"A": 1})]
    assert await send(client, *operations) == [400]


async def test_the_key_range_of_a_sas_holds_for_each_part(client: Client) -> None:
    terms = TableSas(
        table="people",
        permission="au",
        expiry=FOREVER,
        start_partition="p",
        start_row="a",
        end_partition="p",
        end_row="b",
    )
    client.sas = sign_table_sas(DEVELOPMENT_ACCOUNT, terms)
    operations = [Operation("PUT", at(row), {"A": 1}) for row in ("a", "b", "c")]
    assert await send(client, *operations[:2]) == [204, 204]
    response = await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
    assert response.status == 403
    body = {"PartitionKey": "p", "RowKey": "r", "A": 1}
    within = [Operation("PUT", at(f"a{number}"), body) for number in range(2 * BODIES_PER_PATTERN)]
    assert await send(client, *within) == [204] * len(within)
    beyond = Operation("PUT", at("c"), body)
    response = await client("POST", "$batch", body=change_set(*within, beyond), headers=CONTENT_TYPE)
    assert response.status == 403


async def test_the_checksum_of_each_part_is_compared(client: Client) -> None:
    """Though the parts share a head."""
    digest = b64encode(md5(b'{"A": 1}', usedforsecurity=False).digest()).decode()
    operations = [
        Operation("PUT", at(row), {"A": value}, {"Content-MD5": digest})
        for row, value in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert await send(client, *operations[:2]) == [204, 204]
    assert await send(client, *operations) == [400]
