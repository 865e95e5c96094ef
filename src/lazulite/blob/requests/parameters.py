"""The query parameters of lists: how many entries, what they include, and where they begin. Source: reference §35."""

import re
from collections.abc import Collection, Mapping, Sequence

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_SHOWN_MAX = 64
_OUT_OF_RANGE = "One of the query parameters specified in the request URI is outside the permissible range."
"""Recorded; the documentation has another text."""


def invalid_parameter(name: str, text: str, reason: str = "") -> ServiceError:
    """Return the rejection of a parameter's value."""
    details = [("QueryParameterName", name), ("QueryParameterValue", text[:_SHOWN_MAX])]
    return ServiceError("InvalidQueryParameterValue", details=[*details, *([("Reason", reason)] if reason else [])])


def read_most(parameters: Mapping[str, str], most: int) -> int:
    """Return how many entries a page has at most: `maxresults`, but no more than `most`.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, `OutOfRangeQueryParameterValue`.
    """
    text = parameters.get("maxresults")
    if text is None:
        return most
    if _NUMBER.fullmatch(text) is None:
        raise invalid_parameter("maxresults", text, "The value is not a whole number.")
    if int(text) < 1:
        details = [("QueryParameterName", "maxresults"), ("QueryParameterValue", text)]
        bounds = [("MinimumAllowed", "1"), ("MaximumAllowed", str(most))]
        raise ServiceError("OutOfRangeQueryParameterValue", _OUT_OF_RANGE, details=[*details, *bounds])
    return min(int(text), most)


def echoed(parameters: Mapping[str, str], names: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """Return elements for the parameters of a request, of which `maxresults` is the number that counts (§44).

    Args:
        parameters: of the request.
        names: of the elements, and of their parameters.
        most: as `read_most` returned it.
    """
    sent = {**parameters, "maxresults": str(most)} if "maxresults" in parameters else parameters
    return [(element, sent[name]) for element, name in names if name in sent]


def read_include(request: Request, allowed: Collection[str]) -> frozenset[str]:
    """Return the words of `include`, which some SDKs send several times.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, a word is unknown.
    """
    found: set[str] = set()
    for part in request.query.split("&"):
        text = parse_query_string(part).get("include", "")
        for word in text.split(","):
            if word and word.strip().lower() not in allowed:
                raise invalid_parameter("include", text)
            found.add(word.strip().lower())
    return frozenset(found - {""})
