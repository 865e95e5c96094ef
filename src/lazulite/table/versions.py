"""The versions at which the Table service changed, oldest first, and the OData version that a request speaks.

Each constant is the first version with the behaviour in its text; `protocol/version.py` has the table. The behaviour of
older versions follows "Before:". Source: reference §2.

Of `DataServiceVersion` and `MaxDataServiceVersion` the Max one governs. Without either, a client speaks the newest that
its `x-ms-version` knows. A version above that counts as it, as long as the other header names one that is known: WCF
Data Services of .NET 4 send `2.0;NetFx` as their maximum whatever the `x-ms-version`. What cannot be read counts as
absent (*unverified*: the service may reject it). Source: reference §2.1.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import asks_for_json

BATCH_SINCE = "2009-04-14"
"""Entity group transactions. Before: 400 `InvalidUri`."""
UPSERT_SINCE = "2011-08-18"
"""PUT, MERGE and PATCH without `If-Match` insert or change an entity. Before: 400 `InvalidInput`."""
SELECT_SINCE = "2011-08-18"
"""`$select` and OData 2.0. Before: 400 `InvalidInput`; 400 `InvalidHeaderValue` for OData 2.0."""
JSON_SINCE = "2013-08-15"
"""JSON and OData 3.0. Before: 415 `JsonFormatNotSupported`; 400 `InvalidHeaderValue` for OData 3.0 without JSON."""
PREFER_SINCE = "2013-08-15"
"""`Prefer` on inserts. Before: it is ignored, and the response has the entity."""
ATOM_BEFORE = "2015-12-11"
"""Atom is rejected: 415 `AtomFormatNotSupported`. Before: Atom is accepted; from 2013-08-15 on, JSON too."""
ODATA_HEADER_BEFORE = "2015-12-11"
"""Only OData responses in a batch have `DataServiceVersion`. Before: every successful one has it, except
the response to a batch as a whole."""


_NEWEST = ((JSON_SINCE, 3), (SELECT_SINCE, 2), ("", 1))
"""Since which `x-ms-version` which version of OData is known, newest first."""
_FORM = re.compile(r"\s*(\d{1,2})\.\d\s*(?:;.*)?", re.ASCII | re.DOTALL)
_LOOKED_AT_MAX = 32
"""Characters of a header that are looked at; behind `;` stands only the name of the client's library."""


def odata_version(version: str, headers: Mapping[str, str]) -> int:
    """Return the OData version that governs a request: 1, 2 or 3.

    Args:
        version: its `x-ms-version`.
        headers: of the request, or of a part of a batch.
    """
    most, one = headers.get("maxdataserviceversion", ""), headers.get("dataserviceversion", "")
    return _governing(version, most[:_LOOKED_AT_MAX], one[:_LOOKED_AT_MAX])


def require_odata(number: int, spoken: int) -> None:
    """Reject an option that the OData version of a request does not have yet.

    Args:
        number: the first OData version that has it.
        spoken: the OData version of the request.

    Raises:
        ServiceError: `InvalidInput` (code and text are *unverified*).
    """
    if spoken < number:
        raise ServiceError(
            "InvalidInput", f"Request version '{spoken}.0' is too low for the request: it needs at least '{number}.0'."
        )


def check_odata_version(version: str, headers: Mapping[str, str], parameters: Mapping[str, str]) -> None:
    """Reject a request that states only OData versions that its `x-ms-version` does not know.

    From `JSON_SINCE` on every version is known, so there is nothing to check.

    Raises:
        ServiceError: `JsonFormatNotSupported` if JSON is what it wants the version for, else `InvalidHeaderValue`.
    """
    texts = (headers.get("maxdataserviceversion", ""), headers.get("dataserviceversion", ""))
    stated = [number for text in texts if (number := _number(text[:_LOOKED_AT_MAX]))]
    if stated and min(stated) > _newest(version):
        if asks_for_json(headers, parameters):
            raise ServiceError("JsonFormatNotSupported")
        raise ServiceError(
            "InvalidHeaderValue",
            details=[("HeaderName", "DataServiceVersion"), ("HeaderValue", f"{min(stated)}.0")],
        )


@lru_cache(maxsize=256)
def _governing(version: str, most: str, one: str) -> int:
    newest = _newest(version)
    return min(_number(most) or _number(one) or newest, newest)


def _number(text: str) -> int:
    """Return the version that a header states, 0 if none can be read."""
    match = _FORM.fullmatch(text)
    return int(match[1]) if match else 0


def _newest(version: str) -> int:
    if version >= JSON_SINCE:
        return 3
    return next(number for since, number in _NEWEST if version >= since)
