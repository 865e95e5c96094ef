"""Content negotiation: what a client sent, and what it wants to read. Source: reference §4.

Invariants: the answer's level is decided by `$format`, else by Accept, else it is minimal metadata. A client that
accepts anything gets minimal metadata (*unverified* for Azure since 2015-12-11, where Atom is no longer possible).
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.odata_version import odata_version
from lazulite.protocol.version import JSON_SINCE, PREFER_SINCE

_ODATA_OF_JSON = 3
HEADER_MAX = 1024
"""Characters of a header that are looked at."""


class MetadataLevel(StrEnum):
    """How much OData metadata a payload carries; the value is its spelling in a media type."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


_LEVELS = {"": MetadataLevel.MINIMAL} | {level.value: level for level in MetadataLevel}
_ATOM_TYPES = frozenset({"application/atom+xml", "application/xml", "text/xml", "atom", "atom+xml"})
_JSON_TYPES = frozenset({"application/json", "json"})
_ANY_TYPES = frozenset({"*/*", "application/*", "*"})

CONTENT_TYPES = {level: f"application/json;odata={level.value};streaming=true;charset=utf-8" for level in MetadataLevel}
"""The Content-Type of an answer at each level, written without blanks as the service does."""


def _parameters(media_range: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = media_range.split(";")
    pairs = (part.partition("=") for part in rest)
    return media_type.strip().lower(), {
        name.strip().lower(): value.strip().strip('"').lower() for name, _, value in pairs
    }


def _level(media_range: str) -> MetadataLevel:
    media_type, parameters = _parameters(media_range)
    odata = parameters.get("odata", "")
    if media_type in _JSON_TYPES and odata in _LEVELS:
        return _LEVELS[odata]
    if media_type in _ANY_TYPES:
        return MetadataLevel.MINIMAL
    if media_type in _JSON_TYPES and odata == "verbose":
        raise ServiceError("JsonVerboseFormatNotSupported")
    if media_type in _ATOM_TYPES:
        raise ServiceError("AtomFormatNotSupported")
    raise ServiceError("MediaTypeNotSupported")


def _quality(media_range: str) -> float:
    try:
        return float(_parameters(media_range)[1].get("q", "1"))
    except ValueError:
        return 0.0


def negotiate(accept: str, format_option: str) -> MetadataLevel:
    """Return the level of the answer.

    Args:
        accept: the Accept header, "" if absent; what stands beyond `HEADER_MAX` characters is not looked at.
        format_option: the `$format` option, decoded, "" if absent.

    Raises:
        ServiceError: 415 with the code of the first format asked for, if none of them can be had.
    """
    if len(accept) > HEADER_MAX:
        accept = accept[:HEADER_MAX].rpartition(",")[0]
    return _negotiate(accept, format_option[:HEADER_MAX])


@lru_cache(maxsize=256)
def _negotiate(accept: str, format_option: str) -> MetadataLevel:
    if format_option:
        return _level(format_option)
    refusal: ServiceError | None = None
    for media_range in sorted(filter(str.strip, accept.split(",")), key=_quality, reverse=True):
        try:
            return _level(media_range)
        except ServiceError as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    return MetadataLevel.MINIMAL


def level_for_error(accept: str, format_option: str) -> MetadataLevel:
    """Return the level an error is answered at: the negotiated one, minimal where negotiation itself fails."""
    try:
        return negotiate(accept, format_option)
    except ServiceError:
        return MetadataLevel.MINIMAL


def require_json_version(version: str, headers: Mapping[str, str]) -> None:
    """Refuse JSON to a client of a time before it: by `x-ms-version`, or by its OData version (the Max one governs).

    Raises:
        ServiceError: `JsonFormatNotSupported`.
    """
    if version < JSON_SINCE or odata_version(version, headers) < _ODATA_OF_JSON:
        raise ServiceError("JsonFormatNotSupported")


def check_body_type(content_type: str) -> None:
    """Refuse a body that is not JSON.

    Raises:
        ServiceError: 415, `AtomFormatNotSupported` or `MediaTypeNotSupported`.
    """
    _check_body_type(content_type[:HEADER_MAX])


@lru_cache(maxsize=256)
def _check_body_type(content_type: str) -> None:
    media_type, parameters = _parameters(content_type)
    if media_type == "application/json":
        if parameters.get("odata") == "verbose":
            raise ServiceError("JsonVerboseFormatNotSupported")
        return
    raise ServiceError("AtomFormatNotSupported" if media_type in _ATOM_TYPES else "MediaTypeNotSupported")


class Preference(StrEnum):
    """The `Prefer` header of an insert, in its OData v3 spelling."""

    CONTENT = "return-content"
    NO_CONTENT = "return-no-content"


def read_preference(headers: Mapping[str, str], version: str) -> Preference | None:
    """Return what an insert should answer with; None if the client did not say, or could not at its version.

    Raises:
        ServiceError: `InvalidHeaderValue`, any other preference.
    """
    wanted = headers.get("prefer")
    if wanted is None or version < PREFER_SINCE:
        return None
    try:
        return Preference(wanted.strip().lower())
    except ValueError:
        raise ServiceError(
            "InvalidHeaderValue", details=[("HeaderName", "Prefer"), ("HeaderValue", wanted[:64])]
        ) from None
