"""Blob Batch: up to 256 requests in one, and their responses. Source: REST reference, Blob Batch; recordings.

Each request of a batch is authorized by itself. It has no body, no Host and no version of its own.
"""

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import NamedTuple
from uuid import UUID

from lazulite.protocol.errors import REASONS, ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.multipart import Head, boundary_of, read_parts
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.steps import Steps
from lazulite.service.routing import component_of

PARTS_MAX = 256
BODY_BYTES_MAX = 4 * 1024 * 1024
SERVER = "Windows-Azure-Blob/1.0"
"""The `Server` header of the responses in a batch."""

_CLIENT_ID_MAX = 1024
_OF_THE_WHOLE = frozenset({"content-type", "content-length", "x-content-type-options", "server", "date"})
_OF_EACH = frozenset({"x-ms-request-id", "x-ms-version", "x-ms-client-request-id"})
"""What a part has in places of its own."""


class PartKind(Enum):
    """What all requests of a batch do."""

    DELETE_BLOB = "DeleteBlob"
    SET_TIER = "SetBlobTier"


_KINDS = {("DELETE", ""): PartKind.DELETE_BLOB, ("PUT", "tier"): PartKind.SET_TIER}
"""The method and the component of a request -> what it does. No other operation runs in a batch."""


class PartRequest(NamedTuple):
    """One request of a batch."""

    head: Head
    path: str
    """Percent-encoded; in path style it begins with the account."""
    query: str


class PartProperties(NamedTuple):
    """What the response to one request tells of it."""

    content_id: str | None
    request_id: str
    version: str
    client_id: str
    """The request's `x-ms-client-request-id`; "" if it has none."""


def lacks_boundary(content_type: str) -> bool:
    """Tell whether the type of a body is that of a batch, but names no boundary."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "multipart/mixed" and boundary_of(content_type) is None


def read_batch(content_type: str, body: bytes) -> Steps[tuple[PartKind, list[PartRequest]]]:
    """Take a batch apart, in steps. Return what its requests do, and the requests.

    Args:
        content_type: the header of the outer request.
        body: of the outer request, of at most `BODY_BYTES_MAX`.

    Raises:
        ServiceError: `InvalidInput`, it is malformed, has none or too many, or requests of two kinds;
            `RequestUrlFailedToParse`, `InvalidUri`, the URL of a part is malformed.
    """
    parts = yield from read_parts(content_type, body, PARTS_MAX)
    if not 1 <= len(parts) <= PARTS_MAX or any(part.body for part in parts):
        raise ServiceError("InvalidInput")
    requests = [_request(part.head) for part in parts]
    kinds = {_kind(request) for request in requests}
    if len(kinds) != 1:
        raise ServiceError("InvalidInput")
    return kinds.pop(), requests


def _request(head: Head) -> PartRequest:
    url, _, query = head.url.partition("?")
    _, is_absolute, rest = url.partition("://")
    path = f"/{rest.partition('/')[2]}" if is_absolute else url
    if not path.startswith("/"):
        raise ServiceError("InvalidInput")
    return PartRequest(head, path, query)


def _kind(request: PartRequest) -> PartKind:
    # With `restype`, a container or the account would be addressed.
    kind = _KINDS.get((request.head.method, component_of(parse_query_string(request.query))))
    if kind is None:
        raise ServiceError("InvalidInput")
    return kind


def write_part(response: Response, facts: PartProperties) -> bytes:
    """Return the part that carries a response, behind its delimiter line.

    Args:
        response: with the headers of its operation or its rejection; headers that each response has are left out.
        facts: of the request.
    """
    named = "" if facts.content_id is None else f"Content-ID: {facts.content_id}\r\n"
    fields = [pair for pair in response.fields() if pair[0].lower() not in _OF_THE_WHOLE | _OF_EACH]
    fields += [("x-ms-request-id", facts.request_id), ("x-ms-version", facts.version)]
    if facts.client_id.isascii() and facts.client_id.isprintable() and 0 < len(facts.client_id) <= _CLIENT_ID_MAX:
        fields.append(("x-ms-client-request-id", facts.client_id))
    if response.body:
        fields += [("Content-Length", str(len(response.body))), ("Content-Type", "application/xml")]
    fields.append(("Server", SERVER))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    reason = response.reason or REASONS[response.status]
    head = f"Content-Type: application/http\r\n{named}\r\nHTTP/1.1 {response.status} {reason}\r\n{lines}\r\n"
    return head.encode("latin-1", "replace") + (response.body + b"\r\n" if response.body else b"")


def batch_response(parts: Sequence[bytes], random: Random) -> Response:
    """Return the 202 that carries the parts of a batch."""
    boundary = f"batchresponse_{UUID(int=random.getrandbits(128))}"
    delimiter = f"--{boundary}\r\n".encode("ascii")
    body = b"".join(delimiter + part for part in parts) + f"--{boundary}--".encode("ascii")
    return Response(202, [("Content-Type", f"multipart/mixed; boundary={boundary}")], body)
