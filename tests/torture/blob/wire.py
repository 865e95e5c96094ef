"""The operations as HTTP, and the responses read again: no SDK, which would take most of the time."""

import base64
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from tests.conformance.sas import account_sas
from tests.conformance.signing import Endpoint, Unsigned, full_shared_key
from tests.server_process import Account
from tests.torture.http_client import Answer, UnexpectedAnswerError

from .model import ABSENT, ANY, Action, Blob, Kind, Lease, LeaseChange, Phase, Verb, Write

CONTAINER = "leases"
PRIVATE, SECRET_NAME = "private", "secret"
"""A container and a blob that are for its account alone, and no client writes them."""
RETENTION_DAYS = 2
VERSION = "2021-12-02"
_FAR = "9999-12-31T23:59:59Z"
SOURCE_NAME = "source"
"""The blob that is the source of all copies."""
_PAGE = 512
_LENGTHS = (20, 1000, 20_000)
"""Of contents: some are in a row, the others in the store for contents."""
DONE = {200, 201, 202, 204}
"""The statuses of success."""
REJECTED = {400, 404, 409, 412}


class Wire:
    """Spells requests to one account of a server.

    Args:
        account: of the server.
        clock: the time of the server in seconds since 1970, for Shared Key.
    """

    def __init__(self, account: Account, clock: Callable[[], float] = time.time) -> None:
        self._account = account
        self._clock = clock
        self.host = urlsplit(account.blob_endpoint).netloc
        self.table_host = account.host
        endpoint = self._endpoint = Endpoint.parse(account.blob_endpoint, account.name, account.key)
        self._prefix = endpoint.prefix
        self._sas = account_sas(endpoint, {"ss": "b", "se": _FAR, "sp": "rwdxylacut"})

    def of(self, name: str) -> "Wire":
        """Return what spells requests to another account, which has the same key."""
        return Wire(Account.parse(self._account.connection_string.replace(self._account.name, name)), self._clock)

    def keep_deleted(self) -> bytes:
        """Spell the service properties by which deleted blobs are kept, until they are deleted forever."""
        policy = (
            f"<Enabled>true</Enabled><Days>{RETENTION_DAYS}</Days><AllowPermanentDelete>true</AllowPermanentDelete>"
        )
        properties = f"<DeleteRetentionPolicy>{policy}</DeleteRetentionPolicy>"
        body = f"<StorageServiceProperties>{properties}</StorageServiceProperties>".encode()
        return self.request("PUT", "", {}, "restype=service&comp=properties", body)

    def create_container(self, container: str = CONTAINER) -> bytes:
        """Spell the creation of a container."""
        return self.request("PUT", container, {}, "restype=container")

    def delete_container(self, container: str = CONTAINER) -> bytes:
        """Spell the deletion of a container."""
        return self.request("DELETE", container, {}, "restype=container")

    def create_private(self, body: bytes) -> tuple[bytes, bytes]:
        """Spell the creation of a blob that other accounts may read with a SAS alone, and of its container."""
        put = self.request("PUT", f"{PRIVATE}/{SECRET_NAME}", {"x-ms-blob-type": "BlockBlob"}, body=body)
        return self.create_container(PRIVATE), put

    def copy(self, name: str, source: str) -> bytes:
        """Spell a Copy Blob by Shared Key, which opens the blobs of its own account."""
        path = f"{self._prefix}/{CONTAINER}/{name}"
        sent = {
            "x-ms-version": VERSION,
            "x-ms-date": formatdate(self._clock(), usegmt=True),
            "x-ms-copy-source": source,
        }
        sent |= {"host": self.host, "content-length": "0"}
        sent["authorization"] = full_shared_key(self._endpoint, Unsigned("PUT", path, "", sent))
        lines = "".join(f"{field}: {text}\r\n" for field, text in sent.items())
        return f"PUT {path} HTTP/1.1\r\n{lines}\r\n".encode()

    def read(self, name: str, given: int | None) -> bytes:
        """Spell a Get Blob."""
        return self.request("GET", f"{CONTAINER}/{name}", {"x-ms-lease-id": lease_id(given)})

    def write(self, name: str, write: Write, etag: str) -> bytes:
        """Spell a write; `etag` is that of its condition."""
        method = "DELETE" if write.verb is Verb.DELETE else "PUT"
        headers = {**_condition(write.condition, etag), "x-ms-lease-id": lease_id(write.given)}
        query, special = _SPELLINGS[write.verb]
        if write.verb is Verb.PUT and write.kind is Kind.PAGE:
            headers["x-ms-blob-content-length"] = str(_PAGE)
        headers |= {field: text.format(**self._words(write)) for field, text in special.items()}
        body = _BODIES[write.verb](write) if write.verb in _BODIES else b""
        return self.request(method, f"{CONTAINER}/{name}", headers, query.format(**self._words(write)), body)

    def _words(self, write: Write) -> dict[str, object]:
        block, source = quote(_block_id(write.invoked), safe=""), self.url(SOURCE_NAME)
        return {"w": write.invoked, "kind": write.kind.value, "block": block, "source": source}

    def lease(self, name: str, change: LeaseChange, etag: str) -> bytes:
        """Spell a lease action; `etag` is that of its condition."""
        headers = {**_condition(change.condition, etag), "x-ms-lease-action": change.action.value}
        if change.action is Action.ACQUIRE:
            headers["x-ms-lease-duration"] = "-1" if change.infinite else "60"
        elif change.action is Action.BREAK:
            headers["x-ms-lease-break-period"] = "0" if change.at_once else "60"
        if change.action in (Action.RENEW, Action.CHANGE, Action.RELEASE):
            headers["x-ms-lease-id"] = lease_id(change.given)
        if change.action in (Action.ACQUIRE, Action.CHANGE):
            headers["x-ms-proposed-lease-id"] = lease_id(change.proposed)
        return self.request("PUT", f"{CONTAINER}/{name}", headers, "comp=lease")

    def url(self, name: str, container: str = CONTAINER) -> str:
        """Return the URL of a blob, with its authorization."""
        return f"http://{self.host}{self._prefix}/{container}/{name}?{self._sas}"

    def request(self, method: str, path: str, headers: Mapping[str, str], query: str = "", body: bytes = b"") -> bytes:
        """Spell a request; headers without a value are left out."""
        sent = {"Host": self.host, "x-ms-version": VERSION, **headers}
        if method == "PUT":
            sent["Content-Length"] = str(len(body))
        lines = "".join(f"{field}: {text}\r\n" for field, text in sent.items() if text)
        separator = "&" if query else ""
        return f"{method} {self._prefix}/{path}?{query}{separator}{self._sas} HTTP/1.1\r\n{lines}\r\n".encode() + body


