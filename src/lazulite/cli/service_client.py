"""A small client of one service, for commands. The client signs with an account SAS that is valid for 15 minutes."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    RemoteDisconnected,
    responses,
)
from typing import NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from lazulite.auth.accounts.account import Account
from lazulite.auth.token_source import TokenSource
from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import endpoints_of, reachable, read_connection_string
from lazulite.cli.errors import CommandError
from lazulite.cli.running_addresses import endpoint_hint, served, with_running_addresses

_SECONDS_MAX = 60
_DOCUMENT_BYTES_MAX = 64 * 1024 * 1024
"""More than a page of names, or 32 messages of 64 KiB with every character escaped."""
_VERSION = "2021-12-02"
"""The protocol version of the requests."""


_ERROR_BYTES_MAX = 64 * 1024
_MESSAGE_CHARACTERS_MAX = 500


class ServiceAccess(NamedTuple):
    """The service and the permissions that a command needs."""

    service: str
    permission: str
    """The letters of its account SAS."""
    safe: str = "/"
    """The characters of a path, besides letters and digits, that stand for themselves."""


class Answer(NamedTuple):
    """A response with its document."""

    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def root(self) -> ET.Element | None:
        """The XML document of the body; None without one. Raises `CommandError` if it is not XML."""
        return _document(self.body)


class RejectedError(CommandError):
    """A server rejected a request; `code` is the error code."""

    def __init__(self, reason: object, code: str) -> None:
        super().__init__(reason)
        self.code = code


class ServiceClient:
    """A client of one service of an account. Use it as a context manager.

    Args:
        account: the account whose key signs the requests.
        key: the number of the key.
        endpoint: the URL of the account's endpoint.
        host: the address to connect to.
        access: the service and the permissions.
        token: a SAS token for all requests, in place of the key; "" for none.
        hint: what to check if no server responds.

    Raises:
        CommandError: the account has no such key.
    """

    def __init__(
        self,
        account: Account,
        key: int,
        endpoint: str,
        host: str,
        access: ServiceAccess,
        *,
        token: str = "",
        hint: str,
    ) -> None:
        if not token and key > len(account.keys):
            raise CommandError(f"account {account.name} has no key {key}")
        url = urlsplit(endpoint)
        connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self._connection = connect(host, url.port, timeout=_SECONDS_MAX)
        self._access = access
        self._endpoint = endpoint
        self._host, self._path = url.netloc, url.path
        renewed = TokenSource(account, key, access.service, access.permission)
        self._token: Callable[[], str] = (lambda: token) if token else renewed
        self._hint = hint

    @classmethod
    def from_args(cls, args: Namespace, environ: Mapping[str, str], access: ServiceAccess) -> Self:
        """Return the client of the account, key and address that the flags name. Raises as the constructor."""
        account, args = choose_account(args, environ), with_running_addresses(args, environ)
        endpoint = served(endpoints_of(args, account.name), access.service)
        host, hint = reachable(getattr(args, f"{access.service}_host")), endpoint_hint(args, access.service)
        return cls(account, args.key, endpoint, host, access, hint=hint)

    @classmethod
    def from_connection_string(cls, text: str, access: ServiceAccess) -> Self:
        """Return a client of the account that a connection string names, here or in the cloud.

        Raises:
            CommandError: the text is malformed. Nothing of it is shown, as it has a key.
        """
        stated = read_connection_string(text, access.service)
        hint = f"check the {access.service} endpoint of the connection string"
        host = urlsplit(stated.endpoint).hostname or ""
        return cls(stated.account, 1, stated.endpoint, host, access, token=stated.token, hint=hint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send a request, and read the whole response, which has a document or nothing.

        Raises:
            CommandError: as `stream`, and for a document that is too long.
        """
        with self.stream(method, path, parameters, headers, body) as response:
            try:
                received = response.read(_DOCUMENT_BYTES_MAX + 1)
            except (OSError, HTTPException) as error:
                raise self.make_connection_error(error) from error
            if len(received) > _DOCUMENT_BYTES_MAX:
                self._connection.close()
                raise CommandError(f"the response is longer than {_DOCUMENT_BYTES_MAX:,} bytes")
            return Answer({name.lower(): value for name, value in response.getheaders()}, received)

    def pages(self, path: str, parameters: Mapping[str, str]) -> Iterator[ET.Element]:
        """Yield the documents of a list, page after page. Raises as `stream`."""
        marker = ""
        while (root := self.send("GET", path, {**parameters, "marker": marker}).root) is not None:
            yield root
            marker = root.findtext("NextMarker") or ""
            if not marker:
                return

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Iterator[HTTPResponse]:
        """Send a request and yield the response, whose body is still to be read.

        Args:
            method: the method of the request.
            path: the path after the account's endpoint, not encoded.
            parameters: the query parameters; empty ones are left out.
            headers: the headers besides those of every request.
            body: the body of the request.

        Raises:
            CommandError: no server responds.
            RejectedError: the server rejects the request.
        """
        target = f"{self._path}/{self._signed_target(path, parameters or {})}"
        common = {"Host": self._host, "Content-Length": str(len(body)), "x-ms-version": _VERSION}
        try:
            response = self._response(method, target, body, {**common, **(headers or {})})
            error_body = response.read(_ERROR_BYTES_MAX) if response.status >= 400 else b""
        except (OSError, HTTPException) as error:
            raise self.make_connection_error(error) from error
        if response.status >= 400:
            self._connection.close()  # The rest of a long body is of no use.
            code = response.headers.get("x-ms-error-code", f"HTTP status {response.status}")
            # The response to HEAD has no body.
            message = parse_error_message(error_body) if error_body else _read_custom_reason(response)
            raise RejectedError(f"{self._endpoint} rejects the request: {code}{message and f': {message}'}", code)
        with response:
            yield response

    def _response(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> HTTPResponse:
        """Send a request; a GET once more, if the server has closed the connection while it was idle."""
        try:
            # A rejection may come before the server has read the body.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._connection.request(method, target, body=body, headers=headers)
            return self._connection.getresponse()
        except RemoteDisconnected:
            if method != "GET":
                raise
            self._connection.close()
            self._connection.request(method, target, headers=headers)
            return self._connection.getresponse()

    def url(self, path: str, parameters: Mapping[str, str]) -> str:
        """Return a signed URL. The arguments are those of `stream`."""
        return f"{self._endpoint}/{self._signed_target(path, parameters)}"

    def _signed_target(self, path: str, parameters: Mapping[str, str]) -> str:
        query = urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
        return f"{quote(path, safe=self._access.safe)}?{query}{'&' if query else ''}{self._token()}"

    def make_connection_error(self, error: Exception) -> CommandError:
        """Return the error for a response that is missing or incomplete."""
        return CommandError(f"no response from {self._endpoint}: {error}; {self._hint}")


def _read_custom_reason(response: HTTPResponse) -> str:
    """Return the reason phrase of a response if it is not the one that all servers give to the status."""
    return "" if response.reason == responses.get(response.status) else response.reason


def parse_error_message(body: bytes) -> str:
    """Return the message in an error's body, XML or JSON, without the id of the request; "" if there is none."""
    try:
        if body.lstrip().startswith(b"{"):
            message = json.loads(body)["odata.error"]["message"]["value"]
        else:
            root = _document(body)
            found = None if root is None else root.find("{*}Message")
            found = root.find("{*}message") if found is None and root is not None else found
            message = "" if found is None else found.text or ""
    except (CommandError, ValueError, LookupError, TypeError):
        return ""
    return str(message).partition("\n")[0].strip()[:_MESSAGE_CHARACTERS_MAX]


def _document(body: bytes) -> ET.Element | None:
    """Return the root of a document; None for an empty one.

    Raises:
        CommandError: it is not XML, or has a document type, which could define entities.
    """
    if not body:
        return None
    try:
        if b"<!DOCTYPE" in body:
            raise CommandError("the response has a document type, which no response of the service has")
        return ET.fromstring(body)  # noqa: S314 - see above: there are no entities
    except ET.ParseError as error:
        raise CommandError(f"the response is not XML: {error}") from error
