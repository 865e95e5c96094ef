"""Which account and which resource a request addresses (path style: the account is the first segment of the path).

A secondary endpoint is spelled `{account}-secondary`; it is read-only and signs with the plain account name.
"""

from typing import NamedTuple

from lazulite.protocol.message import Request
from lazulite.protocol.query_string import percent_decode

_SECONDARY = "-secondary"


class Address(NamedTuple):
    """Where a request goes."""

    account: str
    """The account's name, without `-secondary`."""
    secondary: bool
    resource: str
    """The path below the account, without its leading slash, percent-encoding untouched."""
    base: str
    """Absolute URL of the account's root as the client wrote it, with its trailing slash."""


def locate(request: Request) -> Address:
    """Split a path-style URL.

    Raises:
        ServiceError: `RequestUrlFailedToParse`, the account segment is not UTF-8.
    """
    segment, _, resource = request.path.lstrip("/").partition("/")
    account = percent_decode(segment)
    secondary = account.endswith(_SECONDARY)
    if secondary:
        # The Python SDK puts the account twice when it derives the secondary of a path-style endpoint.
        resource = resource.removeprefix(f"{account.removesuffix(_SECONDARY)}/")
    host = request.headers.get("host", "")
    return Address(
        account.removesuffix(_SECONDARY) if secondary else account,
        secondary,
        resource,
        f"{request.scheme}://{host}/{segment}/",
    )
