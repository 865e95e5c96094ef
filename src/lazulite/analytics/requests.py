"""Requests as Storage Analytics sees them: what its logs and its metrics say of one is read here, and only here.

Source: reference §18.1. *Unverified* there and chosen here: a code of an error has no prefix;
a change set that was not applied has one line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Literal, NamedTuple, TypeAlias

from lazulite.analytics.exchange_buffer import RecordedExchange
from lazulite.analytics.operations import OperationClass, class_of, operation_name
from lazulite.blob.resource import resource_of as blob_resource
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import CREDENTIAL_REJECTIONS, ServiceError
from lazulite.protocol.message import Request, SubOperation
from lazulite.protocol.query_string import parse_query_string
from lazulite.queue.resource import queue_of
from lazulite.service.properties import ServiceProperties
from lazulite.table.resource import parse_resource as table_resource

Authentication: TypeAlias = Literal["authenticated", "sas", "anonymous", "bearer"]
Status: TypeAlias = Literal[
    "Success",
    "ThrottlingError",
    "ClientTimeoutError",
    "ServerTimeoutError",
    "ClientOtherError",
    "ServerOtherError",
    "AuthorizationError",
    "NetworkError",
]

_TICKS_PER_MS: Final = TICKS_PER_SECOND // 1000
_LINE_ENDS: Final = 4
"""Bytes of a field beside its name and value: colon, blank, CRLF."""
_FIELDS = re.compile(r"^(ETag|Last-Modified|Content-MD5|Location): ([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_SIGNATURE = re.compile(r"(?:^|&)(?:s|%[57]3)(?:i|%[46]9)(?:g|%[46]7)=", re.IGNORECASE)
_NAMED_BY_RESPONSE: Final = frozenset({"InsertEntity", "CreateTable"})
"""The operations whose body names the resource; the Location of the response has it."""


class LoggedRequest(NamedTuple):
    """One request."""

    account: str
    service: str
    properties: ServiceProperties
    """Of the account's service."""
    operation: str
    """As analytics names it."""
    operation_class: OperationClass
    authentication: Authentication
    status: Status
    http_status: int
    error_code: str
    """Of a rejection; else ""."""
    is_secondary: bool
    started: int
    """In ticks; when the head of the request was there."""
    ended: int
    """In ticks."""
    total_ms: float
    """End to end."""
    server_ms: float
    """Of it, the service's part."""
    request_head_bytes: int
    request_body_bytes: int
    response_head_bytes: int
    response_body_bytes: int
    version: str
    scheme: str
    method: str
    path: str
    query: str
    """As they came, with signatures."""
    key: str
    """The requested object: `/account/…`, decoded."""
    id: str
    client: str
    headers: Mapping[str, str]
    """Of the request, lower-case names."""
    fields: Mapping[str, str]
    """Of the response, lower-case names: `etag`, `last-modified`, `content-md5`, as far as it has them."""
    is_verified: bool
    """Whether its credentials were found good."""
    operations: Sequence[SubOperation]
    """Of a change set that was applied."""

    @property
    def prefix(self) -> str:
        """What stands before the status: `SAS`, `Anonymous`, `OAuth` (in logs only) or nothing."""
        return _PREFIXES[self.authentication]


_PREFIXES: Final[Mapping[Authentication, str]] = {
    "authenticated": "",
    "sas": "SAS",
    "anonymous": "Anonymous",
    "bearer": "OAuth",
}


class RequestReader:
    """Reads what the request path has left.

    Args:
        addressings: how the accounts of each service are addressed.
        wanted: the properties that ask for analytics, by service and account.
    """

    def __init__(
        self, addressings: Mapping[str, Addressing], wanted: Mapping[tuple[str, str], ServiceProperties]
    ) -> None:
        self._addressings = addressings
        self._wanted = wanted

    def read(self, found: RecordedExchange) -> Iterator[LoggedRequest]:
        """Yield the requests of an exchange that analytics knows: one, or the parts of a batch of blobs."""
        record = found.record
        properties = self._wanted.get((record.service, record.account))
        if properties is None:  # It does not ask for it any more.
            return
        for number, (request, response) in enumerate(record.parts):
            part = found._replace(
                record=request.record,
                id=request.id,
                method=request.method,
                path=request.path,
                query=request.query,
                headers=request.headers,
                head=b"",
                is_authenticated=request.authenticated,
                status=response.status,
                error_code=response.error_code,
                fields=response.headers,
                opening=response.opening,
                bytes_in=0 if number else found.bytes_in,
                bytes_out=0 if number else found.bytes_out,
                head_bytes_out=0 if number else found.head_bytes_out,
            )
            if request.record.account:
                yield from self._read(part, properties)
        if not record.parts:
            yield from self._read(found, properties)

    def _read(self, found: RecordedExchange, properties: ServiceProperties) -> Iterator[LoggedRequest]:
        record, method, path, query, headers = found.record, found.method, found.path, found.query, found.headers
        head_bytes = len(found.head)
        if head_bytes:
            path, query, headers = _read_head(found.head)
        else:
            line = len(method) + len(path) + len(query) + bool(query) + len("  HTTP/1.1\r\n\r\n")
            head_bytes = line + sum([len(name) + len(value) + _LINE_ENDS for name, value in headers.items()])
        authentication = _authentication(headers, query)
        status = _status(found)
        if authentication == "anonymous" and not _is_known_of_anonymous(status, found.status, method):
            return
        operation = operation_name(record.operation, headers, query)
        fields = _fields_of(found)
        address = self._address(Request(method, path, query, headers, scheme=found.scheme), record.service)
        total_ms = max(found.total_ms, found.elapsed_ms)
        yield LoggedRequest(
            record.account,
            record.service,
            properties,
            operation,
            class_of(operation, record.rows_returned),
            authentication,
            status,
            found.status,
            found.error_code,
            address is not None and address.secondary,
            found.ended - int(total_ms * _TICKS_PER_MS),
            found.ended,
            total_ms,
            found.elapsed_ms,
            head_bytes,
            found.bytes_in,
            found.head_bytes_out,
            found.bytes_out - found.head_bytes_out,
            record.version,
            found.scheme,
            method,
            path,
            query,
            _key(record.service, operation, address, record.account, query, fields.get("location", "")),
            found.id,
            found.client,
            headers,
            fields,
            found.is_authenticated,
            record.operations,
        )

    def _address(self, request: Request, service: str) -> Address | None:
        addressing = self._addressings.get(service)
        try:
            return None if addressing is None else addressing.locate(request)
        except ServiceError:
            return None


