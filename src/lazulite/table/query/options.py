"""The options of a query: `$top`, `$select`, and the OData options that are not implemented. Source: reference §10."""

import re
from collections.abc import Mapping, Sequence

from lazulite.protocol.errors import ServiceError
from lazulite.table.names import PROPERTY_NAME_MAX

TOP_MAX = 1000
SELECT_MAX = 255
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_NOT_IMPLEMENTED = ("$orderby", "$skip", "$skiptoken", "$inlinecount", "$count", "$expand")


def reject_unknown_options(parameters: Mapping[str, str]) -> None:
    """Reject the OData options that the service does not implement. Code and status are *unverified*.

    Raises:
        ServiceError: `NotImplemented`.
    """
    for option in _NOT_IMPLEMENTED:
        if option in parameters:
            raise ServiceError("NotImplemented")


def read_top(parameters: Mapping[str, str]) -> int:
    """Return the most entities a page may hold. 0 is an empty page (*unverified*).

    Raises:
        ServiceError: `InvalidInput`.
    """
    text = parameters.get("$top")
    if text is None:
        return TOP_MAX
    if _INTEGER.fullmatch(text) is None or not 0 <= int(text) <= TOP_MAX:
        raise ServiceError("InvalidInput")
    return int(text)


def read_select(parameters: Mapping[str, str]) -> Sequence[str] | None:
    """Return the names selected, in order; None for all of them.

    Raises:
        ServiceError: `InvalidInput`.
    """
    text = parameters.get("$select", "")
    if not text.strip():
        return None
    names = [name.strip() for name in text.split(",", SELECT_MAX)]
    if len(names) > SELECT_MAX or not all(names) or max(map(len, names)) > PROPERTY_NAME_MAX:
        raise ServiceError("InvalidInput")
    return None if "*" in names else names
