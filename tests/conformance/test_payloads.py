"""Reference §6: JSON bodies byte for byte."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from .client import FULL, MINIMAL, NONE, Client
from .tables import Table, entity

LEVELS = {"none": NONE, "minimal": MINIMAL, "full": FULL}
NAMES: dict[str, dict[str, str]] = {
    "created": {
        "none": '{{"TableName":"{t}"}}',
        "minimal": '{{"odata.metadata":"{b}$metadata#Tables/@Element","TableName":"{t}"}}',
        "full": '{{"odata.metadata":"{b}$metadata#Tables/@Element","odata.type":"{a}.Tables",'
        '"odata.id":"{b}Tables(\'{t}\')","odata.editLink":"Tables(\'{t}\')","TableName":"{t}"}}',
    },
    "listed": {
        "none": '{{"value":[{{"TableName":"{t}"}}]}}',
        "minimal": '{{"odata.metadata":"{b}$metadata#Tables","value":[{{"TableName":"{t}"}}]}}',
        "full": '{{"odata.metadata":"{b}$metadata#Tables","value":[{{"odata.type":"{a}.Tables",'
        '"odata.id":"{b}Tables(\'{t}\')","odata.editLink":"Tables(\'{t}\')","TableName":"{t}"}}]}}',
    },
}
HEADS = {
    "none": "",
    "minimal": '"odata.etag":{e},',
    "full": '"odata.type":"{a}.{t}","odata.id":"{b}{t}{k}","odata.etag":{e},"odata.editLink":"{t}{k}",',
}
ROWS = {
    "none": '"PartitionKey":"p q","RowKey":"r\'s","Timestamp":"{s}","N":"5","F":1.5,"D":"2020-01-01T00:00:00Z","S":"x"',
    "minimal": '"PartitionKey":"p q","RowKey":"r\'s","Timestamp":"{s}","N@odata.type":"Edm.Int64","N":"5","F":1.5,'
    '"D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z","S":"x"',
    "full": '"PartitionKey":"p q","RowKey":"r\'s","Timestamp@odata.type":"Edm.DateTime","Timestamp":"{s}",'
    '"N@odata.type":"Edm.Int64","N":"5","F":1.5,"D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z","S":"x"',
}
GIVEN = (
    '{"PartitionKey":"p q","RowKey":"r\'s","N@odata.type":"Edm.Int64","N":"5","F":1.5,'
    '"D@odata.type":"Edm.DateTime","D":"2020-01-01T00:00:00Z","S":"x"}'
)
PREDICATE = "(PartitionKey='p%20q',RowKey='r''s')"


def fill(template: str, table: Table, **more: str) -> str:
    """A template with base, account and table name in their places."""
    endpoint = table.client.endpoint
    return template.format(b=endpoint.base, a=endpoint.account, t=table.name, **more)


def expected_row(table: Table, level: str) -> str:
    """The row's members, from the Timestamp that is read beforehand."""
    read = table.get("p q", "r's").expect(200)
    more = {"s": read.json()["Timestamp"], "e": json.dumps(read.etag), "k": PREDICATE}
    return fill(HEADS[level] + ROWS[level], table, **more)


@pytest.mark.parametrize("level", LEVELS)
def test_json_of_a_created_table(client: Client, name: str, disposable: Callable[[str], str], level: str) -> None:
    table = Table(client, disposable(name))
    text = f'{{"TableName":"{name}"}}'
    answer = client.send("POST", "/Tables", body=text, headers={"Accept": LEVELS[level]}).expect(201)
    assert answer.body.decode() == fill(NAMES["created"][level], table)


@pytest.mark.parametrize("level", LEVELS)
def test_json_of_a_table(table: Table, level: str) -> None:
    answer = table.client.send("GET", f"/Tables('{table.name}')", headers={"Accept": LEVELS[level]}).expect(200)
    assert answer.body.decode() == fill(NAMES["created"][level], table)


@pytest.mark.parametrize("level", LEVELS)
def test_json_of_tables(table: Table, level: str) -> None:
    query = f"$filter=TableName%20eq%20'{table.name}'"
    answer = table.client.send("GET", "/Tables", query, headers={"Accept": LEVELS[level]}).expect(200)
    assert answer.body.decode() == fill(NAMES["listed"][level], table)


