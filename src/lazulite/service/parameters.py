"""Query parameters that several services read: whole numbers within bounds, and required parameters."""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError

_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 10
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


def invalid(name: str, text: str, reason: str) -> ServiceError:
    """Return the rejection of a parameter's value."""
    return ServiceError("InvalidQueryParameterValue", details=[*_named(name, text), ("Reason", reason)])


def require(parameters: Mapping[str, str], name: str) -> str:
    """Return a parameter.

    Raises:
        ServiceError: `MissingRequiredQueryParameter`.
    """
    text = parameters.get(name)
    if not text:
        raise ServiceError("MissingRequiredQueryParameter", details=[("QueryParameterName", name)])
    return text


def _named(name: str, text: str) -> list[tuple[str, str]]:
    return [("QueryParameterName", name), ("QueryParameterValue", text[:_SHOWN_MAX])]
