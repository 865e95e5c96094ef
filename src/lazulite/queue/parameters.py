"""The query parameters of messages and lists: whole numbers within bounds, and pop receipts. Source: reference §28."""

import re
from collections.abc import Mapping

from lazulite.queue import limits
from lazulite.queue.model.receipt import SentReceipt, read_receipt
from lazulite.queue.versions import LONG_TTL_SINCE, LONG_VISIBILITY_SINCE
from lazulite.service.parameters import invalid, read_number

_NO_END = "-1"
_LESS_THAN_ONE = re.compile(r"-[0-9]+|\+?0+")


def read_visibility(parameters: Mapping[str, str], version: str, default: int, least: int) -> int:
    """Return a `visibilitytimeout` in seconds. Raises as `read_number`."""
    since = version >= LONG_VISIBILITY_SINCE
    most = limits.VISIBILITY_SECONDS_MAX if since else limits.SHORT_VISIBILITY_SECONDS_MAX
    return read_number(parameters, "visibilitytimeout", default, least, most)


def read_delay(parameters: Mapping[str, str], version: str) -> int:
    """Return the `visibilitytimeout` of a put in seconds.

    Raises:
        ServiceError: as `read_number`.
    """
    if version < LONG_VISIBILITY_SINCE:
        return read_number(parameters, "visibilitytimeout", 0, 0, 0)
    return read_visibility(parameters, version, 0, 0)


def read_ttl(parameters: Mapping[str, str], version: str) -> int | None:
    """Return the `messagettl` in seconds; None for a message that never expires.

    Raises:
        ServiceError: as `read_number`.
    """
    if version < LONG_TTL_SINCE:
        return read_number(parameters, "messagettl", limits.TTL_SECONDS, 1, limits.TTL_SECONDS)
    text = parameters.get("messagettl", "")
    if text == _NO_END:
        return None
    if _LESS_THAN_ONE.fullmatch(text):
        reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL."
        raise invalid("messagettl", text, reason)
    return read_number(parameters, "messagettl", limits.TTL_SECONDS, 1, limits.TTL_SECONDS_MAX)


def check_delay(parameters: Mapping[str, str], delay: int, ttl: int | None) -> None:
    """Reject a message that would expire before it becomes visible.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    if ttl is not None and delay >= ttl:
        text = parameters.get("visibilitytimeout", "0")
        raise invalid("visibilitytimeout", text, "messagettl must be greater than visibilitytimeout")


def receipt_of(text: str) -> SentReceipt:
    """Return the `popreceipt` of a text.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    try:
        return read_receipt(text)
    except ValueError:
        raise invalid("popreceipt", text, "Invalid pop receipt format") from None
