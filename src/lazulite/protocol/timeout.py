"""The `timeout` option of a request. Source: reference §10.8."""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError

REQUEST_SECONDS_MAX = 30
"""The longest that any operation may take; larger values are cut to it."""
_INTEGER = re.compile(r"\d{1,10}", re.ASCII)


def read_timeout(parameters: Mapping[str, str]) -> int:
    """Return how many seconds a request may take.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    text = parameters.get("timeout")
    if not text:
        return REQUEST_SECONDS_MAX
    if _INTEGER.fullmatch(text) is None:
        raise ServiceError(
            "InvalidQueryParameterValue",
            details=[("QueryParameterName", "timeout"), ("QueryParameterValue", text[:64])],
        )
    return max(1, min(int(text), REQUEST_SECONDS_MAX))
