"""Entities as texts that people edit, without loss.

Invariants: a number never becomes a Python float or a number of a browser; its text is the server's. What a row lacks
is not in `values`: that is neither an empty string nor a null, which the service does not store.
"""

import json
import re
from base64 import b64encode
from binascii import unhexlify
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from lazulite.table.model.edm import BINARY, BOOLEAN, DATETIME, DOUBLE, GUID, INT32, INT64, STRING, TYPES

KEYS = ("PartitionKey", "RowKey")
TIMESTAMP = "Timestamp"
ETAG = "odata.etag"
TYPE_SUFFIX = "@odata.type"
PROPERTIES_MAX = 252
HEX = "hex"
"""Beside the eight types, the way to enter a Binary in hexadecimal digits."""
AS_JSON = "String as JSON"
"""Beside the eight types, a String with characters that no form carries, as JSON with escapes."""
ENTERED_TYPES = ("String", AS_JSON, "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary", HEX)
"""The choices of a form that enters a value."""
TYPE_NAMES: Mapping[str, str] = {
    "String": STRING.name,
    "Int32": INT32.name,
    "Int64": INT64.name,
    "Double": DOUBLE.name,
    "Boolean": BOOLEAN.name,
    "DateTime": DATETIME.name,
    "Guid": GUID.name,
    "Binary": BINARY.name,
}
"""The name of a type on a page -> its name on the wire."""
NUMBERS = frozenset({"Int32", "Int64", "Double"})
_NOT_IN_FORMS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAGE_NAMES = {wire: name for name, wire in TYPE_NAMES.items()}


class _Digits(str):
    """The text of a JSON number."""


class _Integer(_Digits):
    """The text of a JSON number without a fraction."""


class ValueFormatError(ValueError):
    """A text is no value of its type; the text of the error is for people."""


class Value(NamedTuple):
    """A value of a property."""

    type: str
    """One of `TYPE_NAMES`."""
    text: str
    """What people read and edit: of a Binary Base64, of another one the JSON text without quotes."""

    @property
    def literal(self) -> str:
        """The JSON text of the value.

        Raises:
            ValueFormatError: the text is no value of the type.
        """
        edm = TYPES[TYPE_NAMES[self.type]]
        try:
            return edm.literal(_PARSERS.get(self.type, str)(self.text))
        except ValueError:
            raise ValueFormatError(f"{self.text[:80]!r} is no {self.type}: enter {EXAMPLES[self.type]}") from None

    @property
    def bytes(self) -> int:
        """How many bytes a Binary has."""
        return len(self.text) // 4 * 3 - self.text.count("=")


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.strip().lower() == "true"


_PARSERS: Mapping[str, Callable[[str], str | bool | int]] = {
    "Boolean": _boolean,
    "Int32": int,
    "Int64": str.strip,
    "Double": str.strip,
    "DateTime": str.strip,
    "Guid": lambda text: text.strip().strip("{}"),
    "Binary": lambda text: "".join(text.split()),
}
"""Type -> what makes a JSON value of a text."""

EXAMPLES: Mapping[str, str] = {
    "String": "at most 32,768 characters",
    "Int32": "a whole number from -2147483648 to 2147483647",
    "Int64": "a whole number from -9223372036854775808 to 9223372036854775807",
    "Double": "a number such as 1.5, or NaN, Infinity or -Infinity",
    "Boolean": "true or false",
    "DateTime": "a time such as 2026-11-28T09:30:00.1234567Z",
    "Guid": "a GUID such as 01234567-89ab-cdef-0123-456789abcdef",
    "Binary": "Base64 of at most 65,536 bytes",
}
"""Type -> what a value of it looks like."""


def value_of(type_name: str, text: str) -> Value:
    """Return an entered value in its canonical text.

    Args:
        type_name: of `TYPE_NAMES`, or `HEX`.
        text: what was entered.

    Raises:
        ValueFormatError: the text is no value of the type, or there is no such type.
    """
    if type_name == HEX:
        try:
            return Value("Binary", b64encode(unhexlify("".join(text.split()))).decode())
        except ValueError:
            raise ValueFormatError(f"{text[:80]!r} is not made of pairs of hexadecimal digits") from None
    if type_name == AS_JSON:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, str):
            raise ValueFormatError(f"{text[:80]!r} is no JSON text in double quotes")
        return Value("String", found)
    if type_name not in TYPE_NAMES:
        raise ValueFormatError(f"there is no type {type_name[:40]!r}")
    if type_name == "String":
        return Value(type_name, text)
    found = _value(TYPE_NAMES[type_name], _parsed(Value(type_name, text).literal))
    assert found is not None
    return found


