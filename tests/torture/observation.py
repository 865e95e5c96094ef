"""The contents of a store, read over HTTP."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from tests.sdk.etags import instant
from tests.sdk.ledger import TABLE, Key, Store, Stored

from .http_client import Answer, Connection, entity_path, raw

_CONTINUATION = {"x-ms-continuation-nextpartitionkey": "NextPartitionKey", "x-ms-continuation-nextrowkey": "NextRowKey"}
_ELSEWHERE = ("odata.metadata", "odata.etag", "Timestamp", "PartitionKey", "RowKey")


async def read_store(connection: Connection, shared: str) -> Store:
    """Return all tables and entities, but for the `shared` table itself, of which only the entities are returned."""
    store: dict[Key, Stored] = {}
    answer = await connection.ask(raw("GET", "Tables"))
    for item in _checked(answer)["value"]:
        name = item["TableName"]
        if name != shared:
            store[(name,)] = TABLE
        store |= await read_entities(connection, name)
    return store


async def read_entities(connection: Connection, table: str, text: str = "") -> dict[Key, Stored]:
    """Return the entities of a table that a filter lets through."""
    found: dict[Key, Stored] = {}
    query = {"$filter": text} if text else {}
    while True:
        answer = await connection.ask(raw("GET", f"{table}()", query=urlencode(query, quote_via=quote)))
        page = _checked(answer)["value"]
        found |= dict(stored_entity(table, item) for item in page)
        following = {name: answer.headers[header] for header, name in _CONTINUATION.items() if header in answer.headers}
        assert not following or len(page) == 1000, f"a page of {len(page)} entities that says there are more"
        if not following:
            return found
        query |= following


async def read_entity(connection: Connection, key: Key) -> Stored | None:
    """Return one entity, or None."""
    answer = await connection.ask(raw("GET", entity_path(key)))
    return None if answer.status == 404 else stored_entity(key[0], _checked(answer))[1]


def _checked(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, f"reading was answered with {answer.status}: {answer.body[:500]!r}"
    read: dict[str, Any] = json.loads(answer.body)
    return read


def stored_entity(table: str, item: dict[str, Any]) -> tuple[Key, Stored]:
    """Return the key of an entity in a response, and what is stored under it."""
    etag = item["odata.etag"]
    spelled = item["Timestamp"].rstrip("Z").replace(":", "%3A")
    timestamp = spelled if "." in spelled else f"{spelled}."
    assert instant(etag) == timestamp.ljust(len("2017-08-30T13%3A20%3A33.4139140"), "0"), (
        f"{etag} of {item['Timestamp']}"
    )
    content = {name: value for name, value in item.items() if name not in _ELSEWHERE}
    return (table, item["PartitionKey"], item["RowKey"]), Stored(etag, content)
