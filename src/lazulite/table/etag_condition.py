"""If-Match and If-None-Match: the whole matrix of the reference, §9.

A condition is None (no header), `ANY` (`*`) or the text of one weak entity tag.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from lazulite.protocol.errors import ServiceError
from lazulite.table.model.edm import parse_datetime
from lazulite.table.model.row import etag_of

ANY = "*"
_WEAK_TAG = re.compile(r'W/"[^"]*"', re.ASCII)
_INSTANT = re.compile(r"W/\"datetime'([^']*)'\"", re.ASCII | re.IGNORECASE)
_BOTH = (
    "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. "
    "Please specify either one of the headers or none of them."
)
_NO_ETAG = (
    "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined."
)
_MALFORMED = (
    "The etag value '{}' specified in one of the request headers is not valid. "
    "Please make sure only one etag value is specified and is valid."
)
_DELETE_NEEDS_TAG = (
    "Since entity type '{}' has one or more etag properties, If-Match HTTP header must be specified for DELETE/PUT "
    "operations on this type."
)


def read_condition(headers: Mapping[str, str], verb: str) -> str | None:
    """Return the condition of an entity write.

    Args:
        headers: of the request, lower-case names.
        verb: the effective method, for the texts.

    Raises:
        ServiceError: `InvalidInput` with the service's text.
    """
    if_match = headers.get("if-match")
    if_none_match = headers.get("if-none-match")
    if if_none_match is not None:
        if if_match is not None:
            raise ServiceError("InvalidInput", _BOTH)
        named = "DELETE" if verb == "DELETE" else "PUT"
        raise ServiceError("InvalidInput", f"If-None-Match HTTP header cannot be specified for {named} operations.")
    if if_match is None or is_condition(if_match):
        return if_match
    raise ServiceError("InvalidInput", _MALFORMED.format(if_match))


def is_condition(text: str) -> bool:
    """Return whether the text of a header is a condition."""
    return text == ANY or _WEAK_TAG.fullmatch(text) is not None


def require_condition(condition: str | None, table: str) -> str:
    """Return the condition of a delete, which must have one, or of an update of a version that has no upserts.

    The code is *unverified*; the text is WCF Data Services' own.

    Raises:
        ServiceError: `InvalidInput`.
    """
    if condition is None:
        raise ServiceError("InvalidInput", _DELETE_NEEDS_TAG.format(table))
    return condition


def reject_conditions(headers: Mapping[str, str]) -> None:
    """Reject either header where the target has no ETag (inserts, tables but for their deletion).

    Raises:
        ServiceError: `InvalidInput`.
    """
    if "if-match" in headers or "if-none-match" in headers:
        raise ServiceError("InvalidInput", _NO_ETAG)


def check_condition(condition: str | None, ticks: int) -> None:
    """Compare a condition with the Timestamp of the entity that exists.

    Some clients write the colons of a tag raw or as `%3a`: where the text differs, the instant decides.

    Raises:
        ServiceError: `UpdateConditionNotSatisfied`.
    """
    if condition is None or condition == ANY or condition == etag_of(ticks) or ticks_meant(condition) == ticks:
        return
    raise ServiceError("UpdateConditionNotSatisfied")


def ticks_meant(condition: str) -> int | None:
    """Return the Timestamp that the text of an entity tag means; None if it means none."""
    match = _INSTANT.fullmatch(condition)
    if match is None:
        return None
    try:
        return parse_datetime(unquote(match[1]))
    except ValueError:
        return None
