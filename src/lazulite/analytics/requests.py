"""Requests as Storage Analytics sees them: what its logs and its metrics say of one is read here, and only here.

Source: reference §18.1. *Unverified* there and chosen here: a code of an error has no prefix;
a change set that was not applied has one line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from lazulite.analytics.exchange_buffer import KeptExchange, RecordedExchange
from lazulite.analytics.operations import OperationClass, class_of, operation_name
from lazulite.blob.resource import resource_of as blob_resource
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import CREDENTIAL_REJECTIONS, ServiceError
from lazulite.protocol.lru_cache import LruCache
from lazulite.protocol.message import Request, SubOperation
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.template import KEY, HeadValues, Template, TextTemplate, as_sent
from lazulite.queue.resource import queue_of
from lazulite.server.observability.exchange import RepeatedExchange
from lazulite.service.properties import ServiceProperties
from lazulite.table.resource import USUAL_KEYS
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

TICKS_PER_MS: Final = TICKS_PER_SECOND // 1000
_LINE_ENDS: Final = 4
"""Bytes of a field beside its name and value: colon, blank, CRLF."""
_SIGNATURE = re.compile(r"(?:^|&)(?:s|%[57]3)(?:i|%[46]9)(?:g|%[46]7)=", re.IGNORECASE)
_KEYS_OF_LOCATION = re.compile(rf"(?<!\)){USUAL_KEYS}(?=\r\n)", re.ASCII)
"""The keys of an entity at the end of a field that has its URL, if they need no decoding."""
FORMS_MAX: Final = 1024
"""Templates whose requests are read quickly."""
_NAMED_BY_RESPONSE: Final = frozenset({"InsertEntity", "CreateTable"})
"""The operations whose body names the resource; the Location of the response has it."""


class LoggedRequest(NamedTuple):
    """One request."""

    account: str
    service: str
    properties: ServiceProperties
    """The properties of the account's service."""
    operation: str
    """As analytics names it."""
    operation_class: OperationClass
    authentication: Authentication
    status: Status
    http_status: int
    error_code: str
    """The code of a rejection; else ""."""
    is_secondary: bool
    started: int
    """In ticks; when the head of the request was there."""
    ended: int
    """In ticks."""
    total_ms: float
    """End to end."""
    server_ms: float
    """The service's part of `total_ms`."""
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
    """The requested object: `/account/…`, decoded; empty if no requests are logged."""
    id: str
    client: str
    headers: Mapping[str, str]
    """The header fields of the request, with lower-case names."""
    fields: Mapping[str, str]
    """The response's `etag`, `last-modified` and `content-md5`, as far as it has them."""
    is_verified: bool
    """Whether its credentials were found good."""
    operations: Sequence[SubOperation]
    """The operations of a change set that was applied."""

    @property
    def form(self) -> None:
        """None: no template has answered it."""

    @property
    def prefix(self) -> str:
        """What stands before the status: `SAS`, `Anonymous`, `OAuth` (in logs only) or nothing."""
        return PREFIXES[self.authentication]


PREFIXES: Final[Mapping[Authentication, str]] = {
    "authenticated": "",
    "sas": "SAS",
    "anonymous": "Anonymous",
    "bearer": "OAuth",
}


@dataclass(slots=True, kw_only=True, eq=False)
class RequestForm:
    """What the requests of one template have in common, and how to get the rest from their values."""

    account: str
    service: str
    operation: str
    operation_class: OperationClass
    is_by_rows: bool
    """Whether the class depends on what was returned."""
    is_named_by_response: bool
    """Whether the Location of the response has the key."""
    authentication: Authentication
    address: Address | None
    version: str
    scheme: str
    path: TextTemplate | str
    query: str
    query_form: TextTemplate | None
    """None: all have one query."""
    key: str
    """The key of all, or the part before their own keys."""
    keys: int
    """How many keys, the first of the values, follow it, percent-encoded."""
    headers: Mapping[str, str]
    """Those that all have."""
    varying: Sequence[tuple[str, int]]
    """The others: their names, and the indexes of their values."""
    lines: "dict[str, Callable[[RepeatedRequest], str]]"
    """What makes the line of one, by the version of the line. `log_lines` fills it."""

    @property
    def is_secondary(self) -> bool:
        """Whether they go to the secondary."""
        return self.address is not None and self.address.secondary

    def path_of(self, values: HeadValues) -> str:
        """Return the path of one."""
        return self.path if isinstance(self.path, str) else _text(self.path, values)

    def query_of(self, values: HeadValues) -> str:
        """Return the query of one."""
        return self.query if self.query_form is None else _text(self.query_form, values)

    def key_of(self, values: HeadValues) -> str:
        """Return the key of one."""
        return f"{self.key}/{unquote(self.key_marks(values))}" if self.keys else self.key

    def key_marks(self, marks: HeadValues) -> str:
        """Return the end of a key as its URL has it, given its keys, or texts in their place."""
        return b"/".join(marks[: self.keys]).decode("ascii")

    def headers_of(self, values: HeadValues) -> Mapping[str, str]:
        """Return the headers of one."""
        found = dict(self.headers)
        for name, index in self.varying:
            found[name] = values[index].decode("ascii")
        return found


