"""Transactions as bodies of `$batch`, and the answers to them.

`submit_transaction` of the SDK takes about ten times as long for a hundred entities: it makes a request of each, and
parses the answer as a mail. The request still goes through the client's pipeline, with its credentials and transport.
"""

import re
from typing import Any
from uuid import uuid4

from azure.core.rest import HttpRequest

from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.requests import METHODS, base_of, error, headers, place
from lazulite_patterns.effects.requests import body as body_of
from lazulite_patterns.effects.tables import Batch, Operation

BYTES_MAX = 4 * 1024 * 1024
"""The most bytes of a transaction's body: binaries are a third longer in it."""
_PART = re.compile(
    rb"HTTP/1\.1 (\d{3})[^\r\n]*\r?\n(.*?)\r?\n\r?\n(.*?)(?=\r?\n--changeset|\r?\n--batch|\Z)", re.DOTALL
)
_ETAG = re.compile(rb"^etag: *(.*?)\r?$", re.IGNORECASE | re.MULTILINE)


def request_of(effect: Batch, client: Any) -> HttpRequest | None:
    """Return the request of a transaction; None if the client's SDK is built in another way, or talks to Cosmos DB.

    Raises:
        TypeError: a value has no type of the service.
        Rejected: the body exceeds 4 MiB. Nothing was sent.
    """
    if (base := base_of(client)) is None:
        return None
    boundary, url = uuid4(), f"{base}/{client.table_name}"
    sent = {
        "x-ms-version": str(client.api_version),
        "DataServiceVersion": "3.0",
        "MaxDataServiceVersion": "3.0;NetFx",
        "Accept": "application/json",
        "Content-Type": f"multipart/mixed; boundary=batch_{boundary}",
    }
    content = body(effect, url, str(boundary))
    check_length(len(content))
    return HttpRequest("POST", f"{base}/$batch", headers=sent, content=content)


def check_length(length: int) -> None:
    """Reject a transaction that the service would reject for its size, before it is sent."""
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
    return [
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        f"Content-ID: {number}",
        "",
        f"{METHODS[operation.kind]} {place(operation, table_url)} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers(operation).items()),
        "",
        body_of(operation) or "",
    ]


def etags_of(status: int, headers: Any, content: bytes) -> tuple[str, ...]:
    """Return the entities' new ETags from the answer to a transaction.

    Raises:
        Rejected: the service rejected it.
        ResultUnknown: the answer does not tell.
    """
    if status != 202:
        raise error(status, headers, content)
    etags = []
    for found in _PART.finditer(content):
        if int(found[1]) >= 400:
            raise error(int(found[1]), headers, found[3])
        etag = _ETAG.search(found[2])
        etags.append("" if etag is None else etag[1].decode("latin-1"))
    if not etags:
        raise ResultUnknown("the answer to a transaction has no parts")
    return tuple(etags)
