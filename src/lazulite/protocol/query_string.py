"""The query string of a request URL, decoded once, and its `timeout`.

Rules (reference §1): OData options (`$filter`, …) keep their case; every other name is case-insensitive, kept in lower
case. `+` means a blank here (and only here, never in a path). Of a repeated name the first value counts, but a field
of a SAS may not be repeated: `Authenticator` rejects it by `repeated_names`.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from lazulite.protocol.errors import ServiceError

MAX_PARAMETERS = 64
_CACHED_LENGTH_MAX = 1024
"""Clients with a SAS repeat their query string on each request; one of up to this many characters is read once."""

REQUEST_SECONDS_MAX = 30
"""The longest that any operation may take; larger values are cut to it."""
_INTEGER = re.compile(r"\d{1,10}", re.ASCII)


def percent_decode(text: str) -> str:
    """Decode percent-escapes as UTF-8, once.

    Raises:
        ServiceError: `RequestUrlFailedToParse`, the bytes are not UTF-8.
    """
    if "%" not in text and text.isascii():
        return text
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode("utf-8")
    except UnicodeError:
        raise ServiceError("RequestUrlFailedToParse") from None


def parse_query_string(raw: str) -> Mapping[str, str]:
    """Return name -> value, both decoded.

    Raises:
        ServiceError: `RequestUrlFailedToParse` for bytes that are not UTF-8, `InvalidUri` for too many parameters.
    """
    return _parse_cached(raw) if len(raw) <= _CACHED_LENGTH_MAX else _parse(raw)


def _parse(raw: str) -> Mapping[str, str]:
    pairs = raw.split("&", MAX_PARAMETERS)
    if len(pairs) > MAX_PARAMETERS:
        raise ServiceError("InvalidUri")
    parameters: dict[str, str] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        name = _read_name(name)
        if name and name not in parameters:
            parameters[name] = percent_decode(value.replace("+", " "))
    return parameters


def _read_name(raw: str) -> str:
    name = percent_decode(raw.replace("+", " "))
    return name if name.startswith("$") else name.lower()


def repeated_names(raw: str) -> set[str]:
    """Return the names that come more than once, in a query string that `parse_query_string` has read."""
    counts = Counter(_read_name(pair.partition("=")[0]) for pair in raw.split("&"))
    return {name for name, count in counts.items() if count > 1 and name}


_parse_cached = lru_cache(maxsize=1024)(_parse)


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