class RepeatedRequest:
    """One request that a template has answered: a success with good credentials. It tells what `LoggedRequest` does.

    Args:
        exchange: of the request.
        ended: in ticks.
        properties: of the account's service.
        form: of the template.
    """

    __slots__ = ("account", "ended", "exchange", "form", "operation_class", "properties", "service", "started")

    status: Final = "Success"
    error_code: Final = ""
    is_verified: Final = True

    def __init__(
        self, exchange: RepeatedExchange, ended: int, properties: ServiceProperties, form: "RequestForm"
    ) -> None:
        self.exchange = exchange
        self.ended = ended
        self.properties = properties
        self.form = form
        # Attributes, as each line needs them.
        self.account = form.account
        self.service = form.service
        self.operation_class: OperationClass = (
            class_of(form.operation, exchange.rows or 0) if form.is_by_rows else form.operation_class
        )
        self.started = ended - int(exchange.elapsed_ms * TICKS_PER_MS)

    @property
    def operation(self) -> str:
        """The operation."""
        return self.form.operation

    @property
    def authentication(self) -> Authentication:
        """How it was authenticated."""
        return self.form.authentication

    @property
    def http_status(self) -> int:
        """The status of the response."""
        return self.exchange.status

    @property
    def is_secondary(self) -> bool:
        """Whether it went to the secondary."""
        return self.form.is_secondary

    @property
    def total_ms(self) -> float:
        """End to end: a template answers what is whole."""
        return self.exchange.elapsed_ms

    server_ms = total_ms

    @property
    def request_head_bytes(self) -> int:
        """The bytes of the request's head."""
        return self.exchange.sizes[0]

    @property
    def request_body_bytes(self) -> int:
        """The bytes of its body."""
        return self.exchange.sizes[1]

    @property
    def response_head_bytes(self) -> int:
        """The bytes of the response's head."""
        return self.exchange.sizes[2]

    @property
    def response_body_bytes(self) -> int:
        """The bytes of its body."""
        return self.exchange.sizes[3]

    @property
    def id(self) -> str:
        """The id of the request."""
        return self.exchange.request_id

    @property
    def key(self) -> str:
        """The requested object."""
        form, opening = self.form, self.exchange.opening
        if not form.is_named_by_response:
            return form.key_of(self.exchange.values)
        keys = keys_of_location(opening)
        if keys is not None:
            return f"{form.key}/{keys[0]}/{keys[1]}"
        location = find_field(opening, "Location: ")
        return _key(form.service, form.operation, form.address, form.account, form.query, location)


