"""Reference §8.2–§8.4: one table read, created and deleted."""

from collections.abc import Callable

import pytest

from .client import NONE, Client
from .tables import STALE, Table, entity

Note = Callable[[str], str]
NOT_FOUND = (404, "ResourceNotFound", "The specified resource does not exist.")
TABLE_NOT_FOUND = (404, "TableNotFound", "The table specified does not exist.")


def creation(name: str) -> str:
    """The body that creates a table."""
    return f'{{"TableName":"{name}"}}'


def test_table_is_created_once(client: Client, name: str, disposable: Note) -> None:
    base = client.endpoint.base
    answer = client.send("POST", "/Tables", body=creation(disposable(name))).expect(201)
    assert answer.header("Location") == f"{base}Tables('{name}')"
    rejection = client.send("POST", "/Tables", body=creation(name)).rejection
    assert rejection == (409, "TableAlreadyExists", "The table specified already exists.")
    again = client.send("POST", "/Tables", body=creation(name), headers={"Prefer": "return-no-content"})
    assert again.rejection == rejection


def test_is_empty_at_first(table: Table) -> None:
    assert table.page() == ([], "")


def test_table_is_read(client: Client, table: Table) -> None:
    answer = client.send("GET", f"/Tables('{table.name}')", headers={"Accept": NONE}).expect(200)
    assert answer.json() == {"TableName": table.name}


def test_missing_is_not_read(client: Client, missing: Table) -> None:
    assert client.send("GET", f"/Tables('{missing.name}')").rejection == NOT_FOUND


def test_missing_is_not_deleted(client: Client, missing: Table) -> None:
    assert client.send("DELETE", f"/Tables('{missing.name}')").rejection == NOT_FOUND


@pytest.mark.parametrize("headers", [{}, {"Accept": "application/json"}, {"Accept": "*/*"}, {"If-Match": "*"}], ids=str)
def test_table_is_deleted(client: Client, name: str, headers: dict[str, str]) -> None:
    client.send("POST", "/Tables", body=creation(name)).expect(201)
    client.send("DELETE", f"/Tables('{name}')", headers=headers).expect(204)
    assert client.send("GET", f"/Tables('{name}')").rejection == NOT_FOUND
    assert client.send("GET", f"/{name}").rejection == TABLE_NOT_FOUND


def test_is_deleted_through_post(client: Client, name: str) -> None:
    client.send("POST", "/Tables", body=creation(name)).expect(201)
    client.send("POST", f"/Tables('{name}')", headers={"X-HTTP-Method": "DELETE"}).expect(204)
    assert client.send("GET", f"/Tables('{name}')").rejection == NOT_FOUND


def test_can_be_created_again_at_once_and_is_empty(client: Client, name: str, disposable: Note) -> None:
    """Azure answers 409 TableBeingDeleted for a while; a local service deletes at once."""
    table = Table(client, disposable(name))
    client.send("POST", "/Tables", body=creation(name)).expect(201)
    table.add(*(entity("p", str(row)) for row in range(20)))
    client.send("DELETE", f"/Tables('{name}')").expect(204)
    answer = client.send("POST", "/Tables", body=creation(name))
    if not client.endpoint.is_path_style and answer.status == 409:
        assert answer.rejection == (409, "TableBeingDeleted", "The specified table is being deleted.")
        return
    answer.expect(201)
    assert table.page() == ([], "")
    table.get("p", "0").expect(404)
    table.add(entity("p", "0"))
    assert table.row_keys() == ["0"]


def test_a_deleted_name_that_begins_like_another_leaves_the_other(client: Client, name: str, disposable: Note) -> None:
    longer = Table(client, disposable(name + "x"))
    for each in (name, longer.name):
        client.send("POST", "/Tables", body=creation(each)).expect(201)
    longer.add(entity("p", "r"))
    client.send("DELETE", f"/Tables('{name}')").expect(204)
    assert longer.row_keys() == ["r"]


ONE = "(PartitionKey='p',RowKey='r')"
ENTITY_REQUESTS: list[tuple[str, str, str | None, str | None]] = [
    ("GET", "", None, None),
    ("GET", "()", None, None),
    ("GET", ONE, None, None),
    ("POST", "", '{"PartitionKey":"p","RowKey":"r"}', None),
    *((method, ONE, "{}", condition) for method in ("PUT", "MERGE", "PATCH") for condition in ("*", STALE, None)),
    ("DELETE", ONE, None, "*"),
    ("DELETE", ONE, None, STALE),
]


@pytest.mark.parametrize(("method", "suffix", "body", "condition"), ENTITY_REQUESTS)
def test_entity_requests_need_a_table(
    missing: Table, method: str, suffix: str, body: str | None, condition: str | None
) -> None:
    assert missing.write(method, missing.path + suffix, body, If_Match=condition).rejection == TABLE_NOT_FOUND


def test_analytics_tables_are_not_listed_and_missing_ones_are_not_found(client: Client) -> None:
    listed = client.send("GET", "/Tables", "$filter=TableName%20ge%20'$'%20and%20TableName%20lt%20'%25'").expect(200)
    assert listed.json()["value"] == []
    assert client.send("GET", "/Tables('$MetricsNoSuchTable')").rejection == NOT_FOUND
