"""JSON bodies in: what an entity or a table is to be.

`Timestamp`, `odata.*` members and annotations of what is not there are ignored. The standard decoder reads short bodies
in one call; it builds whatever the body describes. Long or nested ones are read value by value, in steps, and the
decoder reads numbers and pieces of strings only.

Invariants: the two ways give the same; whatever is wrong with the JSON itself is one `InvalidInput`. A step reads at
most one number, or `_PIECE` characters of a string or of blanks; nothing is built from a body that is nested deeper
than `DEPTH_MAX` or has more than `MEMBERS_MAX` values. What steps read is what the standard decoder reads, an object
being the tuple of its members.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out; it is imported so for years
from typing import NoReturn

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.table.model.edm import Json
from lazulite.table.model.entity import MALFORMED, EncodedEntity, Entity, build_entity, encode_entity
from lazulite.table.payload.json_fast_path import ANNOTATION, Members, encode_plain
from lazulite.table.payload.json_pattern import TablePatterns

DEPTH_MAX = 32
"""Brackets open at one time. An entity is flat; a deeper body is rejected in any case; this bounds the work."""

MEMBERS_MAX = 2048
"""Members of all objects and elements of all arrays in a body; annotations and nulls count. An entity has 255
properties, each annotated at most once."""

NUMBER_MAX = 32_768
"""Characters of a number."""

_PIECE = 64 * 1024
_FIRST_PIECE = 1024
"""Most strings are short: the first piece is, too, and each further one has twice the length."""
_ESCAPE_MAX = len(r"\u0000")
_NUMBER = re.compile(r"[-+.0-9eE]++")
_BLANKS = re.compile(r"[ \t\n\r]*+")

_SHORT_BYTES_MAX = 32 * 1024
"""Bodies of up to this many bytes take few milliseconds in one step, whatever they are."""

_SHORTEST_MEMBER = len('"":1')
_BLANK_BYTES = b" \t\r\n"


def _reject_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_reject_constant)
"""The standard decoder. An object becomes the tuple of its members, as opposed to an array, which becomes a list."""

_scan_scalar: Callable[[str, int], tuple[Json, int]] = DECODER.scan_once  # type: ignore[attr-defined]  # as above


def walk(text: str) -> Steps[Json]:
    """Read a text that is one JSON value.

    Raises:
        ValueError: the text is no JSON value, or is nested too deeply.
        ServiceError: `TooManyProperties`.
    """
    walker = _Walker(text)
    yield from walker.blanks()
    value = yield from walker.value(DEPTH_MAX)
    yield from walker.blanks()
    if walker.at != len(text):
        raise ValueError("something follows the value")
    return value


class _Walker:
    """A reader of one text: `at` is where it reads next."""

    def __init__(self, text: str) -> None:
        self.at = 0
        self._text = text
        self._values_left = MEMBERS_MAX

    def value(self, depth: int) -> Steps[Json]:
        """Read a value that may have `depth` brackets open at one time."""
        first = self._text[self.at : self.at + 1]
        if first == '"':
            return (yield from self._string())
        if first in ("{", "["):
            if not depth:
                raise ValueError("nested too deeply")
            return (yield from (self._object(depth - 1) if first == "{" else self._array(depth - 1)))
        number = _NUMBER.match(self._text, self.at, self.at + NUMBER_MAX + 1)
        if number is not None and number.end() - self.at > NUMBER_MAX:
            raise ValueError("a number that is too long")
        try:
            value, self.at = _scan_scalar(self._text, self.at)
        except StopIteration:
            raise ValueError("no value") from None
        return value

    def _object(self, depth: int) -> Steps[Json]:
        members: list[tuple[str, Json]] = []
        more = yield from self._opened("}")
        while more:
            if self._text[self.at : self.at + 1] != '"':
                raise ValueError("no name")
            name = yield from self._string()
            yield from self.blanks()
            self._pass(":")
            yield from self.blanks()
            members.append((name, (yield from self.value(depth))))
            more = yield from self._followed("}")
        return tuple(members)  # type: ignore[return-value]  # as the standard decoder with this hook

    def _array(self, depth: int) -> Steps[Json]:
        elements: list[Json] = []
        more = yield from self._opened("]")
        while more:
            elements.append((yield from self.value(depth)))
            more = yield from self._followed("]")
        return elements

    def _opened(self, closing: str) -> Steps[bool]:
        """Pass an opening bracket; say whether anything stands before the closing one, which is passed if not."""
        self.at += 1
        yield from self.blanks()
        if self._text[self.at : self.at + 1] == closing:
            self.at += 1
            return False
        self._count()
        return True

    def _followed(self, closing: str) -> Steps[bool]:
        """Pass what follows a member or an element; say whether it is another one."""
        yield
        yield from self.blanks()
        if self._text[self.at : self.at + 1] == closing:
            self.at += 1
            return False
        self._pass(",")
        yield from self.blanks()
        self._count()
        return True

    def _count(self) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            raise ServiceError("TooManyProperties")

    def _pass(self, character: str) -> None:
        if self._text[self.at : self.at + 1] != character:
            raise ValueError(f"no {character}")
        self.at += 1

    def blanks(self) -> Steps[None]:
        """Pass blanks, if there are any."""
        while self._text[self.at : self.at + 1] in (" ", "\t", "\n", "\r"):
            blanks = _BLANKS.match(self._text, self.at, self.at + _PIECE)
            assert blanks is not None, "it matches nothing as well"
            self.at = blanks.end()
            yield

    def _string(self) -> Steps[str]:
        """Read a string piece by piece; each piece is closed by a quote of its own."""
        pieces: list[str] = []
        start, size = self.at + 1, _FIRST_PIECE
        while True:
            end = _after_escapes(self._text, start, start + size)
            piece, closed_at = scanstring(self._text[start:end] + '"', 0)
            pieces.append(piece)
            if closed_at <= end - start:
                self.at = start + closed_at
                return _joined(pieces)
            if end == len(self._text):
                raise ValueError("a string without an end")
            start, size = end, min(2 * size, _PIECE)
            yield


def _after_escapes(text: str, start: int, end: int) -> int:
    """Return the last place up to `end` that is not within an escape; at `start` there is none."""
    if end >= len(text):
        return len(text)
    backslash = text.rfind("\\", start, end)
    if backslash <= end - _ESCAPE_MAX:
        return end
    before = text[start:backslash]
    opens_an_escape = (len(before) - len(before.rstrip("\\"))) % 2 == 0
    return backslash if opens_an_escape else end


def _joined(pieces: list[str]) -> str:
    """Return the string of these pieces; of a surrogate pair, each may have a half."""
    if len(pieces) == 1:
        return pieces[0]
    text = "".join(pieces)
    if any("\ud800" <= piece[-1:] <= "\udbff" for piece in pieces):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def _is_plain(body: bytes) -> bool:
    """Tell at a glance that a body is short, not nested too deeply, and has not too many members."""
    if len(body) > _SHORT_BYTES_MAX or (len(body) >= _SHORTEST_MEMBER * MEMBERS_MAX and body.count(b":") > MEMBERS_MAX):
        return False
    # Most are flat, which costs less to tell than the number of brackets.
    flat = body.rfind(b"{") <= 0 and body.find(b"[") < 0
    return flat or body.count(b"{") + body.count(b"[") <= DEPTH_MAX


def read_members(body: bytes) -> Steps[Members]:
    """Return the members of the JSON object that a body is.

    Raises:
        ServiceError: `InvalidInput`, the body is no JSON object; `TooManyProperties`, it is out of all proportion.
    """
    try:
        if _is_plain(body):
            text = body.removeprefix(BOM_UTF8).strip(_BLANK_BYTES).decode()
            members, end = DECODER.raw_decode(text)
            if end != len(text):
                raise ValueError("something follows the value")
        else:
            yield
            text = body.removeprefix(BOM_UTF8).decode()
            yield
            members = yield from walk(text)
    except ValueError:
        raise ServiceError("InvalidInput", MALFORMED) from None
    if not isinstance(members, tuple):
        raise ServiceError("InvalidInput", MALFORMED)
    return members


def read_entity(body: bytes) -> Steps[Entity]:
    """Return the entity that a body describes.

    Raises:
        ServiceError: as `read_members` and `build_entity`; `DuplicatePropertiesSpecified`.
    """
    return (yield from _build((yield from read_members(body))))


def read_encoded(body: bytes, by_name: bool, patterns: TablePatterns) -> Steps[EncodedEntity]:
    """Return the entity that a body describes, encoded as `encode_entity` does.

    Args:
        body: of a write.
        by_name: whether the properties are ordered by name.
        patterns: of the bodies of the table, which learn from this one.

    Raises:
        ServiceError: as `read_entity`.
    """
    members = yield from read_members(body)
    if len(body) <= _SHORT_BYTES_MAX:
        encoded = encode_plain(members, by_name)
        if encoded is not None:
            patterns.learn(body, members)
            return encoded
    return encode_entity((yield from _build(members)), by_name)


def _build(members: Members) -> Steps[Entity]:
    values: dict[str, Json] = {}
    types: dict[str, Json] = {}
    for name, value in members:
        if "@" in name:
            if name.endswith(ANNOTATION):
                types[name.removesuffix(ANNOTATION)] = value
        elif name != "Timestamp" and not name.startswith("odata."):
            if name in values:
                raise ServiceError("DuplicatePropertiesSpecified")
            values[name] = value
    return (yield from build_entity(values, types))


def read_table_name(body: bytes) -> Steps[str]:
    """Return the name that a Create Table asks for.

    Raises:
        ServiceError: `InvalidInput`, there is no name, or there is something else.
    """
    members = yield from read_members(body)
    match [member for member in members if "@" not in member[0] and not member[0].startswith("odata.")]:
        case [("TableName", str(name))] if name:
            return name
    raise ServiceError("InvalidInput", MALFORMED)
