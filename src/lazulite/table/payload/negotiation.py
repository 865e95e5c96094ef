"""Content negotiation: what a client sent, and what it wants to read. Source: reference §4.

Invariants: `$format` decides the response's format where OData 3.0 is spoken, else Accept does, else the version:
Atom as long as there is Atom, unless the request's body is JSON. Since 2015-12-11 a client that accepts anything gets
minimal metadata (*unverified*; Atom is no longer possible). JSON needs OData 3.0, so the version that brought that and
no lower one in the OData headers, of which the Max one governs.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.table.payload.formats import ATOM, ATOM_READER, JSON, JSON_READER, MINIMAL, Format, Reader
from lazulite.table.versions import ATOM_BEFORE, PREFER_SINCE, odata_version

_ODATA_OF_JSON = 3
HEADER_MAX = 1024
"""Characters of a header that are looked at."""

_JSON = {"": MINIMAL} | {level.value: each for level, each in JSON.items()}
_ATOM_TYPES = frozenset({"application/atom+xml", "application/xml", "text/xml", "atom", "atom+xml"})
_JSON_TYPES = frozenset({"application/json", "json"})
_ANY_TYPES = frozenset({"*/*", "application/*", "*"})


def _parameters(media_range: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = media_range.split(";")
    pairs = (part.partition("=") for part in rest)
    return media_type.strip().lower(), {
        name.strip().lower(): value.strip().strip('"').lower() for name, _, value in pairs
    }


def _quality(media_range: str) -> float:
    try:
        return float(_parameters(media_range)[1].get("q", "1"))
    except ValueError:
        return 0.0


def _knows_json(version: str, headers: Mapping[str, str], odata: int = 0) -> bool:
    return (odata or odata_version(version, headers)) >= _ODATA_OF_JSON


def negotiate(version: str, headers: Mapping[str, str], format_option: str, odata: int = 0) -> Format:
    """Return the format of the response.

    Args:
        version: of the request.
        headers: of the request; what stands in one beyond `HEADER_MAX` characters is not looked at.
        format_option: the `$format` option, decoded, "" if absent.
        odata: the OData version of the request; 0 to resolve it here.

    Raises:
        ServiceError: 415 with the code of the first format asked for, if none of them can be had.
    """
    accept = headers.get("accept", "")
    if len(accept) > HEADER_MAX:
        accept = accept[:HEADER_MAX].rpartition(",")[0]
    body_type = headers.get("content-type", "")[:HEADER_MAX] if version < ATOM_BEFORE else ""
    return _negotiate(version, _knows_json(version, headers, odata), accept, format_option[:HEADER_MAX], body_type)


@lru_cache(maxsize=256)
def _negotiate(version: str, knows_json: bool, accept: str, format_option: str, body_type: str) -> Format:
    ranges = sorted(filter(str.strip, accept.split(",")), key=_quality, reverse=True)
    if format_option and knows_json:
        ranges = [format_option]
    rejection: ServiceError | None = None
    for media_range in ranges or ["*/*"]:
        try:
            return _format(media_range, version, knows_json, body_type)
        except ServiceError as error:
            rejection = rejection or error
    assert rejection is not None, "no format, and none rejected"
    raise rejection


def _format(media_range: str, version: str, knows_json: bool, body_type: str) -> Format:
    media_type, parameters = _parameters(media_range)
    if media_type in _ANY_TYPES:
        is_json = _parameters(body_type)[0] in _JSON_TYPES
        media_type = "json" if version >= ATOM_BEFORE or (is_json and knows_json) else "atom"
    if media_type in _ATOM_TYPES:
        if version >= ATOM_BEFORE:
            raise ServiceError("AtomFormatNotSupported")
        return ATOM
    odata = parameters.get("odata", "")
    if media_type not in _JSON_TYPES or (odata not in _JSON and odata != "verbose"):
        raise ServiceError("MediaTypeNotSupported")
    if not knows_json:
        raise ServiceError("JsonFormatNotSupported")
    if odata == "verbose":
        raise ServiceError("JsonVerboseFormatNotSupported")
    return _JSON[odata]


def format_for_error(version: str, headers: Mapping[str, str], format_option: str) -> Format:
    """Return the format of an error: the negotiated one, or the version's default where negotiation fails."""
    try:
        return negotiate(version, headers, format_option)
    except ServiceError:
        return MINIMAL if _knows_json(version, headers) or version >= ATOM_BEFORE else ATOM


def reader_of(version: str, headers: Mapping[str, str], odata: int = 0) -> Reader:
    """Return the reader of a request's body; `odata` as for `negotiate`.

    Raises:
        ServiceError: 415, with a code for the format.
    """
    return _reader(version, _knows_json(version, headers, odata), headers.get("content-type", "")[:HEADER_MAX])


@lru_cache(maxsize=256)
def _reader(version: str, knows_json: bool, content_type: str) -> Reader:
    media_type, parameters = _parameters(content_type)
    if media_type == "application/atom+xml":
        if version >= ATOM_BEFORE:
            raise ServiceError("AtomFormatNotSupported")
        return ATOM_READER
    if media_type != "application/json":
        raise ServiceError("MediaTypeNotSupported")
    if not knows_json:
        raise ServiceError("JsonFormatNotSupported")
    if parameters.get("odata") == "verbose":
        raise ServiceError("JsonVerboseFormatNotSupported")
    return JSON_READER


class Preference(StrEnum):
    """The response preference of an insert: its `Prefer` header as in OData v3."""

    CONTENT = "return-content"
    NO_CONTENT = "return-no-content"


_PREFERENCES: dict[str, Preference] = {each.value: each for each in Preference}


def read_preference(headers: Mapping[str, str], version: str) -> Preference | None:
    """Return the response preference of an insert; None without one, or if the version has none.

    Raises:
        ServiceError: `InvalidHeaderValue`, any other preference.
    """
    wanted = headers.get("prefer")
    if wanted is None or version < PREFER_SINCE:
        return None
    preference = _PREFERENCES.get(wanted) or _PREFERENCES.get(wanted.strip().lower())
    if preference is None:
        raise invalid_header("Prefer", wanted)
    return preference