def _read_head(head: bytes) -> tuple[str, str, Mapping[str, str]]:
    """Return path, query and fields of a head that a template has answered: one that is well-formed, in ASCII."""
    line, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    path, _, query = line.split(b" ")[1].decode("ascii").partition("?")
    fields = [(_cached_field if len(each) <= _CACHED_BYTES_MAX else _field)(each) for each in lines]
    return path, query, dict(fields)


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("ascii").partition(":")
    return name.lower(), value.strip(" \t")


_CACHED_BYTES_MAX: Final = 64
"""Of lines that are cached; credentials are longer."""
_cached_field = lru_cache(maxsize=512)(_field)


def _authentication(headers: Mapping[str, str], query: str) -> Authentication:
    """Return by what a request wanted to be authenticated."""
    authorization = headers.get("authorization")
    if authorization is not None:
        return "bearer" if authorization[:7].lower() == "bearer " else "authenticated"
    return "sas" if query and _SIGNATURE.search(query) is not None else "anonymous"


def _status(found: RecordedExchange) -> Status:
    status, code = found.status, found.error_code
    if not found.is_whole:
        return "NetworkError"
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return "Success"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or code in CREDENTIAL_REJECTIONS:
        return "AuthorizationError"
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return "ThrottlingError"
    is_late = code == "OperationTimedOut"
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return "ClientTimeoutError" if is_late else "ClientOtherError"
    return "ServerTimeoutError" if is_late else "ServerOtherError"


def _is_known_of_anonymous(status: Status, http_status: int, method: str) -> bool:
    """Tell whether a request without credentials is logged: a failure only if it is none of the client's."""
    if status in ("ClientOtherError", "AuthorizationError", "NetworkError"):
        return http_status == HTTPStatus.NOT_MODIFIED and method == "GET"
    return True


def _fields_of(found: RecordedExchange) -> Mapping[str, str]:
    fields = {name.lower(): value for name, value in found.fields if name.lower() in _KEPT}
    if found.opening:
        fields.update((name.lower(), value) for name, value in _FIELDS.findall(found.opening))
    return fields


_KEPT: Final = frozenset({"etag", "last-modified", "content-md5", "location"})


def _key(service: str, operation: str, address: Address | None, account: str, query: str, location: str) -> str:
    """Return the key of the requested object; that of the account if the path names none."""
    if address is None:
        return f"/{account}"
    path = address.resource
    if operation in _NAMED_BY_RESPONSE and location.startswith(address.base):
        path = location[len(address.base) :]
    read = _NAMES.get(service)
    try:
        names = () if read is None or not path else read(path, query)
    except ServiceError:
        names = ()
    return "/".join(("", account, *names))


@lru_cache(maxsize=256)
def _table_names(path: str, _: str) -> tuple[str, ...]:
    found = table_resource(path)
    return (found.table, *found.keys) if found.table else ()


def _queue_names(path: str, _: str) -> tuple[str, ...]:
    queue = queue_of(path)
    return (queue,) if queue else ()


def _blob_names(path: str, query: str) -> tuple[str, ...]:
    found = blob_resource(path, parse_query_string(query) if "restype" in query else {})
    return tuple(name for name in (found.container, found.blob) if name)


_NAMES: Final[Mapping[str, Callable[[str, str], tuple[str, ...]]]] = {
    "table": _table_names,
    "queue": _queue_names,
    "blob": _blob_names,
}
"""For each service, what reads the names of a resource from the path below the account, and the query."""
