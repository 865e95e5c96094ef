"""Transactions as bodies of `$batch`, and the answers to them.

`submit_transaction` of the SDK takes about ten times as long for a hundred entities: it makes a request of each, and
parses the answer as a mail. The request still goes through the client's pipeline, with its credentials and transport.
"""

import json
import re
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from azure.core.rest import HttpRequest

from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Batch, Kind, Operation
from lazulite_patterns.effects.wire import entity_json

BYTES_MAX = 4 * 1024 * 1024
"""The most bytes of a transaction's body: binaries are a third longer in it."""
_METHODS = {
    Kind.INSERT: "POST",
    Kind.PUT: "PUT",
    Kind.REPLACE: "PUT",
    Kind.PUT_MERGE: "PATCH",
    Kind.MERGE: "PATCH",
    Kind.DELETE: "DELETE",
}
_CONDITIONAL = frozenset({Kind.REPLACE, Kind.MERGE, Kind.DELETE})
_PART = re.compile(
    rb"HTTP/1\.1 (\d{3})[^\r\n]*\r?\n(.*?)\r?\n\r?\n(.*?)(?=\r?\n--changeset|\r?\n--batch|\Z)", re.DOTALL
)
_ETAG = re.compile(rb"^etag: *(.*?)\r?$", re.IGNORECASE | re.MULTILINE)
_INDEX = re.compile(r"^(\d+):")


def request_of(effect: Batch, client: Any) -> HttpRequest | None:
    """Return the request of a transaction; None if the client's SDK is built in another way, or talks to Cosmos DB.

    Raises:
        TypeError: a value has no type of the service.
        Rejected: the body exceeds 4 MiB. Nothing was sent.
    """
    host = getattr(client, "_primary_hostname", None)
    if host is None or getattr(client, "_cosmos_endpoint", True) or not hasattr(client, "_client"):
        return None
    base = f"{client.scheme}://{host}"
    boundary, url = uuid4(), f"{base}/{client.table_name}"
    headers = {
        "x-ms-version": str(client.api_version),
        "DataServiceVersion": "3.0",
        "MaxDataServiceVersion": "3.0;NetFx",
        "Accept": "application/json",
        "Content-Type": f"multipart/mixed; boundary=batch_{boundary}",
    }
    content = body(effect, url, str(boundary))
    check_length(len(content))
    return HttpRequest("POST", f"{base}/$batch", headers=headers, content=content)


def check_length(length: int) -> None:
    """Refuse a transaction that the service would refuse for its size, before it is sent."""
    if length > BYTES_MAX:
        raise Rejected(413, "RequestBodyTooLarge", f"{length} bytes of a transaction, {BYTES_MAX} are allowed")


def body(effect: Batch, table_url: str, boundary: str) -> bytes:
    """Return the body of a transaction.

    Args:
        effect: the transaction.
        table_url: the URL of the table.
        boundary: text that is in no entity.
    """
    lines = [f"--batch_{boundary}", f"Content-Type: multipart/mixed; boundary=changeset_{boundary}", ""]
    for number, each in enumerate(effect.operations):
        lines += [f"--changeset_{boundary}", *part(each, table_url, number)]
    lines += [f"--changeset_{boundary}--", f"--batch_{boundary}--", ""]
    return "\r\n".join(lines).encode("ascii")


def part(operation: Operation, table_url: str, number: int) -> list[str]:
    """Return the lines of one operation, whose Content-ID is its number."""
    place = "" if operation.kind is Kind.INSERT else "(PartitionKey='{}',RowKey='{}')".format(*map(_key, operation.key))
    lines = [
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}",
        "",
        f"{_METHODS[operation.kind]} {table_url}{place} HTTP/1.1",
        "DataServiceVersion: 3.0",
        "Accept: application/json;odata=minimalmetadata",
    ]
    if operation.kind is Kind.INSERT:
        lines.append("Prefer: return-no-content")
    if operation.kind in _CONDITIONAL:
        lines.append(f"If-Match: {operation.etag or '*'}")
    if operation.kind is Kind.DELETE:
        return [*lines, "", ""]
    keys = {"PartitionKey": operation.key.partition_key, "RowKey": operation.key.row_key}
    return [*lines, "Content-Type: application/json", "", entity_json({**operation.properties, **keys})]


def _key(text: str) -> str:
    return quote(text.replace("'", "''"), safe="")


def etags_of(status: int, headers: Any, content: bytes) -> tuple[str, ...]:
    """Return the entities' new ETags from the answer to a transaction.

    Raises:
        Rejected: the service refused it.
        ResultUnknown: the answer does not tell.
    """
    if status != 202:
        raise _error(status, headers, content)
    etags = []
    for found in _PART.finditer(content):
        if int(found[1]) >= 400:
            raise _error(int(found[1]), headers, found[3])
        etag = _ETAG.search(found[2])
        etags.append("" if etag is None else etag[1].decode("latin-1"))
    if not etags:
        raise ResultUnknown("the answer to a transaction has no parts")
    return tuple(etags)


def _error(status: int, headers: Any, content: bytes) -> Rejected | ResultUnknown:
    code, message = "", content.decode("utf-8", "replace")
    try:
        error = json.loads(content[: content.rindex(b"}") + 1])["odata.error"]
        code, message = str(error["code"]), str(error["message"]["value"])
    except (ValueError, KeyError, TypeError):
        pass
    if status >= 500 or status < 400 or status in {408, 429}:
        return ResultUnknown(f"{status}: {message}", _seconds(headers.get("Retry-After")))
    index = _INDEX.match(message)
    return Rejected(status, code, message, None if index is None else int(index[1]))


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
