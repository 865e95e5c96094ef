"""Query parameters that several services read: whole numbers within bounds, markers, and required parameters."""

import re
from collections.abc import Callable, Mapping

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


def read_name_marker(parameters: Mapping[str, str], account: str, check: Callable[[str], None], code: str) -> str:
    """Return the name with which a page begins: the one in the `marker` of a list, which is `/account/name`.

    Args:
        parameters: the query; without a marker, the name is "".
        account: the account's name.
        check: rejects a name that nothing in the list can have.
        code: of the rejection.

    Raises:
        ServiceError: of that code, if no page has such a marker.
    """
    marker, beginning = parameters.get("marker", ""), f"/{account}/"
    if not marker:
        return ""
    if not marker.startswith(beginning):
        raise ServiceError(code)
    name = marker.removeprefix(beginning)
    try:
        check(name)
    except ServiceError:
        raise ServiceError(code) from None
    return name


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
