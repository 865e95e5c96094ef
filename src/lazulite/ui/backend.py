"""Signed requests to the services of this server, over its own ports.

So pages have no way in of their own: what they ask for is authorized, limited, logged and counted as any client's
request is, whatever process answers it. The requests say `lazulite-ui` as their user agent. A key signs, and nothing of
it leaves this module.
"""

import asyncio
import json
import secrets
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree as ET

from lazulite import __version__
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.shared_key import Canonicalize
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.message import Request
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.server.copy_sources.fetcher import READ_BYTES, StreamedResponse
from lazulite.server.server import Ports
from lazulite.service.fetching import FetchFailedError
from lazulite.settings.addresses import BLOB, QUEUE, TABLE
from lazulite.settings.config import Settings
from lazulite.table.credentials import table_string_to_sign

AGENT = f"lazulite-ui/{__version__}"
VERSION = "2021-12-02"
"""The protocol version of the requests, unless a page names another one."""
BODY_BYTES_MAX = 64 * 1024 * 1024
"""More than a page of names or entities. Longer content is streamed."""
_ERROR_BYTES_MAX = 64 * 1024
_MESSAGE_CHARACTERS_MAX = 2000
_STALL_SECONDS = 60.0
_SECONDS_MAX = 3600.0
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not listened on.

CANONICALIZE: Mapping[str, Canonicalize] = {
    TABLE: table_string_to_sign,
    QUEUE: QUEUE_CREDENTIALS.canonicalize,
    BLOB: BLOB_CREDENTIALS.canonicalize,
}
"""The string-to-sign of each service."""