_NAMED = {"x-ms-meta-w": "{w}"}
_FIRST_PAGE = {"x-ms-range": f"bytes=0-{_PAGE - 1}"}
_SPELLINGS: Mapping[Verb, tuple[str, Mapping[str, str]]] = {
    Verb.PUT: ("", {**_NAMED, "x-ms-blob-type": "{kind}"}),
    Verb.FROM_URL: ("", {**_NAMED, "x-ms-blob-type": "{kind}", "x-ms-copy-source": "{source}"}),
    Verb.COPY: ("", {**_NAMED, "x-ms-copy-source": "{source}"}),
    Verb.BLOCK: ("comp=block&blockid={block}", {}),
    Verb.LIST: ("comp=blocklist", _NAMED),
    Verb.APPEND: ("comp=appendblock", {}),
    Verb.PAGE: ("comp=page", {**_FIRST_PAGE, "x-ms-page-write": "update"}),
    Verb.CLEAR: ("comp=page", {**_FIRST_PAGE, "x-ms-page-write": "clear"}),
    Verb.METADATA: ("comp=metadata", _NAMED),
    Verb.PROPERTIES: ("comp=properties", {"x-ms-blob-content-type": "text/x-{w}"}),
    Verb.TAGS: ("comp=tags", {}),
    Verb.TIER: ("comp=tier", {"x-ms-access-tier": "Cool"}),
    Verb.SNAPSHOT: ("comp=snapshot", {}),
    Verb.DELETE: ("", {"x-ms-delete-snapshots": "include"}),
}
"""The query of each write, and the headers that no other one has."""