@pytest.mark.parametrize("level", LEVELS)
def test_no_tables_listed(table: Table, level: str) -> None:
    query = f"$filter=TableName%20eq%20'{table.name}x'"
    answer = table.client.send("GET", "/Tables", query, headers={"Accept": LEVELS[level]}).expect(200)
    context = "" if level == "none" else fill('"odata.metadata":"{b}$metadata#Tables",', table)
    assert answer.body.decode() == f'{{{context}"value":[]}}'


def context(table: Table, level: str, suffix: str) -> str:
    """The odata.metadata member of an answer about a table."""
    return "" if level == "none" else fill('"odata.metadata":"{b}$metadata#{t}', table) + f'{suffix}",'


@pytest.mark.parametrize("level", LEVELS)
def test_an_entity_echoed_and_read(table: Table, level: str) -> None:
    echo = table.insert(GIVEN, Accept=LEVELS[level]).expect(201)
    expected = "{" + context(table, level, "/@Element") + expected_row(table, level) + "}"
    assert echo.body.decode() == expected
    assert table.get("p q", "r's", accept=LEVELS[level]).body.decode() == expected


@pytest.mark.parametrize("level", LEVELS)
def test_json_of_entities(table: Table, level: str) -> None:
    table.insert(GIVEN).expect(201)
    expected = "{" + context(table, level, "") + '"value":[{' + expected_row(table, level) + "}]}"
    assert table.query(accept=LEVELS[level]).body.decode() == expected


@pytest.mark.parametrize("level", LEVELS)
def test_json_of_no_entities(table: Table, level: str) -> None:
    assert table.query(accept=LEVELS[level]).body.decode() == "{" + context(table, level, "") + '"value":[]}'


SELECTIONS = [("S,F", "S,F"), ("S,%20F", "S,%20F"), ("S%2CF", "S,F"), ("S, F".replace(" ", "+"), "S,%20F")]


@pytest.mark.parametrize(("given", "echoed"), SELECTIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_json_of_a_selection(table: Table, level: str, given: str, echoed: str) -> None:
    table.insert(GIVEN).expect(201)
    tag = json.dumps(table.get("p q", "r's").etag)
    head = fill(HEADS[level], table, e=tag, k=PREDICATE)
    point = table.get("p q", "r's", f"$select={given}", accept=LEVELS[level]).expect(200)
    members = head + '"S":"x","F":1.5}'
    assert point.body.decode() == "{" + context(table, level, f"/@Element&$select={echoed}") + members
    feed = table.query(f"$select={given}", accept=LEVELS[level]).expect(200)
    assert feed.body.decode() == "{" + context(table, level, f"&$select={echoed}") + '"value":[{' + members + "]}"


def test_json_of_an_error(table: Table) -> None:
    answer = table.get("p", "none").expect(404)
    time = answer.json()["odata.error"]["message"]["value"].rpartition("Time:")[2]
    message = f"The specified resource does not exist.\\nRequestId:{answer.header('x-ms-request-id')}\\nTime:{time}"
    expected = '{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"' + message + '"}}}'
    assert answer.body.decode() == expected
    none = table.get("p", "none", accept=NONE)
    assert none.rejection == answer.rejection
    assert list(none.json()) == ["odata.error"]


def test_json_has_no_next_link(table: Table) -> None:
    table.add(entity("p", "1"), entity("p", "2"))
    assert set(table.query("$top=1").json()) == {"odata.metadata", "value"}


@pytest.mark.unverified
def test_the_name_in_an_address_is_echoed_in_some_case(table: Table) -> None:
    table.add(entity("p", "r"))
    upper = table.name.upper()
    for path in (f"/{upper}()", f"/{upper}(PartitionKey='p',RowKey='r')"):
        context_url = table.client.send("GET", path).expect(200).json()["odata.metadata"]
        assert table.name in context_url.lower()


def test_account_and_table_stand_in_the_type(table: Table) -> None:
    table.add(entity("p", quote("r")))
    row = table.query(accept=FULL).json()["value"][0]
    assert row["odata.type"] == f"{table.client.endpoint.account}.{table.name}"
    assert list(row)[:4] == ["odata.type", "odata.id", "odata.etag", "odata.editLink"]
