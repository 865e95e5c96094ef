"""The query parameters of messages and lists: whole numbers within bounds, and pop receipts. Source: reference §28."""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.queue import limits
from lazulite.queue.model.receipt import SentReceipt, read_receipt
from lazulite.queue.versions import LONG_TTL_SINCE, LONG_VISIBILITY_SINCE

_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 10
_NO_END = "-1"
_LESS_THAN_ONE = re.compile(r"-[0-9]+|\+?0+")
_SHOWN_MAX = 64
_OUT_OF_RANGE = "One of the query parameters specified in the request URI is outside the permissible range."
"""Recorded; the documentation has another text."""


def read_number(parameters: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Return a whole number.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, `OutOfRangeQueryParameterValue`.
    """
    text = parameters.get(name)
    if text is None:
        return default
    if _NUMBER.fullmatch(text) is None:
        raise invalid(name, text, "The value is not a whole number.")
    if len(text) > _DIGITS_MAX or not least <= int(text) <= most:
        raise out_of_range(name, text, least, most)
    return int(text)


def out_of_range(name: str, text: str, least: int, most: int) -> ServiceError:
    """Return the rejection of a number that is less than `least` or more than `most`."""
    bounds = [("MinimumAllowed", str(least)), ("MaximumAllowed", str(most))]
    return ServiceError("OutOfRangeQueryParameterValue", _OUT_OF_RANGE, details=[*_named(name, text), *bounds])


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


def require_receipt(parameters: Mapping[str, str]) -> SentReceipt:
    """Return the `popreceipt`.

    Raises:
        ServiceError: `MissingRequiredQueryParameter`, `InvalidQueryParameterValue`.
    """
    text = require(parameters, "popreceipt")
    try:
        return read_receipt(text)
    except ValueError:
        raise invalid("popreceipt", text, "Invalid pop receipt format") from None


def require(parameters: Mapping[str, str], name: str) -> str:
    """Return a parameter.

    Raises:
        ServiceError: `MissingRequiredQueryParameter`.
    """
    text = parameters.get(name)
    if not text:
        raise ServiceError("MissingRequiredQueryParameter", details=[("QueryParameterName", name)])
    return text


def invalid(name: str, text: str, reason: str) -> ServiceError:
    """Return the rejection of a parameter's value."""
    return ServiceError("InvalidQueryParameterValue", details=[*_named(name, text), ("Reason", reason)])


def _named(name: str, text: str) -> list[tuple[str, str]]:
    return [("QueryParameterName", name), ("QueryParameterValue", text[:_SHOWN_MAX])]