_BODIES: Mapping[Verb, Callable[[Write], bytes]] = {
    Verb.PUT: lambda write: content_of(write.invoked) if write.kind is Kind.BLOCK else b"",
    Verb.BLOCK: lambda write: content_of(write.invoked),
    Verb.LIST: lambda write: f"<BlockList><Uncommitted>{_block_id(write.block)}</Uncommitted></BlockList>".encode(),
    Verb.APPEND: lambda write: _piece(write.invoked),
    Verb.PAGE: lambda write: _page(write.invoked),
    Verb.TAGS: lambda write: (
        f"<Tags><TagSet><Tag><Key>w</Key><Value>{write.invoked}</Value></Tag></TagSet></Tags>".encode()
    ),
}
"""The bodies of writes that have one."""


def lease_id(number: int | None) -> str:
    """Return the id of a lease; "": none."""
    return "" if number is None else f"00000000-0000-0000-0000-{number:012}"


def content_of(number: int) -> bytes:
    """Return the content that a write brings to a block blob."""
    return _piece(number) * (_LENGTHS[number % len(_LENGTHS)] // 10)


def _piece(number: int) -> bytes:
    """Return what a write appends."""
    return f"{number:09},".encode()


def _page(number: int) -> bytes:
    """Return the page that a write brings."""
    return (_piece(number) * _PAGE)[:_PAGE]


def read_code(answer: Answer) -> str:
    """Return the error code of a response; "" of a success. Raises `UnexpectedAnswerError`."""
    if answer.status in DONE:
        return ""
    if answer.status not in REJECTED or "x-ms-error-code" not in answer.headers:
        raise UnexpectedAnswerError(answer)
    return answer.headers["x-ms-error-code"]


def read_blob(answer: Answer, writer: int | None, kind: Kind) -> Blob:
    """Read the response to `Wire.read`. Raises `UnexpectedAnswerError`."""
    content = _read_content(answer.body, kind)
    state = answer.headers["x-ms-lease-state"]
    lease = None
    if state != "available":
        lease = Lease(0, Phase(state), answer.headers.get("x-ms-lease-duration") == "infinite")
        if answer.headers["x-ms-lease-status"] != ("locked" if lease.phase.locks else "unlocked"):
            raise UnexpectedAnswerError(answer.headers)
    return Blob(writer, int(answer.headers["x-ms-meta-w"]), content, lease)


def _read_content(body: bytes, kind: Kind) -> tuple[int, ...]:
    """Return the writes whose bytes a blob has. Raises `UnexpectedAnswerError`."""
    if kind is Kind.PAGE and body == bytes(_PAGE):
        return ()
    numbers = tuple(int(body[at : at + 9]) for at in range(0, len(body) if kind is Kind.APPEND else 1, 10))
    if body != b"".join(_BROUGHT[kind](number) for number in numbers):
        raise UnexpectedAnswerError(f"a torn content of {len(body)} bytes: {body[:9]!r}")
    return numbers


_BROUGHT: Mapping[Kind, Callable[[int], bytes]] = {Kind.BLOCK: content_of, Kind.APPEND: _piece, Kind.PAGE: _page}
"""What one write brings to a blob."""


def _condition(condition: int | None, etag: str) -> dict[str, str]:
    if condition is None:
        return {}
    return {"If-None-Match": "*"} if condition == ABSENT else {"If-Match": "*" if condition == ANY else etag}


def _block_id(number: int) -> str:
    return base64.b64encode(f"{number:09}".encode()).decode()
