"""Content negotiation: what a client sent, and what it wants to read. Source: reference §4.

Invariants: the answer's format is decided by `$format`, else by Accept, else it is minimal metadata. A client that
accepts anything gets minimal metadata (*unverified* for Azure since 2015-12-11, where Atom is no longer possible).
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import JSON_SINCE
from lazulite.table.payload.formats import JSON, JSON_READER, MINIMAL, Format, Reader

_ODATA_OF_JSON = "3"
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


def _format(media_range: str) -> Format:
    media_type, parameters = _parameters(media_range)
    odata = parameters.get("odata", "")
    if media_type in _JSON_TYPES and odata in _JSON:
        return _JSON[odata]
    if media_type in _ANY_TYPES:
        return MINIMAL
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


def negotiate(accept: str, format_option: str) -> Format:
    """Return the format of the answer.

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
def _negotiate(accept: str, format_option: str) -> Format:
    if format_option:
        return _format(format_option)
    refusal: ServiceError | None = None
    for media_range in sorted(filter(str.strip, accept.split(",")), key=_quality, reverse=True):
        try:
            return _format(media_range)
        except ServiceError as error:
            refusal = refusal or error
    if refusal is not None:
        raise refusal
    return MINIMAL


def format_for_error(accept: str, format_option: str) -> Format:
    """Return the format an error is answered in: the negotiated one, minimal where negotiation itself fails."""
    try:
        return negotiate(accept, format_option)
    except ServiceError:
        return MINIMAL


def require_json_version(version: str, headers: Mapping[str, str]) -> None:
    """Refuse JSON to a client of a time before it: by `x-ms-version`, or by its OData version (the Max one governs).

    Raises:
        ServiceError: `JsonFormatNotSupported`.
    """
    odata = headers.get("maxdataserviceversion") or headers.get("dataserviceversion") or _ODATA_OF_JSON
    if version < JSON_SINCE or odata.strip() < _ODATA_OF_JSON:
        raise ServiceError("JsonFormatNotSupported")


def reader_of(version: str, headers: Mapping[str, str]) -> Reader:
    """Return what reads the body of a request.

    Raises:
        ServiceError: 415, with a code for the format.
    """
    reader = _reader(headers.get("content-type", "")[:HEADER_MAX])
    require_json_version(version, headers)
    return reader


@lru_cache(maxsize=256)
def _reader(content_type: str) -> Reader:
    media_type, parameters = _parameters(content_type)
    if media_type == "application/json":
        if parameters.get("odata") == "verbose":
            raise ServiceError("JsonVerboseFormatNotSupported")
        return JSON_READER
    raise ServiceError("AtomFormatNotSupported" if media_type in _ATOM_TYPES else "MediaTypeNotSupported")


class Preference(StrEnum):
    """The `Prefer` header of an insert, in its OData v3 spelling."""

    CONTENT = "return-content"
    NO_CONTENT = "return-no-content"


def read_preference(headers: Mapping[str, str]) -> Preference | None:
    """Return what an insert should answer with; None if the client did not say.

    Raises:
        ServiceError: `InvalidHeaderValue`, any other preference.
    """
    wanted = headers.get("prefer")
    if wanted is None:
        return None
    try:
        return Preference(wanted.strip().lower())
    except ValueError:
        raise ServiceError(
            "InvalidHeaderValue", details=[("HeaderName", "Prefer"), ("HeaderValue", wanted[:64])]
        ) from None
