"""The protocol version of a request. Source: reference §2.

The rule that satisfies every SDK: the `api-version` option, else the `x-ms-version` header, else the SAS's `sv`, else
the newest. Any well-formed version is accepted and echoed, those of the future too.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from lazulite.protocol.errors import ServiceError

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
