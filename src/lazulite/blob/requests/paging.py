"""The pages of a list: how many entries, what they include, and where a page begins. Source: reference §35.

A marker of a list of blobs is `2!{length}!{text}`, whose text is base64 with `-` for `=`, of
`{length of name}!{name}!{length of time}!{time}!`. The page begins with the first row of that name whose time is not
before that one; `LAST_TIME` stands for the blob itself, behind its snapshots. Lengths are of bytes. Source of the form:
recordings of the live service.
"""

import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string

LAST_TIME = "9999-12-31T23:59:59.9999999Z"
TEXT_MAX = 8 * 1024
"""Characters of a marker; one for the longest name has fewer."""
_MARKER_SHOWN_MAX = 256
_MARKER = re.compile(r"2!([0-9]{1,5})!([A-Za-z0-9+/]+-{0,2})")
_FIELD = re.compile(rb"([0-9]{6})!")
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_PARAMETER_SHOWN_MAX = 64
_OUT_OF_RANGE = "One of the query parameters specified in the request URI is outside the permissible range."
"""Recorded; the documentation has another text."""


class Marker(NamedTuple):
    """Where a page begins."""

    name: str
    """The name of a blob, or a prefix up to the delimiter."""
    time: str = LAST_TIME
    """The time of a snapshot or version, as its id."""


def write_marker(marker: Marker) -> str:
    """Return a marker's text."""
    fields = (field.encode() for field in marker)
    text = b64encode(b"".join(b"%06d!%b!" % (len(field), field) for field in fields)).decode("ascii").replace("=", "-")
    return f"2!{len(text)}!{text}"


def read_marker(text: str) -> Marker | None:
    """Return the marker of a text; None for an empty one, which is that of the first page.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    if not text:
        return None
    try:
        return _read(text)
    except ValueError:
        named = [("QueryParameterName", "marker"), ("QueryParameterValue", text[:_MARKER_SHOWN_MAX])]
        raise ServiceError(
            "InvalidQueryParameterValue", details=[*named, ("Reason", "Invalid ListBlobs marker.")]
        ) from None


def _read(text: str) -> Marker:
    match = _MARKER.fullmatch(text) if len(text) <= TEXT_MAX else None
    if match is None or int(match[1]) != len(match[2]):
        raise ValueError("not a marker")
    try:
        content = a2b_base64(match[2].replace("-", "="), strict_mode=True)
    except Base64Error as error:
        raise ValueError("not base64") from error
    name, rest = _take_field(content)
    time, rest = _take_field(rest)
    if rest:
        raise ValueError("more than two fields")
    return Marker(name, time)


def _take_field(content: bytes) -> tuple[str, bytes]:
    """Return the first field, and what follows it."""
    match = _FIELD.match(content)
    end = 0 if match is None else match.end() + int(match[1])
    if match is None or content[end : end + 1] != b"!":
        raise ValueError("not a field")
    return content[match.end() : end].decode(), content[end + 1 :]


def invalid_parameter(name: str, text: str, reason: str = "") -> ServiceError:
    """Return the rejection of a parameter's value."""
    details = [("QueryParameterName", name), ("QueryParameterValue", text[:_PARAMETER_SHOWN_MAX])]
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
