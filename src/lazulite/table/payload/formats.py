"""The formats of responses, the readers of request bodies, and their negotiation: what a client sent and wants to read.

Invariants: an operation holds a `Format` or a `Reader` and never asks which one it is. `$format` decides the response's
format where OData 3.0 is spoken, else Accept does, else the version: Atom as long as there is Atom, unless the
request's body is JSON. Since 2015-12-11 a client that accepts anything gets minimal metadata (*unverified*; Atom is no
longer possible). JSON needs OData 3.0, so the version that brought that and no lower one in the OData headers, of which
the Max one governs. Source: reference §4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial

from lazulite.engine.contract import Clock
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.steps import Steps
from lazulite.table.model.entity import EncodedEntity, Entity, encode_entity
from lazulite.table.model.row import Property
from lazulite.table.payload import atom, json_reader, json_writer
from lazulite.table.payload.atom import AtomEntityWriter, AtomTableWriter
from lazulite.table.payload.interfaces import EntityWriter, TableWriter
from lazulite.table.payload.json_pattern import MatchedEntity, TablePatterns
from lazulite.table.payload.json_writer import JsonEntityWriter, JsonTableWriter, MetadataLevel
from lazulite.table.versions import ATOM_BEFORE, PREFER_SINCE, odata_version

_CACHED_LENGTH_MAX = 256
"""Clients repeat the account's URL on each request; the writer for a URL of up to this many characters is cached."""

_ODATA_OF_JSON = 3
HEADER_MAX = 1024
"""Characters of a header that are looked at."""
_ATOM_TYPES = frozenset({"application/atom+xml", "application/xml", "text/xml", "atom", "atom+xml"})
_JSON_TYPES = frozenset({"application/json", "json"})
_ANY_TYPES = frozenset({"*/*", "application/*", "*"})


@dataclass(frozen=True, slots=True)
class Format:
    """A format of responses. Its media types have no blanks, as the service writes them."""

    entity_type: str
    """The Content-Type of one entity or table."""
    feed_type: str
    """The Content-Type of a page of them."""
    error_type: str
    """The Content-Type of an error."""
    batch_error_type: str
    """The Content-Type of an error inside a batch."""
    odata_version: int
    """The version of OData that defines the format."""
    entity_writer: Callable[[str, str, str, Clock, Sequence[str] | None, str], EntityWriter]
    """Takes the account's base URL and name, the table's name as the request wrote it, the clock, the names selected in
    order (None for all) and the raw `$select` text."""
    table_writer: Callable[[str, str, Clock], TableWriter]
    """Takes the account's base URL and name, and the clock."""
    check: Callable[[str, str, Mapping[str, Property]], Steps[None]] | None
    """Takes an entity's two keys and its properties; rejects an entity that the writers could not serialize once it is
    stored. None: the format has every entity."""
    error: Callable[[ServiceError, str, str], bytes]
    """Takes an error, the request's id and the time with all seven digits of its fraction to the payload."""
    writer_lasts: bool
    """Whether an entity writer serves later requests as well: it holds no time."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A format of request bodies, which are read in steps."""

    usual: Callable[[TablePatterns, bytes, bool], MatchedEntity | None]
    """As `encoded`, in one short step; None if the body matches no pattern."""
    entity: Callable[[bytes], Steps[Entity]]
    encoded: Callable[[bytes, bool, TablePatterns], Steps[EncodedEntity]]
    """From a body to its entity, ready to be stored. Takes the body, whether the properties are ordered by name, and
    the patterns of the table's bodies."""
    table_name: Callable[[bytes], Steps[str]]
    """From the body of a Create Table to the table's name."""


def _json(level: MetadataLevel) -> Format:
    cached = lru_cache(maxsize=256)(partial(JsonEntityWriter, level))

    def entity_writer(
        base: str, account: str, table: str, _: Clock, select: Sequence[str] | None, select_text: str
    ) -> JsonEntityWriter:
        if select is None and len(base) <= _CACHED_LENGTH_MAX:
            return cached(base, account, table)
        return JsonEntityWriter(level, base, account, table, select, select_text)

    def table_writer(base: str, account: str, _: Clock) -> JsonTableWriter:
        return JsonTableWriter(level, base, account)

    content_type = f"application/json;odata={level.value};streaming=true;charset=utf-8"
    types = (content_type,) * 4
    return Format(*types, 3, entity_writer, table_writer, None, json_writer.error_payload, True)


def _atom_entity_writer(
    base: str, account: str, table: str, clock: Clock, select: Sequence[str] | None, _: str
) -> AtomEntityWriter:
    return AtomEntityWriter(base, account, table, clock(), select)


def _atom_table_writer(base: str, account: str, clock: Clock) -> AtomTableWriter:
    return AtomTableWriter(base, account, clock())


JSON = {level: _json(level) for level in MetadataLevel}
MINIMAL = JSON[MetadataLevel.MINIMAL]
ATOM = Format(
    "application/atom+xml;type=entry;charset=utf-8",
    "application/atom+xml;type=feed;charset=utf-8",
    "application/xml;charset=utf-8",
    "application/xml",
    1,
    _atom_entity_writer,
    _atom_table_writer,
    atom.check,
    atom.error_payload,
    False,
)


def _atom_encoded(body: bytes, by_name: bool, _: TablePatterns) -> Steps[EncodedEntity]:
    return encode_entity((yield from atom.read_entity(body)), by_name)


JSON_READER = Reader(
    TablePatterns.encode, json_reader.read_entity, json_reader.read_encoded, json_reader.read_table_name
)
ATOM_READER = Reader(lambda *_: None, atom.read_entity, _atom_encoded, atom.read_table_name)


_JSON = {"": MINIMAL} | {level.value: each for level, each in JSON.items()}


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
