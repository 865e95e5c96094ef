"""Requests to the services that a connection string names, here or in the cloud, over HTTP or HTTPS.

Each service has one connection, which is kept. A request that got no response is sent again if that changes nothing
twice; one that the server is too busy for is sent again in any case. Memory holds one request and one response.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from lazulite.auth.accounts.account import Account
from lazulite.cli.connection_string import endpoints_of, reachable, read_connection_string
from lazulite.cli.errors import CommandError
from lazulite.cli.running_addresses import endpoint_hint
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request
from lazulite.resources.sender import Call, Reply, RequestError
from lazulite.resources.signing import AccountSigner, reply_of

_SECONDS_MAX = 60
_BODY_BYTES_MAX = 64 << 20
"""More than a page of a list, and than a piece of a blob."""
_RETRY_SECONDS = (0.1, 0.4, 1.6, 5.0)
"""The pauses before a request is sent again."""
_BUSY = (500, 503)


class _Endpoint(NamedTuple):
    connection: HTTPConnection
    signed: AccountSigner
    base: str
    """The path of the account."""
    host: str
    """The `Host` field."""
    url: str
    """For messages."""
    hint: str
    """What to check if no server responds."""


class HttpSender:
    """Sends requests to the account of a connection string. Implements `Sender`. Use it as a context manager.

    Args:
        text: the connection string.
        sleep: waits so many seconds.

    Raises:
        CommandError: the text is malformed. Nothing of it is shown, as it has a key.
    """

    def __init__(self, text: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._text = text
        self._sleep = sleep
        self._endpoints: dict[str, _Endpoint] = {}
        self._account = read_connection_string(text, "table").account

    @classmethod
    def from_args(cls, args: Namespace, account: Account) -> Self:
        """Return the sender of an account at the addresses that the flags name, with the key that they name.

        Raises:
            CommandError: the account has no such key.
        """
        if args.key > len(account.keys):
            raise CommandError(f"account {account.name} has no key {args.key}")
        sender = cls.__new__(cls)
        sender._text, sender._sleep = "", time.sleep
        sender._account = Account(account.name, (account.keys[args.key - 1],))
        signer, endpoints = AccountSigner(sender._account), endpoints_of(args, account.name)
        sender._endpoints = {name: _opened(signer, url, endpoint_hint(args, name)) for name, url in endpoints.items()}
        return sender

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for endpoint in self._endpoints.values():
            endpoint.connection.close()

    @property
    def account(self) -> str:
        """See `Sender`."""
        return self._account.name

    def request(
        self,
        service: str,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        """See `Sender`."""
        call = Call(service, method, path, parameters, headers, body)
        endpoint = self._endpoint(service)
        for pause in (*_RETRY_SECONDS, None):
            request = endpoint.signed.request(call, endpoint.base, endpoint.host, system_clock())
            try:
                reply = _exchange(endpoint.connection, request)
            except (OSError, HTTPException) as error:
                endpoint.connection.close()
                if pause is None or not _may_repeat(call):
                    reason = f"{error or type(error).__name__}{endpoint.hint and f'; {endpoint.hint}'}"
                    raise RequestError(f"no response from {endpoint.url}: {reason}") from None
            else:
                if pause is None or reply.status not in _BUSY:
                    return reply
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _endpoint(self, service: str) -> _Endpoint:
        if service not in self._endpoints:
            if not self._text:
                raise RequestError(f"the running server does not serve {service}s")
            stated = read_connection_string(self._text, service)
            self._endpoints[service] = _opened(AccountSigner(stated.account, stated.token), stated.endpoint, "")
        return self._endpoints[service]


def _opened(signed: AccountSigner, endpoint: str, hint: str) -> _Endpoint:
    url = urlsplit(endpoint)
    connect = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = connect(reachable(url.hostname or ""), url.port, timeout=_SECONDS_MAX)
    return _Endpoint(connection, signed, url.path, url.netloc, endpoint, hint)


def _may_repeat(call: Call) -> bool:
    """Tell whether a request can be made twice: another message, or bytes at the end of a blob, cannot."""
    return (call.method != "POST" or call.path == "$batch") and call.parameters.get("comp") != "appendblock"


def _exchange(connection: HTTPConnection, request: Request) -> Reply:
    # A rejection may come before the server has read the body.
    with suppress(BrokenPipeError, ConnectionResetError):
        target = f"{request.path}?{request.query}" if request.query else request.path
        connection.request(request.method, target, body=request.body, headers=dict(request.headers))
    response = connection.getresponse()
    body = response.read(_BODY_BYTES_MAX + 1)
    if len(body) > _BODY_BYTES_MAX:
        connection.close()
        raise RequestError(f"the response is longer than {_BODY_BYTES_MAX:,} bytes")
    return reply_of(response.status, {name.lower(): text for name, text in response.getheaders()}, body)
