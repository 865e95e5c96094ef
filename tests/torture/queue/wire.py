"""The operations of queues as HTTP, and the responses read again: no SDK, which would take most of the time."""

import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

from tests.conformance.sas import account_sas
from tests.conformance.signing import Endpoint
from tests.server_process import Account
from tests.torture.http_client import Answer

from .history import NEVER, Event, Kind, Seen

FAR = "9999-12-31T23:59:59Z"
_FIELDS = re.compile(rb"<(MessageId|PopReceipt|DequeueCount|MessageText)>([^<]*)</")
_METHODS = {
    Kind.PUT: "POST",
    Kind.GET: "GET",
    Kind.PEEK: "GET",
    Kind.UPDATE: "PUT",
    Kind.DELETE: "DELETE",
    Kind.CLEAR: "DELETE",
    Kind.COUNT: "GET",
}
DONE = {
    Kind.PUT: 201,
    Kind.GET: 200,
    Kind.PEEK: 200,
    Kind.UPDATE: 204,
    Kind.DELETE: 204,
    Kind.CLEAR: 204,
    Kind.COUNT: 200,
}
"""The status of success."""


class Wire:
    """Spells requests to one server."""

    def __init__(self, account: Account) -> None:
        fields = dict(part.split("=", 1) for part in account.connection_string.strip(";").split(";"))
        self.endpoint = fields["QueueEndpoint"]
        self.host = urlsplit(self.endpoint).netloc
        endpoint = Endpoint.parse(self.endpoint, account.name, account.key)
        self._prefix = endpoint.prefix
        self._sas = account_sas(endpoint, {"ss": "q", "sp": "rwdlacup", "se": FAR})

    def queue(self, method: str, name: str) -> bytes:
        """Spell the creation (PUT) or the deletion of a queue."""
        return self._request(method, name, "", b"")

    def spell(self, queue: str, event: Event, message: str = "") -> bytes:
        """Spell an operation; `message` is the id for an update or a delete."""
        path, query, body = f"{queue}/messages", "", b""
        match event.kind:
            case Kind.PUT:
                query = f"visibilitytimeout={event.seconds}&messagettl={-1 if event.ttl == NEVER else event.ttl}"
                body = _body(event.number, event.version)
            case Kind.GET:
                query = f"numofmessages={event.asked}&visibilitytimeout={event.seconds}"
            case Kind.PEEK:
                query = f"peekonly=true&numofmessages={event.asked}"
            case Kind.UPDATE:
                path += f"/{message}"
                query = f"popreceipt={quote(event.receipt, safe='')}&visibilitytimeout={event.seconds}"
                body = b"" if event.version < 0 else _body(event.number, event.version)
            case Kind.DELETE:
                path, query = f"{path}/{message}", f"popreceipt={quote(event.receipt, safe='')}"
            case Kind.COUNT:
                path, query = queue, "comp=metadata"
        return self._request(_METHODS[event.kind], path, query, body)

    def _request(self, method: str, path: str, query: str, body: bytes) -> bytes:
        length = f"Content-Length: {len(body)}\r\n" if method in ("POST", "PUT") else ""
        return (
            f"{method} {self._prefix}/{path}?{query}{'&' if query else ''}{self._sas} HTTP/1.1\r\n"
            f"Host: {self.host}\r\nx-ms-version: 2021-02-12\r\n{length}\r\n"
        ).encode() + body


def _body(number: int, version: int) -> bytes:
    text = f"{number}.{version}." + "x" * (number * 37 % 1500)
    return f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()


def read(event: Event, message: str, answer: Answer) -> tuple[Iterable[Seen], int]:
    """Return the messages of a successful response, and its count of messages."""
    if event.kind is Kind.UPDATE:
        return [Seen(event.number, message, answer.headers["x-ms-popreceipt"])], 0
    if event.kind is Kind.COUNT:
        return [], int(answer.headers["x-ms-approximate-messages-count"])
    parts = answer.body.split(b"<QueueMessage>")[1:]
    return [_seen(event, part) for part in parts], 0


def _seen(event: Event, part: bytes) -> Seen:
    fields = {name.decode(): value.decode() for name, value in _FIELDS.findall(part)}
    if event.kind is Kind.PUT:
        return Seen(event.number, fields["MessageId"], fields["PopReceipt"])
    number, version, _ = fields["MessageText"].split(".")
    return Seen(
        int(number), fields["MessageId"], fields.get("PopReceipt", ""), int(version), int(fields["DequeueCount"])
    )
