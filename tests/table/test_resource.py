from urllib.parse import quote

import pytest
from hypothesis import given

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.table.resource import Kind, Resource, parse_resource, resolve_method
from tests.table.strategies import keys


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("", Resource(Kind.SERVICE)),
        ("Tables", Resource(Kind.TABLES)),
        ("tables", Resource(Kind.TABLES)),
        ("Tables()", Resource(Kind.TABLES)),
        ("Tables('abc')", Resource(Kind.TABLE, "abc")),
        ("Tables(%27abc%27)", Resource(Kind.TABLE, "abc")),
        ("Tables(TableName='abc')", Resource(Kind.TABLE, "abc")),
        ("$batch", Resource(Kind.BATCH)),
        ("%24batch", Resource(Kind.BATCH)),
        ("/", Resource(Kind.SERVICE)),
        ("people/Tables", Resource(Kind.BELOW_TABLE, "people")),
        ("people/tables( )/", Resource(Kind.BELOW_TABLE, "people")),
        ("people/Tables('x')", Resource(Kind.TABLE_BELOW_TABLE, "people")),
        ("people/$batch", Resource(Kind.BELOW_TABLE, "people")),
        ("people/%24batch", Resource(Kind.BELOW_TABLE, "people")),
        ("people", Resource(Kind.ENTITIES, "people")),
        ("people/", Resource(Kind.ENTITIES, "people")),
        ("people()", Resource(Kind.ENTITIES, "people")),
        ("people(PartitionKey='p',RowKey='r')", Resource(Kind.ENTITY, "people", "p", "r")),
        ("people(RowKey='r', PartitionKey='p')", Resource(Kind.ENTITY, "people", "p", "r")),
        ("people%28PartitionKey=%27p%27,%20RowKey=%27r%27%29", Resource(Kind.ENTITY, "people", "p", "r")),
        ("tablesX(PartitionKey='p',RowKey='r')", Resource(Kind.ENTITY, "tablesX", "p", "r")),
        ("people(PartitionKey='a@b.c',RowKey='1=+')", Resource(Kind.ENTITY, "people", "a@b.c", "1=+")),
        ("people(PartitionKey='',RowKey='')", Resource(Kind.ENTITY, "people", "", "")),
        ("people(PartitionKey='O''Neil',RowKey='a)b,(')", Resource(Kind.ENTITY, "people", "O'Neil", "a)b,(")),
        ("people(PartitionKey='a+b%2520',RowKey='%F0%9F%98%80')", Resource(Kind.ENTITY, "people", "a+b%20", "😀")),
    ],
)
def test_addresses(path: str, resource: Resource) -> None:
    assert parse_resource(path) == resource


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("people(PartitionKey='p')", "InvalidInput"),
        ("people(PartitionKey='p',RowKey='r',RowKey='r')", "InvalidInput"),
        ("people(PartitionKey='p',PartitionKey='q')", "InvalidInput"),
        ("people(PartitionKey='p',RowKey='r'", "InvalidInput"),
        ("people(PartitionKey='p',RowKey='r',)", "InvalidInput"),
        ("people(PartitionKey='p',RowKey=r)", "InvalidInput"),
        ("people(PartitionKey='p'x,RowKey='r')", "InvalidInput"),
        ("people(partitionkey='p',RowKey='r')", "InvalidInput"),
        ("people('p')", "InvalidInput"),
        ("TABLES(PartitionKey='p',RowKey='r')", "InvalidInput"),
        ("pe(PartitionKey='p',RowKey='r')", "OutOfRangeInput"),
        (f"people(PartitionKey='p',RowKey='{'r' * 1025}')", "KeyValueTooLarge"),
        ("people(PartitionKey='a%2Fb',RowKey='r')", "InvalidInput"),
        ("Tables(abc)", "InvalidInput"),
        ("people/people()", "InvalidUri"),
        ("people/Tables/Tables", "InvalidUri"),
        ("people/$batch()", "InvalidUri"),
        ("people/Tables('x", "InvalidUri"),
        ("/Tables", "InvalidUri"),
        ("pe_ople/Tables('x')", "InvalidResourceName"),
        ("Tables/Tables", "InvalidResourceName"),
        ("people%2F", "InvalidResourceName"),
        ("people%2FTables", "InvalidResourceName"),
        ("%2F", "InvalidResourceName"),
        ("a%2F%2F(PartitionKey='p',RowKey='r')", "InvalidResourceName"),
        ("a%2F%2F%28PartitionKey='p',RowKey='r')", "InvalidResourceName"),
        ("pe_ople", "InvalidResourceName"),
        ("ab", "OutOfRangeInput"),
        ("people%FF", "RequestUrlFailedToParse"),
    ],
)
def test_rejections(path: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_resource(path)
    assert caught.value.code == code


@given(keys, keys)
def test_every_legal_key_can_be_addressed(partition_key: str, row_key: str) -> None:
    def literal(key: str) -> str:
        return quote(key.replace("'", "''"), safe="")

    path = f"people(PartitionKey='{literal(partition_key)}',RowKey='{literal(row_key)}')"
    assert parse_resource(path) == Resource(Kind.ENTITY, "people", partition_key, row_key)


def test_the_method_is_the_requests_unless_tunnelled() -> None:
    assert resolve_method(Request("PATCH", "/")) == "PATCH"
    assert resolve_method(Request("POST", "/", headers={"x-http-method": "merge"})) == "MERGE"


@pytest.mark.parametrize(("method", "value"), [("MERGE", "MERGE"), ("MERGE", " merge "), ("PUT", "PUT")])
def test_a_part_of_a_batch_may_repeat_its_method(method: str, value: str) -> None:
    request = Request(method, "/", headers={"x-http-method": value})
    assert resolve_method(request, in_batch=True) == method
    with pytest.raises(ServiceError, match="XMethodNotUsingPost"):
        resolve_method(request)


@pytest.mark.parametrize(
    ("method", "value", "code"),
    [
        ("MERGE", "PUT", "XMethodNotUsingPost"),
        ("MERGE", "MERGE, MERGE", "XMethodNotUsingPost"),
        ("POST", "POST", "XMethodIncorrectValue"),
    ],
)
def test_a_part_of_a_batch_names_no_other_method(method: str, value: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code):
        resolve_method(Request(method, "/", headers={"x-http-method": value}), in_batch=True)


@pytest.mark.parametrize(
    ("method", "value", "code"),
    [
        ("GET", "MERGE", "XMethodNotUsingPost"),
        ("POST", "MERGE, PUT", "XMethodIncorrectCount"),
        ("POST", "BREW", "XMethodIncorrectValue"),
    ],
)
def test_tunnels_rejected(method: str, value: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        resolve_method(Request(method, "/", headers={"x-http-method": value}))
    assert caught.value.code == code
