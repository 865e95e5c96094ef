"""The protocol version of a request, and the table of what changed when. Source: reference §2.

The table is the constants below, oldest first: the rows that all services share. A service has the rows of its own in
its `versions` module; nowhere else does a version stand in the code. Each is the first version of the behaviour that
its text tells; after "Before:" stands what older requests get. `docs/versions.md` has the rows of all services.

Versions compare as text. Any date is taken for a version and echoed, those of the future too; one before the first row
is served as if nothing of the table were there yet.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from lazulite.protocol.errors import ServiceError

VERSION_HEADER_SINCE = "2009-09-19"
"""Responses have `x-ms-version`. Before: they lack it."""
SAS_SINCE = "2012-02-12"
"""Table SAS. Before: 403 `AuthenticationFailed`."""
ACL_SINCE = "2012-02-12"
"""Stored access policies (`comp=acl`). Before: 400 `InvalidQueryParameterValue`."""
CORS_SINCE = "2013-08-15"
"""CORS headers in responses, if rules are set. Before: none."""
STATS_SINCE = "2013-08-15"
"""Service statistics (`comp=stats`). Before: 400 `InvalidQueryParameterValue`."""
PARTIAL_PROPERTIES_SINCE = "2013-08-15"
"""Service properties `Logging`, `HourMetrics`, `MinuteMetrics` and `Cors`; one that a request leaves out is kept.
Before: `Logging` and `Metrics` (now `HourMetrics`); 400 `InvalidXmlDocument` if a request leaves one out."""
SAS_SERVICE_PREFIX_SINCE = "2015-02-21"
"""The resource that a SAS signs begins with `/table`. Before: it begins with the account."""
EMPTY_LENGTH_SINCE = "2015-02-21"
"""Shared Key of queues and blobs signs a `Content-Length` of 0 as an empty line. Before: as `0`."""
ACCOUNT_SAS_SINCE = "2015-04-05"
"""Account SAS. Before: 403 `AuthenticationFailed`."""
SAS_TRANSPORT_SINCE = "2015-04-05"
"""`sip` and `spr` of a table SAS are signed and enforced. Before: they are ignored."""
REJECTIONS_NAMED_SINCE = "2015-04-05"
"""A request beyond its SAS gets 403 with a specific code; one without credentials gets 401
`NoAuthenticationInformation`. Before: 404 `ResourceNotFound`."""
EMPTY_HEADERS_SIGNED_SINCE = "2016-05-31"
"""Shared Key of queues and blobs signs empty `x-ms-` headers. Before: it skips them."""
LOGGED_CODE_SINCE = "2017-04-17"
"""A line of `$logs` has the error code of a rejection as its status. Before: `ClientOtherError`."""
ERROR_CODE_SINCE = "2017-07-29"
"""Rejections have `x-ms-error-code`. Before: they lack it."""
BEARER_SINCE = "2020-12-06"
"""A rejected bearer token gets 401 with a challenge. Before: 403 `AuthenticationFailed`."""
ENCRYPTION_SCOPE_SINCE = "2020-12-06"
"""An account SAS signs a line for the encryption scope. Before: it has no such line."""

NEWEST = "2020-12-06"
"""What a request that names no version gets if it speaks JSON, or one of the operations that speak XML."""
DEFAULT_VERSION = "2009-09-19"
"""What any other request that names no version gets. *Unverified*: the service may take an even older one."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LENGTH = len("YYYY-MM-DD")
_LOOKED_AT_MAX = 1024
"""Characters of a header that are looked at for JSON."""


def is_version(text: str) -> bool:
    """Tell whether a text is a date as versions are: `YYYY-MM-DD`, and one that a calendar has."""
    return len(text) == _LENGTH and _is_date(text)


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def stated_version(headers: Mapping[str, str], parameters: Mapping[str, str]) -> str:
    """Return the version that a request names, in whatever form; "" if it names none."""
    return parameters.get("api-version") or headers.get("x-ms-version") or parameters.get("sv") or ""


AssumedVersion: TypeAlias = Callable[[Mapping[str, str], Mapping[str, str]], str]
"""Returns the version of a request that names none, given its headers and its query parameters."""


class RequestVersion(NamedTuple):
    """The protocol version of one request, resolved once."""

    stated: str
    """The version that the request names, in whatever form; "" if it names none."""
    governing: str
    """The version that rules; "" if the stated one is malformed."""

    def require(self) -> str:
        """Return the version that rules.

        Raises:
            ServiceError: `InvalidHeaderValue`, the stated version is no date.
        """
        if not self.governing:
            details = [("HeaderName", "x-ms-version"), ("HeaderValue", self.stated[:64])]
            raise ServiceError("InvalidHeaderValue", details=details)
        return self.governing

    def or_default(self, default: str) -> "RequestVersion":
        """Return the version; for a request that names none, the default of its account if that is not ""."""
        return RequestVersion("", default) if default and not self.stated else self

    def is_stated_before(self, since: str) -> bool:
        """Tell whether the request names a version before `since`; a request that names none does not."""
        return self.stated != "" and self.governing != "" and self.stated < since


def resolve_version(
    headers: Mapping[str, str], parameters: Mapping[str, str], assume: AssumedVersion | None = None
) -> RequestVersion:
    """Return the version of a request. Raise nothing, so that it can be resolved before authentication.

    The rule that satisfies every SDK: the `api-version` option, else the `x-ms-version` header, else the SAS's `sv`,
    else the result of `assume`, by default of `assumed_version`. (For a SAS before 2014-02-14 the documentation lets
    `sv` rule alone; no client of today would survive that with a token of then.)
    """
    stated = stated_version(headers, parameters)
    if not stated:
        return RequestVersion("", (assume or assumed_version)(headers, parameters))
    return _stated(stated) if len(stated) == _LENGTH else RequestVersion(stated, "")


@lru_cache(maxsize=64)
def _stated(text: str) -> RequestVersion:
    return RequestVersion(text, text if _is_date(text) else "")


def assumed_version(headers: Mapping[str, str], parameters: Mapping[str, str]) -> str:
    """Return the version of a request that names none; the newest for one of whose head nothing is known."""
    if not headers or "comp" in parameters or asks_for_json(headers, parameters):
        return NEWEST
    return DEFAULT_VERSION


def asks_for_json(headers: Mapping[str, str], parameters: Mapping[str, str]) -> bool:
    """Tell whether a request's body, its Accept header or its `$format` names JSON."""
    said = (headers.get("content-type", ""), headers.get("accept", ""), parameters.get("$format", ""))
    return any("json" in text[:_LOOKED_AT_MAX].lower() for text in said)
