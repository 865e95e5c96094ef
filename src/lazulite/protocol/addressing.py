"""Which account and which resource a request addresses (reference §1).

Host style: the host is the account's name and a suffix that the service knows, `orders.table.localhost`. Path style,
for every other host (an address, `localhost`, a service's name in a container network): the account is the first
segment of the path. A secondary endpoint is spelled `{account}-secondary`; it is read-only and signs with the plain
account name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from lazulite.protocol.message import Request
from lazulite.protocol.query_string import percent_decode

HOST_SUFFIX = "table.localhost"
"""The suffix of tables that is always known: browsers and systemd resolve `*.localhost` to this machine."""


SERVICE_LABELS = ("table", "queue", "blob", "web")
"""The labels behind an account in a host name, each of a service, or of the static websites."""


def host_suffix(service: str, suffix: str = HOST_SUFFIX) -> str:
    """Return the host suffix of a service that goes with one of any service: `queue.localhost`.

    A suffix that does not begin with the label of a service is that of all services.
    """
    return f"{service}.{suffix.partition('.')[2]}" if tells_service(suffix) else suffix


def tells_service(suffix: str) -> bool:
    """Return whether a host suffix begins with the label of a service."""
    label, _, domain = suffix.partition(".")
    return label in SERVICE_LABELS and domain != ""


_SECONDARY = "-secondary"
_CACHED_LENGTH_MAX = 256
"""Clients repeat their host on each request; one of up to this many characters is read once."""


@dataclass(slots=True)
class Address:
    """Where a request goes."""

    account: str
    """The account's name, without `-secondary`."""
    secondary: bool
    resource: str
    """The path below the account, without its leading slash, percent-encoding untouched."""
    base: str
    """Absolute URL of the account's root as the client wrote it, with its trailing slash."""
    root: str
    """The path of that URL: just a slash in host style."""


class Addressing:
    """How a service's accounts are addressed.

    Args:
        host_suffixes: what follows the account and a dot in a host; none for path style only. In lower case, as hosts
            have none.
    """

    def __init__(self, host_suffixes: Iterable[str] = (HOST_SUFFIX,)) -> None:
        # The longest first: `a.table.localhost` is the account `a`, also if `localhost` is a suffix too.
        self._suffixes = sorted((f".{suffix}" for suffix in host_suffixes), key=len, reverse=True)
        self._cached = lru_cache(maxsize=1024)(self._account_of)
        self._cached_root = lru_cache(maxsize=1024)(_root)

    def locate(self, request: Request) -> Address:
        """Tell where a request goes.

        Raises:
            ServiceError: `RequestUrlFailedToParse`, the account segment of the path is not UTF-8.
        """
        host = request.headers.get("host", "")
        read = self._cached if len(host) <= _CACHED_LENGTH_MAX else self._account_of
        named = read(host)
        path = request.path.lstrip("/")
        if named:
            secondary = named.endswith(_SECONDARY)
            return Address(named.removesuffix(_SECONDARY), secondary, path, f"{request.scheme}://{host}/", "/")
        segment, _, resource = path.partition("/")
        short = len(host) + len(segment) <= _CACHED_LENGTH_MAX
        account, secondary, base, root = (self._cached_root if short else _root)(request.scheme, host, segment)
        if secondary:
            # The Python SDK puts the account twice when it derives the secondary of a path-style endpoint.
            resource = resource.removeprefix(f"{account}/")
        return Address(account, secondary, resource, base, root)

    def names_account(self, host: str) -> bool:
        """Return whether a `Host` field names an account of the service: whether `locate` finds host style."""
        read = self._cached if len(host) <= _CACHED_LENGTH_MAX else self._account_of
        return read(host) != ""

    def _account_of(self, host: str) -> str:
        """Return the account that a host names, `-secondary` and all; "" in path style."""
        name = host.partition(":")[0].lower().removesuffix(".")
        for suffix in self._suffixes:
            if name.endswith(suffix):
                return name.removesuffix(suffix)
        return ""


def _root(scheme: str, host: str, segment: str) -> tuple[str, bool, str, str]:
    """Return the account that a path's first segment names, whether it is its secondary, its URL, and that URL's path.

    Raises:
        ServiceError: see `locate`.
    """
    account = percent_decode(segment)
    root = f"/{segment}/"
    return account.removesuffix(_SECONDARY), account.endswith(_SECONDARY), f"{scheme}://{host}{root}", root
