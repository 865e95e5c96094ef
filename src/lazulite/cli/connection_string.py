"""`lazulite connection-string`: print the connection string of an account. Other commands use its functions."""

import base64
import binascii
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account
from lazulite.cli.account_stores import choose_account
from lazulite.cli.argv_secrets import IN_FILE, IN_VARIABLE
from lazulite.cli.errors import CommandError
from lazulite.protocol.addressing import HOST_SUFFIX, host_suffix
from lazulite.settings.addresses import DEFAULT_HOST, DEFAULT_PORTS, SECONDARY_FORMS, SERVICES

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not listened on.
"""Wildcard address to listen on -> the address that a client of this machine connects to."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print the connection string of an account."""
    account = choose_account(args, environ)
    endpoints = endpoints_of(args, account.name)
    if args.sas is None:
        print(connection_string(account, endpoints, args.key, scheme_of(args), args.secondary))
    else:
        print(
            f"{_endpoint_fields(account, endpoints, args.secondary)}SharedAccessSignature={args.sas.removeprefix('?')}"
        )
    return 0


def endpoints_of(args: Namespace, account: str) -> Mapping[str, str]:
    """Return the endpoints of an account that the flags name, by service.

    Services on one address are distinguished by the host, so their endpoints are host style. A service without a port
    has no endpoint.
    """
    scheme, suffix = scheme_of(args), args.host_suffix or HOST_SUFFIX
    addresses = {name: (getattr(args, f"{name}_host"), getattr(args, f"{name}_port")) for name in SERVICES}
    shared = Counter(addresses.values())
    endpoints = {}
    for name, (host, port) in addresses.items():
        if port is None:
            continue
        if args.host_suffix is None and shared[host, port] == 1:
            endpoints[name] = path_style(account, host, port, scheme)
        else:
            endpoints[name] = host_style(account, host_suffix(name, suffix), port, scheme)
    return endpoints


def scheme_of(args: Namespace) -> str:
    """Return the scheme of the endpoints that the flags ask for."""
    return "https" if args.https else "http"


def path_style(account: str, host: str, port: int, scheme: str = "http") -> str:
    """Return an endpoint whose path begins with the account, for clients of this machine.

    Args:
        account: the name.
        host: the address that the server listens on.
        port: of the service.
        scheme: `http` or `https`.
    """
    host = reachable(host)
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{port}/{account}"


def reachable(host: str) -> str:
    """Return the address at which clients of this machine reach a server that listens on `host`."""
    return _WILDCARDS.get(host, host)


def host_style(account: str, suffix: str, port: int, scheme: str = "http") -> str:
    """Return an endpoint whose host begins with the account; `suffix` is the rest of the host."""
    return f"{scheme}://{account}.{suffix}:{port}"


def connection_string(
    account: Account, endpoints: Mapping[str, str], key: int = 1, scheme: str = "http", secondary: str = "url"
) -> str:
    """Return a connection string with one of the account's keys (1 or 2).

    Args:
        account: the account.
        endpoints: by service.
        key: the number of the key.
        scheme: of all endpoints.
        secondary: the form of the secondary endpoints, see `SECONDARY_FORMS`.

    Raises:
        CommandError: the account has no such key.
    """
    if key > len(account.keys):
        raise CommandError(f"account {account.name} has no key {key}")
    secret = base64.b64encode(account.keys[key - 1]).decode()
    fields = f"DefaultEndpointsProtocol={scheme};AccountName={account.name};AccountKey={secret};"
    return f"{fields}{_endpoint_fields(account, endpoints, secondary)}"


def _endpoint_fields(account: Account, endpoints: Mapping[str, str], secondary: str) -> str:
    fields = [f"{service.title()}Endpoint={url};" for service, url in endpoints.items()]
    services, is_url = SECONDARY_FORMS[secondary]
    for service in (name for name in endpoints if name in services):
        url = secondary_of(account.name, endpoints[service])
        fields.append(f"{service.title()}SecondaryEndpoint={url if is_url else url.partition('://')[2]};")
    return "".join(fields)


def secondary_of(account: str, endpoint: str) -> str:
    """Return the secondary endpoint beside a primary one: the name of the account there ends in `-secondary`."""
    if endpoint.endswith(f"/{account}"):
        return f"{endpoint}-secondary"
    return endpoint.replace(f"://{account}.", f"://{account}-secondary.", 1)


_BYTES_MAX = 64 << 10
"""The most bytes of a file that has a connection string."""
CLOUD_SUFFIX = "core.windows.net"
"""The `EndpointSuffix` of a connection string that names none."""


class NamedAccount(NamedTuple):
    """What a connection string says about one service."""

    account: Account
    """Without keys, if there is a token."""
    endpoint: str
    """Without a slash at its end."""
    token: str
    """A shared access signature; "" if there is a key."""


def read_connection_string(text: str, service: str) -> NamedAccount:
    """Read a connection string, of this server or of the cloud.

    Args:
        text: the connection string.
        service: `table`, `queue` or `blob`.

    Raises:
        CommandError: it is not a connection string. The message shows nothing of it, as it has a key.
    """
    fields = {name.strip().lower(): value for name, _, value in (part.partition("=") for part in text.split(";"))}
    if fields.get("usedevelopmentstorage", "").strip().lower() == "true":
        name = DEVELOPMENT_ACCOUNT.name
        return NamedAccount(DEVELOPMENT_ACCOUNT, path_style(name, DEFAULT_HOST, DEFAULT_PORTS[service]), "")
    name, token = fields.get("accountname", ""), fields.get("sharedaccesssignature", "").removeprefix("?")
    try:
        key = base64.b64decode(fields.get("accountkey", ""), validate=True)
    except (binascii.Error, ValueError):
        raise CommandError("the AccountKey of the connection string is not base64") from None
    endpoint = fields.get(f"{service}endpoint", "").rstrip("/")
    if not endpoint and name:
        scheme, suffix = fields.get("defaultendpointsprotocol", "https"), fields.get("endpointsuffix", CLOUD_SUFFIX)
        endpoint = f"{scheme}://{name}.{service}.{suffix}"
    if not ((key and name) or token) or not _is_endpoint(endpoint):
        raise CommandError(
            f"the connection string needs AccountName and AccountKey, or {service.title()}Endpoint and "
            "SharedAccessSignature"
        )
    return NamedAccount(Account(name, (key,) if key else ()), endpoint, "" if key and name else token)


def connection_text(argument: str, environ: Mapping[str, str]) -> str:
    """Return the connection string that an argument names.

    Args:
        argument: `env:NAME`, `file:PATH`, or a connection string.
        environ: the environment.

    Raises:
        CommandError: there is none, or the file cannot be read.
    """
    if argument.startswith(IN_VARIABLE):
        name = argument.removeprefix(IN_VARIABLE)
        text = environ.get(name, "").strip()
        if not text:
            raise CommandError(f"the variable {name} has no connection string")
        return text
    if not argument.startswith(IN_FILE):
        return argument
    path = Path(argument.removeprefix(IN_FILE))
    try:
        with path.open("rb") as opened:
            return opened.read(_BYTES_MAX).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CommandError(f"cannot read {path}: {reason}") from None


def _is_endpoint(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        return False
