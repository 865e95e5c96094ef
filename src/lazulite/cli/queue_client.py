"""A small client of the Queue service, for commands. It signs by an account SAS that lives for minutes."""

from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.account_sas import AccountSas, sign_account_sas
from lazulite.auth.sas.dates import format_sas_date
from lazulite.cli.errors import CommandError
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock

_SECONDS_MAX = 60
_LIFE_TICKS = 15 * 60 * TICKS_PER_SECOND
"""How long a token is valid; clocks of client and server may be minutes apart."""
_BODY_BYTES_MAX = 64 * 1024 * 1024
"""More than a page of queues, or 32 messages of 64 KiB with every character escaped."""


class Answer(NamedTuple):
    """A response."""

    headers: Mapping[str, str]
    """By name in lower case."""
    root: ET.Element | None
    """The document of the body; None without one."""

    def seconds_since(self, date: str) -> float:
        """Return the time from a date to that of the response, both as HTTP writes dates: the server's clock."""
        return (parsedate_to_datetime(self.headers["date"]) - parsedate_to_datetime(date)).total_seconds()


class QueueClient:
    """A client of one account's queues. Use it as a context manager.

    Args:
        account: whose key signs.
        key: the number of the key.
        endpoint: of the account's queues.
        host: the address to connect to.

    Raises:
        CommandError: the account has no such key.
    """

    def __init__(self, account: Account, key: int, endpoint: str, host: str) -> None:
        url = urlsplit(endpoint)
        connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
        self._connection = connect(host, url.port, timeout=_SECONDS_MAX)
        self._endpoint = endpoint
        self._host, self._path = url.netloc, url.path
        sas = AccountSas(
            services="q",
            resource_types="sco",
            permission="rdl",
            expiry=format_sas_date(system_clock() + _LIFE_TICKS),
        )
        try:
            self._token = sign_account_sas(account, sas, key)
        except IndexError:
            raise CommandError(f"account {account.name} has no key {key}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def queues(self) -> Iterator[str]:
        """Yield the names of all queues. Raises as `ask`."""
        marker = ""
        while True:
            root = self.ask("GET", "", comp="list", marker=marker).root
            if root is None:
                return
            yield from (name.text or "" for name in root.iterfind("Queues/Queue/Name"))
            marker = root.findtext("NextMarker") or ""
            if not marker:
                return

    def ask(self, method: str, path: str, **parameters: str) -> Answer:
        """Send a request.

        Args:
            method: of the request.
            path: below the account.
            parameters: of the query; empty ones are left out.

        Raises:
            CommandError: no server responds, or it rejects the request.
        """
        query = urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
        target = f"{self._path}/{quote(path)}?{query}{'&' if query else ''}{self._token}"
        try:
            self._connection.request(method, target, headers={"Host": self._host, "Content-Length": "0"})
            response = self._connection.getresponse()
            body = response.read(_BODY_BYTES_MAX)
        except (OSError, HTTPException) as error:
            raise CommandError(
                f"no response from {self._endpoint}: {error}; check --queue-host and --queue-port"
            ) from error
        headers = {name.lower(): value for name, value in response.getheaders()}
        if response.status >= 400:
            code = headers.get("x-ms-error-code", f"HTTP status {response.status}")
            raise CommandError(f"{self._endpoint} rejects the request: {code}")
        return Answer(headers, _document(body))


def _document(body: bytes) -> ET.Element | None:
    """Return the root of a document; None for an empty one.

    Raises:
        CommandError: it is none, or has a document type, which could define entities.
    """
    if not body:
        return None
    try:
        if b"<!DOCTYPE" in body:
            raise CommandError("the response has a document type, which no response of the service has")
        return ET.fromstring(body)  # noqa: S314 - see above: there are no entities
    except ET.ParseError as error:
        raise CommandError(f"the response is not XML: {error}") from error
