"""Writes of single entities as requests, and the answers to them.

The SDK's methods take about as long for the request as for its way through the client's pipeline. A request of our own
goes through the same pipeline, with the client's credentials and transport.
"""

import json
import re
from typing import Any
from urllib.parse import quote

from azure.core.rest import HttpRequest

from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write
from lazulite_patterns.effects.wire import entity_json

METHODS = {
    Kind.INSERT: "POST",
    Kind.PUT: "PUT",
    Kind.REPLACE: "PUT",
    Kind.PUT_MERGE: "PATCH",
    Kind.MERGE: "PATCH",
    Kind.DELETE: "DELETE",
}
VERSIONS = {"DataServiceVersion": "3.0", "Accept": "application/json;odata=minimalmetadata"}
_CONDITIONAL = frozenset({Kind.REPLACE, Kind.MERGE, Kind.DELETE})
_INDEX = re.compile(r"^(\d+):")


def base_of(client: Any) -> str | None:
    """Return the URL of the account; None if the client's SDK is built in another way, or talks to Cosmos DB."""
    host = getattr(client, "_primary_hostname", None)
    if host is None or getattr(client, "_cosmos_endpoint", True) or not hasattr(client, "_client"):
        return None
    return f"{client.scheme}://{host}"


def request_of(effect: Write, client: Any) -> HttpRequest | None:
    """Return the request of a write; None if the client must make it.

    Raises:
        TypeError: a value has no type of the service.
    """
    if (base := base_of(client)) is None:
        return None
    operation = effect.operation
    return HttpRequest(
        METHODS[operation.kind],
        place(operation, f"{base}/{client.table_name}"),
        headers={"x-ms-version": str(client.api_version), **headers(operation)},
        content=body(operation),
    )


def place(operation: Operation, table_url: str) -> str:
    """Return the URL that an operation is sent to."""
    return table_url if operation.kind is Kind.INSERT else entity_url(operation.key, table_url)


def entity_url(key: EntityKey, table_url: str) -> str:
    """Return the URL of an entity."""
    partition_key, row_key = map(_key, key)
    return f"{table_url}(PartitionKey='{partition_key}',RowKey='{row_key}')"


def headers(operation: Operation) -> dict[str, str]:
    """Return the headers of an operation."""
    found = dict(VERSIONS)
    if operation.kind is Kind.INSERT:
        found["Prefer"] = "return-no-content"
    if operation.kind in _CONDITIONAL:
        found["If-Match"] = operation.etag or "*"
    if operation.kind is not Kind.DELETE:
        found["Content-Type"] = "application/json"
    return found


def body(operation: Operation) -> str | None:
    """Return the entity of an operation as JSON of ASCII characters; None if it has none.

    Raises:
        TypeError: a value has no type of the service.
    """
    if operation.kind is Kind.DELETE:
        return None
    key = operation.key
    return entity_json({**operation.properties, "PartitionKey": key.partition_key, "RowKey": key.row_key})


def etag_of(status: int, headers: Any, content: bytes) -> str:
    """Return the entity's new ETag from the answer to a write; an empty one after a delete.

    Raises:
        Rejected: the service rejected it.
        ResultUnknown: the answer does not tell.
    """
    if not 200 <= status < 300:
        raise error(status, headers, content)
    return str(headers.get("ETag") or "")


def error(status: int, headers: Any, content: bytes) -> Rejected | ResultUnknown:
    """Return what an answer that is no success means."""
    code, message = "", content.decode("utf-8", "replace")
    try:
        found = json.loads(content[: content.rindex(b"}") + 1])["odata.error"]
        code, message = str(found["code"]), str(found["message"]["value"])
    except (ValueError, KeyError, TypeError):
        pass
    if status >= 500 or status < 400 or status in {408, 429}:
        return ResultUnknown(f"{status}: {message}", _seconds(headers.get("Retry-After")))
    index = _INDEX.match(message)
    return Rejected(status, code, message, None if index is None else int(index[1]))


def _key(text: str) -> str:
    return quote(text.replace("'", "''"), safe="")


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