def as_entered(value: Value) -> tuple[str, str]:
    """Return the type and the text with which a form shows a value, so that it comes back as it is."""
    if value.type == "String" and _NOT_IN_FORMS.search(value.text):
        return AS_JSON, json.dumps(value.text)
    return value


def with_line_ends(entered: Value, stored: Value | None) -> Value:
    """Return an entered value with the line ends that were meant: a browser sends each of them as CR LF.

    Args:
        entered: of a form.
        stored: what the form showed, if anything.
    """
    if entered.type != "String" or "\r\n" not in entered.text:
        return entered
    if stored is not None and stored.type == "String":
        if _LINE_END.sub("\r\n", stored.text) == entered.text:
            return stored
        if "\r\n" in stored.text:
            return entered
    return Value("String", entered.text.replace("\r\n", "\n"))


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as the service returned it."""

    partition: str
    row: str
    timestamp: str
    etag: str
    values: Mapping[str, Value]
    """The properties besides the keys and `Timestamp`, by name."""

    def text(self, name: str) -> str | None:
        """Return the text of a property, also of a key or of `Timestamp`; None if the entity lacks it."""
        own = {"PartitionKey": self.partition, "RowKey": self.row, TIMESTAMP: self.timestamp}
        if name in own:
            return own[name]
        return self.values[name].text if name in self.values else None


def entities_of(body: bytes) -> Sequence[Entity]:
    """Return the entities of a page of a query."""
    document = _parsed(body)
    assert isinstance(document, dict)
    return [entity_of(each) for each in document["value"]]


def entity_of(document: Mapping[str, object] | bytes) -> Entity:
    """Return an entity of its JSON document."""
    fields = _parsed(document) if isinstance(document, bytes) else document
    assert isinstance(fields, dict)
    values = {}
    for name, given in fields.items():
        if name in (*KEYS, TIMESTAMP) or name.startswith("odata.") or "@" in name:
            continue
        value = _value(fields.get(name + TYPE_SUFFIX), given)
        if value is not None:
            values[name] = value
    partition, row, timestamp, etag = (str(fields.get(name, "")) for name in (*KEYS, TIMESTAMP, ETAG))
    return Entity(partition, row, timestamp, etag, values)


def document_of(partition: str, row: str, values: Mapping[str, Value]) -> bytes:
    """Return the JSON document of an entity that is written, with the type of each value.

    Raises:
        ValueFormatError: a value is not of its type. The message names the property.
    """
    parts = [f"{json.dumps(name)}:{json.dumps(key)}" for name, key in zip(KEYS, (partition, row), strict=True)]
    for name, value in values.items():
        try:
            literal = value.literal
        except ValueFormatError as error:
            raise ValueFormatError(f"{name}: {error}") from None
        parts.append(f'{json.dumps(name + TYPE_SUFFIX)}:"{TYPE_NAMES[value.type]}",{json.dumps(name)}:{literal}')
    return ("{" + ",".join(parts) + "}").encode("utf-8", "surrogatepass")


def path_of(table: str, partition: str, row: str) -> str:
    """Return the path of an entity below its account, percent-encoded."""
    keys = (quote(key.replace("'", "''"), safe="") for key in (partition, row))
    return "{}(PartitionKey='{}',RowKey='{}')".format(table, *keys)


def _value(wire_type: object, given: object) -> Value | None:
    """Return a value of its JSON; None for null."""
    if given is None:
        return None
    if isinstance(given, bool):
        return Value("Boolean", "true" if given else "false")
    if wire_type is None:
        default = INT32.name if isinstance(given, _Integer) else DOUBLE.name
        wire_type = default if isinstance(given, _Digits) else STRING.name
    return Value(_PAGE_NAMES[str(wire_type)], str(given))


def _parsed(text: str | bytes) -> object:
    found: object = json.loads(text, parse_float=_Digits, parse_int=_Integer)
    return found