AnalyticsRequest: TypeAlias = LoggedRequest | RepeatedRequest


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
        self._forms: LruCache[int, tuple[Template, RequestForm]] = LruCache(FORMS_MAX)
        """By the identity of their templates, which live as long."""

    def read(self, kept: Iterable[KeptExchange]) -> list[AnalyticsRequest]:
        """Return the requests of exchanges that analytics knows. A batch of blobs has one for each part."""
        requests: list[AnalyticsRequest] = []
        template = form = properties = None
        for ended, _, found in kept:
            if isinstance(found, RepeatedExchange):
                if found.template is not template:  # Mostly, one template answers many requests in turn.
                    template = found.template
                    properties = self._wanted.get((template.record.service, template.record.account))
                    form = self._form(template, found.values)
                if properties is not None and form is not None:
                    requests.append(RepeatedRequest(found, ended, properties, form))
                continue
            wanted = self._wanted.get((found.record.service, found.record.account))
            if wanted is not None:  # It may not ask for it any more.
                requests += self._parts(found, ended, wanted)
        return requests

    def _parts(self, found: RecordedExchange, ended: int, properties: ServiceProperties) -> Iterator[LoggedRequest]:
        record = found.record
        for number, (request, response) in enumerate(record.parts):
            part = found._replace(
                record=request.record,
                id=request.id,
                method=request.method,
                path=request.path,
                query=request.query,
                headers=request.headers,
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
                yield from self._read(part, ended, properties)
        if not record.parts:
            yield from self._read(found, ended, properties)

    def _read(self, found: RecordedExchange, ended: int, properties: ServiceProperties) -> Iterator[LoggedRequest]:
        record, method, path, query, headers = found.record, found.method, found.path, found.query, found.headers
        line = len(method) + len(path) + len(query) + bool(query) + len("  HTTP/1.1\r\n\r\n")
        head_bytes = line + sum([len(name) + len(value) + _LINE_ENDS for name, value in headers.items()])
        authentication = _authentication(headers, query)
        status = _status(found)
        if authentication == "anonymous" and not _is_known_of_anonymous(status, found.status, method):
            return
        operation = operation_name(record.operation, headers, query)
        fields = {name.lower(): value for name, value in found.fields if name.lower() in _KEPT}
        fields.update(_fields_in(found.opening))
        address = self._address(Request(method, path, query, headers, scheme=found.scheme), record.service)
        total_ms = max(found.total_ms, found.elapsed_ms)
        key = ""
        if properties.logging.is_on:
            key = _key(record.service, operation, address, record.account, query, fields.get("location", ""))
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
            ended - int(total_ms * TICKS_PER_MS),
            ended,
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
            key,
            found.id,
            found.client,
            headers,
            fields,
            found.is_authenticated,
            record.operations,
        )

    def _form(self, template: Template, values: HeadValues) -> "RequestForm":
        """Return what the requests of a template have in common, given the values of one."""
        known = self._forms.get(id(template))
        if known is None:
            known = template, self._form_of(template, values)
            self._forms.put(id(template), known)
        return known[1]

    def _form_of(self, template: Template, values: HeadValues) -> "RequestForm":
        """Return what the requests of a template have in common, given the values of one."""
        marked, record, names = template.marked, template.record, template.names
        path, query = TextTemplate(marked.path), TextTemplate(as_sent(marked.query))
        headers = {name: value for name, value in marked.headers.items() if name not in names}
        sent = {
            **headers,
            **{name: value.decode("ascii") for name, value in zip(names, values, strict=True) if name != KEY},
        }
        whole = Request(
            marked.method,
            _text(path, values),
            _text(query, values),
            sent,
            scheme=marked.scheme,
        )
        address = self._address(whole, record.service)
        operation = operation_name(record.operation, sent, whole.query)
        key = _key(record.service, operation, address, record.account, whole.query, "")
        keys = min(names.count(KEY), _KEYS_OF.get(record.service, 0))
        if keys:
            key = "/".join(key.split("/", 3)[:3])
        return RequestForm(
            account=record.account,
            service=record.service,
            operation=operation,
            operation_class=class_of(operation, record.rows_returned),
            is_by_rows=record.service == "queue",
            is_named_by_response=operation in _NAMED_BY_RESPONSE,
            authentication=_authentication(sent, whole.query),
            address=address,
            version=record.version,
            scheme=marked.scheme,
            path=path if path.has_values else whole.path,
            query=whole.query,
            query_form=query if query.has_values else None,
            key=key,
            keys=keys,
            headers=headers,
            varying=tuple((name, index) for index, name in enumerate(names) if name != KEY),
            lines={},
        )

    def _address(self, request: Request, service: str) -> Address | None:
        addressing = self._addressings.get(service)
        try:
            return None if addressing is None else addressing.locate(request)
        except ServiceError:
            return None


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
    """Tell whether a request without credentials is logged: a failure only if it is not the client's fault."""
    if status in ("ClientOtherError", "AuthorizationError", "NetworkError"):
        return http_status == HTTPStatus.NOT_MODIFIED and method == "GET"
    return True


def find_field(opening: str, line: str) -> str:
    """Return the value of a field of an opening, given the beginning of its line, such as `ETag: `; "" if it lacks it.

    Services write it so.
    """
    at = opening.find(line)
    return "" if at < 0 else opening[at + len(line) : opening.index("\r\n", at)]


def keys_of_location(opening: str) -> tuple[str, str] | None:
    """Return the keys of the entity in the Location of an opening; None if it has none, or they need decoding."""
    found = _KEYS_OF_LOCATION.match(opening, opening.find("(PartitionKey='"))
    return None if found is None else (found[1], found[2])


def _fields_in(opening: str) -> dict[str, str]:
    """Return the fields of an opening that analytics knows."""
    found = {
        name.lower(): find_field(opening, f"{name}: ") for name in ("ETag", "Last-Modified", "Content-MD5", "Location")
    }
    return {name: text for name, text in found.items() if text}


_KEPT: Final = ("etag", "last-modified", "content-md5", "location")
_KEYS_OF: Final = {"table": 2, "blob": 1}
"""How many keys of a path end the key of an object."""


def _text(form: TextTemplate, values: HeadValues) -> str:
    text = form.of(values)
    return "" if text is None else text.decode("latin-1")


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
