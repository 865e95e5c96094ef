"""The protocol version of a request. Source: reference §2.

The rule that satisfies every SDK: the `api-version` option, else the `x-ms-version` header, else the SAS's `sv`, else
the newest. Any well-formed version is accepted and echoed, those of the future too.

What changed when is the table of constants below; nowhere else does a version stand in the code.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from lazulite.protocol.errors import ServiceError

BATCH_SINCE = "2009-04-14"
"""Entity group transactions."""
VERSION_HEADER_SINCE = "2009-09-19"
"""Answers carry `x-ms-version`."""
SELECT_SINCE = "2011-08-18"
"""`$select`, and OData 2.0."""
UPSERT_SINCE = "2011-08-18"
"""PUT and MERGE without If-Match; before, that is refused."""
SAS_SINCE = "2012-02-12"
"""Shared access signatures and access policies of tables."""
JSON_SINCE = "2013-08-15"
"""JSON, OData 3.0, `Prefer`, CORS, service stats, hour and minute metrics, partial service properties."""
SAS_SERVICE_PREFIX_SINCE = "2015-02-21"
"""The canonical resource of a SAS begins with the service's name."""
ACCOUNT_SAS_SINCE = "2015-04-05"
"""Account SAS, `sip`, `spr`, and refusals of a SAS by 403 with a code of their own instead of 404."""
ATOM_BEFORE = "2015-12-11"
"""The first version without Atom."""
BEARER_SINCE = "2020-12-06"
"""Bearer tokens are challenged; before, they are refused."""
ENCRYPTION_SCOPE_SINCE = "2020-12-06"
"""The string-to-sign of an account SAS has a line for the encryption scope."""

NEWEST = "2020-12-06"
"""What a request that names no version gets. *Unverified*: the service may take it for the oldest."""

_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@lru_cache(maxsize=64)
def _is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def version_of(headers: Mapping[str, str], parameters: Mapping[str, str]) -> str:
    """Return the version as `YYYY-MM-DD`; versions compare as text.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """
    version = parameters.get("api-version") or headers.get("x-ms-version") or parameters.get("sv") or NEWEST
    if not _is_version(version):
        raise ServiceError(
            "InvalidHeaderValue", details=[("HeaderName", "x-ms-version"), ("HeaderValue", version[:64])]
        )
    return version
