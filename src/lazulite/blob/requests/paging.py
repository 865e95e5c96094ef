"""Markers of lists of blobs: where the next page begins. Source: recordings of the live service.

A marker is `2!{length}!{text}`, whose text is base64 with `-` for `=`, of
`{length of name}!{name}!{length of time}!{time}!`. The page begins with the first row of that name whose time is not
before that one; `LAST_TIME` stands for the blob itself, behind its snapshots. Lengths are of bytes.
"""

import re
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError

LAST_TIME = "9999-12-31T23:59:59.9999999Z"
TEXT_MAX = 8 * 1024
"""Characters of a marker; one for the longest name has fewer."""
_SHOWN_MAX = 256
_MARKER = re.compile(r"2!([0-9]{1,5})!([A-Za-z0-9+/]+-{0,2})")
_FIELD = re.compile(rb"([0-9]{6})!")


class Marker(NamedTuple):
    """Where a page begins."""

    name: str
    """Of a blob, or a prefix up to the delimiter."""
    time: str = LAST_TIME
    """Of a snapshot or version, as its id."""


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
        named = [("QueryParameterName", "marker"), ("QueryParameterValue", text[:_SHOWN_MAX])]
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