class BackendError(Exception):
    """A service rejected a request, or gave no response. The text is the server's own, for people.

    Args:
        status: of the response; 502 without one.
        code: of the error; "" without one.
        text: what the server says.
        request_id: of the rejected request; "" without a response.
        headers: of the response, by name in lower case.
    """

    def __init__(
        self, status: int, code: str, text: str, request_id: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response of a service."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes = field(repr=False)

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return self.headers.get("x-ms-request-id", "")

    def json(self) -> Any:
        """Return the document of a JSON body."""
        return json.loads(self.body)

    def xml(self) -> ET.Element:
        """Return the root of an XML body, which this server has made."""
        return ET.fromstring(self.body)  # noqa: S314 - of this server, not of a stranger

    @property
    def server_timing(self) -> str:
        """What the server says about its time and rows."""
        return self.headers.get("server-timing", "")


class AnswerStream:
    """A response whose body is taken as it comes."""

    def __init__(self, response: StreamedResponse, *, has_body: bool) -> None:
        self._response = response
        self._has_body = has_body
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises `BackendError`, if it breaks off."""
        if not self._has_body:
            return
        try:
            async for chunk in self._response.chunks():
                yield chunk
        except FetchFailedError as error:
            raise BackendError(502, "", f"the response of the service broke off: {error}") from None

    async def read(self, bytes_max: int = BODY_BYTES_MAX) -> bytes:
        """Return the whole body. Raises `BackendError`, also for a longer one."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > bytes_max:
                raise BackendError(502, "", f"the response has more than {bytes_max:,} bytes")
        return b"".join(parts)


class Backend:
    """Sends requests to the services.

    Args:
        settings: tell where services listen.
        directory: the accounts, whose first keys sign.
        ports: returns the ports of each service.
        clock: dates the requests.
    """

    def __init__(
        self,
        settings: Settings,
        directory: AccountDirectory,
        ports: Callable[[], Mapping[str, Ports]],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._ports = ports
        self._clock = clock

    @property
    def services(self) -> Collection[str]:
        """The services that are served, of table, queue and blob."""
        ports = self._ports()
        return tuple(name for name in (TABLE, QUEUE, BLOB) if name in ports)

    def service(self, account: str, service: str) -> "ServiceClient":
        """Return a client of one service of an account.

        Args:
            account: whose key signs.
            service: `table`, `queue` or `blob`.
        """
        return ServiceClient(self, account, service)

    def signed(
        self,
        account: str,
        service: str,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        size: int,
    ) -> bytes:
        """Return the head of a request, signed. Raises `BackendError`."""
        found = self._directory.get(account)
        if found is None or not found.signers:
            raise BackendError(404, "", f"there is no account {account}")
        host, prefix = self._authority(account, service)
        target = f"{prefix}/{path}"
        query = urlencode({name: value for name, value in parameters.items() if value != ""}, quote_via=quote)
        sent = {
            "host": host,
            "user-agent": AGENT,
            "x-ms-version": VERSION,
            "x-ms-date": format_http_date(self._clock()),
            "x-ms-client-request-id": f"ui-{secrets.token_hex(8)}",
            "content-length": str(size),
            "connection": "close",
            **{name.lower(): _latin(value) for name, value in headers.items()},
        }
        request = Request(method, target, query, sent)
        text = CANONICALIZE[service]("SharedKey", request, account, target, parameters.get("comp"))
        signature = found.signers[0].sign(text.encode("latin-1")).decode()
        sent["authorization"] = f"SharedKey {account}:{signature}"
        spelt = {name.lower(): name for name in headers}  # Names of metadata keep their case.
        fields = (f"{spelt.get(name, name)}: {value}" for name, value in sent.items())
        lines = [f"{method} {target}{'?' if query else ''}{query} HTTP/1.1", *fields]
        if any(mark in line for line in lines for mark in "\r\n\0"):
            raise BackendError(400, "", "a header field cannot have line breaks")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def connect(self, service: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to a service. Raises `BackendError`."""
        host, port, is_secure = self._address(service)
        tls = _own_tls() if is_secure else None
        try:
            return await asyncio.open_connection(host, port, limit=READ_BYTES, ssl=tls)
        except OSError as error:
            raise BackendError(502, "", f"cannot connect to the {service} service: {error}") from None

    def url(self, account: str, service: str) -> str:
        """Return the URL of an account at one service, without a slash at its end."""
        host, prefix = self._authority(account, service)
        return f"{'https' if self._address(service)[2] else 'http'}://{host}{prefix}"

    def _authority(self, account: str, service: str) -> tuple[str, str]:
        """Return the host of a request, and what stands before the path below the account."""
        port = self._address(service)[1]
        if self._settings.shares_port(service):
            return f"{account}.{self._settings.host_suffixes_of(service)[0]}:{port}", ""
        host = self._address(service)[0]
        return f"{f'[{host}]' if ':' in host else host}:{port}", f"/{account}"

    def _address(self, service: str) -> tuple[str, int, bool]:
        """Return where a service is reached, and whether by TLS."""
        ports = self._ports().get(service)
        if ports is None:
            raise BackendError(404, "", f"the {service} service is not served")
        host = self._settings.address(service).host
        host = _WILDCARDS.get(host, host)
        if ports.http is not None:
            return host, ports.http, False
        assert ports.https is not None, "a service has a port"
        return host, ports.https, True


class ServiceClient:
    """A client of one service of an account. Made by `Backend.service`."""

    def __init__(self, backend: Backend, account: str, service: str) -> None:
        self._backend = backend
        self._account = account
        self._service = service

    @property
    def url(self) -> str:
        """The URL of the account, for a request inside of a batch, or a URL with a signature."""
        return self._backend.url(self._account, self._service)

    async def send(
        self,
        method: str,
        path: str = "",
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        accepted: Collection[int] = (),
    ) -> Answer:
        """Send a request, and return the whole response.

        Args:
            method: of the request.
            path: below the account, percent-encoded, without a slash before it.
            parameters: of the query, not encoded; empty ones are left out.
            headers: besides those of every request.
            body: of the request.
            accepted: statuses from 400 on that are returned, too.

        Raises:
            BackendError: the service rejects the request, or gives no response.
        """
        async with self.stream(method, path, parameters, headers, body, accepted=accepted) as response:
            return Answer(response.status, response.headers, await response.read())

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str = "",
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | AsyncIterator[bytes] = b"",
        *,
        length: int | None = None,
        accepted: Collection[int] = (),
    ) -> AsyncIterator[AnswerStream]:
        """Send a request, and yield the response, whose body comes as it is taken.

        Args are those of `send`, and `length`: the bytes of a body that is streamed.

        Raises:
            BackendError: as `send`.
        """
        size = len(body) if isinstance(body, bytes) else length
        assert size is not None, "the length of a streamed body"
        head = self._backend.signed(self._account, self._service, method, path, parameters or {}, headers or {}, size)
        reader, writer = await self._backend.connect(self._service)
        try:
            writer.write(head)
            if isinstance(body, bytes):
                writer.write(body)
            else:
                await _write(writer, body)
            response = StreamedResponse(reader, _STALL_SECONDS, asyncio.get_running_loop().time() + _SECONDS_MAX)
            await response.read_head()
            answer = AnswerStream(response, has_body=method != "HEAD")
            if answer.status >= 400 and answer.status not in accepted:
                raise _error_of(answer, await answer.read(_ERROR_BYTES_MAX))
            yield answer
        except (FetchFailedError, OSError) as error:
            raise BackendError(502, "", f"no response from the {self._service} service: {error}") from None
        finally:
            writer.transport.abort()


def _own_tls() -> ssl.SSLContext:
    """Return what connects to this process's own port: the certificate is for the names that clients use."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _write(writer: asyncio.StreamWriter, body: AsyncIterator[bytes]) -> None:
    """Send a body as the service takes it. A rejection may come before its end."""
    with suppress(ConnectionError):
        async for chunk in body:
            writer.write(chunk)
            await writer.drain()


def _latin(text: str) -> str:
    """Return a header value as the bytes that go over the wire, one character each."""
    return text.encode().decode("latin-1")


def _error_of(answer: AnswerStream, body: bytes) -> BackendError:
    code = answer.headers.get("x-ms-error-code", "")
    message = _message(body) or code or f"HTTP status {answer.status}"
    return BackendError(answer.status, code, message, answer.headers.get("x-ms-request-id", ""), answer.headers)


def _message(body: bytes) -> str:
    """Return the message of an error's body, JSON or XML; "" if there is none."""
    try:
        if body.lstrip().startswith(b"{"):
            text = json.loads(body)["odata.error"]["message"]["value"]
        else:
            root = ET.fromstring(body)  # noqa: S314 - of this server
            text = root.findtext("{*}Message") or root.findtext("{*}message") or root.findtext("Message")
    except (ET.ParseError, ValueError, LookupError, TypeError):
        return ""
    return str(text or "").partition("\n")[0].strip()[:_MESSAGE_CHARACTERS_MAX]
