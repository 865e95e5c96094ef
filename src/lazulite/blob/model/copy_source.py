"""The URL of a copy's source, and what it addresses. Source: REST reference, Copy Blob and the writes from a URL.

A source is *own* if its host is the one of the request, or one that names an account of this service. Such a source is
read from the store, never fetched. Any other is *foreign*. The whole URL matches one expression, so that what is
fetched is what was compared: neither credentials before the host nor a fragment is allowed.
"""

import re
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

from lazulite.blob.resource import Kind, Resource, resource_of
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.errors import invalid_header
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string

URL_MAX = 2 * 1024
"""Characters."""
_URL = re.compile(
    r"(https?)://((?:[A-Za-z0-9](?:[A-Za-z0-9._-]*)|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)(/[!-~]*?)?(?:\?([!-~]*))?",
    re.IGNORECASE | re.ASCII,
)
_ACCOUNT_PATH = re.compile(r"/[^/]")
"""What a source begins with that has no host, as versions before 2012-02-12 have it."""
_SHOWN_MAX = 256


class LocalSource(NamedTuple):
    """A blob of this service."""

    request: Request
    """A read of the blob, with the URL's query string, to be authorized as the source demands."""
    address: Address
    resource: Resource
    snapshot: str
    """The time of a snapshot as it was sent; "" for the blob itself."""
    version: str
    """The id of a version as it was sent; "" for the current one."""


class ForeignSource(NamedTuple):
    """A source elsewhere. To fetch it takes the consent of the operator."""

    url: str
    scheme: str
    host: str
    """With its port, if the URL has one."""


def read_copy_source(
    url: str, request: Request, addressing: Addressing, header: str = "x-ms-copy-source"
) -> LocalSource | ForeignSource:
    """Return what the URL of a source addresses.

    Args:
        url: as it was sent.
        request: that names it.
        addressing: of the service.
        header: that has the URL.

    Raises:
        ServiceError: `InvalidHeaderValue`, it is malformed. `InvalidResourceName`, `OutOfRangeInput`: no blob has such
            name; `RequestUrlFailedToParse`, it is not UTF-8.
    """
    host = request.headers.get("host", "")
    if len(url) <= URL_MAX and _ACCOUNT_PATH.match(url):
        url = f"{request.scheme}://{host}{url}"
    found = _URL.fullmatch(url) if len(url) <= URL_MAX else None
    if found is None or "#" in url:
        raise invalid_header(header, url, _SHOWN_MAX)
    scheme, named, path, query = (text or "" for text in found.groups())
    if not _is_host(named):
        raise invalid_header(header, url, _SHOWN_MAX)
    if named.lower() != host.lower() and not addressing.names_account(named):
        return ForeignSource(url, scheme.lower(), named.lower())
    read = Request("GET", path or "/", query, {"host": named}, scheme=scheme.lower())
    address = addressing.locate(read)
    parameters = parse_query_string(query)
    resource = resource_of(address.resource, parameters)
    if resource.kind is not Kind.BLOB:
        raise invalid_header(header, url, _SHOWN_MAX)
    resource.check(read.method, parameters)
    return LocalSource(read, address, resource, parameters.get("snapshot", ""), parameters.get("versionid", ""))


def _is_host(named: str) -> bool:
    """Tell whether a host can be one: in brackets, only an address of IPv6 can."""
    bracketed, closed, _ = named.removeprefix("[").partition("]")
    if not closed:
        return True
    try:
        IPv6Address(bracketed)
    except AddressValueError:
        return False
    return True
