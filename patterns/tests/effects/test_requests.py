"""Requests of single writes reach their rows, and their answers are understood."""

import json
from typing import Any

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects import requests
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write


def write(client: Any, kind: Kind, key: EntityKey, etag: str | None = None, **properties: object) -> str:
    return Driver({"t": client}).run(perform(Write("t", Operation(kind, key, properties, etag))))


@pytest.mark.parametrize("name", ["'", " ", "(a,b)", "%25", "é", "it's 100 % é~\u4e2d\U0001f600&=+", ""])
def test_odd_keys_and_all_kinds_reach_their_row(table_client: TableClient, name: str) -> None:
    key = EntityKey(name, name)
    etag = write(table_client, Kind.INSERT, key, Text="\u4e2d\U0001f600\r\n")
    assert table_client.get_entity(*key)["Text"] == "\u4e2d\U0001f600\r\n"
    assert table_client.get_entity(*key).metadata["etag"] == etag
    etag = write(table_client, Kind.MERGE, key, etag, M=1)
    assert sorted(table_client.get_entity(*key)) == ["M", "PartitionKey", "RowKey", "Text"]
    etag = write(table_client, Kind.REPLACE, key, etag, N=1)
    assert sorted(table_client.get_entity(*key)) == ["N", "PartitionKey", "RowKey"]
    write(table_client, Kind.PUT_MERGE, key, M=1)
    with pytest.raises(Rejected, match="412"):
        write(table_client, Kind.REPLACE, key, etag)
    etag = write(table_client, Kind.PUT, key)
    assert write(table_client, Kind.DELETE, key, etag) == ""
    assert list(table_client.list_entities()) == []


def test_an_sdk_that_is_built_in_another_way_sends_the_write_itself(table_client: TableClient) -> None:
    class Other:
        table_name = table_client.table_name
        create_entity = table_client.create_entity

    other: Any = Other()
    etag = write(other, Kind.INSERT, EntityKey("p", "r"), N=1)
    assert table_client.get_entity("p", "r").metadata["etag"] == etag


def error(code: str, message: str) -> bytes:
    return json.dumps({"odata.error": {"code": code, "message": {"lang": "en-US", "value": message}}}).encode()


def test_answers_are_understood() -> None:
    assert requests.etag_of(204, {"ETag": 'W/"1"'}, b"") == 'W/"1"'
    assert requests.etag_of(204, {}, b"") == ""
    with pytest.raises(Rejected) as rejected:
        requests.etag_of(404, {}, error("TableNotFound", "No.\nRequestId:1"))
    assert (rejected.value.status, rejected.value.code, rejected.value.index) == (404, "TableNotFound", None)
    for status in (304, 408, 429, 500, 503):
        with pytest.raises(ResultUnknown) as unknown:
            requests.etag_of(status, {"Retry-After": "5"}, b"no json")
        assert unknown.value.retry_after_seconds == 5
