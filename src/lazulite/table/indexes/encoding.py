r"""Values of properties as text in the order of values, and the entries of an index that are made of it.

A value is encoded as one letter for its class, then its text:

    b   Boolean    0 or 1
    d   DateTime   its ticks above -2**63, 20 digits
    g   Guid       its canonical text
    n   a number   the greatest Double that is not above it: 16 hexadecimal digits, in the order of Doubles; then what
                   an Int64 has beyond that: 3 hexadecimal digits
    s   String     its first 256 code units, escaped, then U+0000
    x   Binary     its first 256 bytes, each as the character two above it, then U+0000
    z   NaN        nothing
    -   no value   nothing; only behind another value

Escaped text has the code unit U+0000 as U+0001 U+0001, U+0001 as U+0001 U+0002, and each from U+D800 on as U+E000 and
the character of its distance to U+D7FF. So it has no surrogates, which keys may not have, and no U+0000.

Invariants: no encoded value is the beginning of another one. Two values that a filter compares have the order of their
encoded values; values beyond their first 256 units or bytes have the same one. Int32, Int64 and Double are one class,
as they are to filters.

An *entry* is a key. In the scope of a partition it has the partition of its entity, and as its row the encoded values
and the entity's row. In the scope of a table its partition is the encoded values, and its row is the entity's
partition, escaped, U+0000, and its row. So entries of equal values have the order of their entities in either scope.
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Any

from lazulite.engine.contract import Key
from lazulite.table.model.edm import DateTime, Guid, Value

UNITS_MAX = 256
"""Code units of a String, or bytes of a Binary, that are encoded."""
ABSENT = "-"
"""What is encoded for a second property that an entity does not have."""
NUMBER, DATETIME, STRING, NOT_A_NUMBER = "n", "d", "s", "z"
LESS_THAN_EMPTY = (DATETIME, NUMBER, NOT_A_NUMBER)
"""The classes with values that are less than the empty string."""

_ESCAPED = re.compile("[\0\1\ud800-\U0010ffff]")
_UNESCAPED = re.compile("\1([\1\2])|\ue000(.)", re.DOTALL)
_END = "\0"
_ABOVE = "\ue000"
_BEFORE_SURROGATES = 0xD7FF
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_VALUE = re.compile("b[01]|d[0-9]{20}|g[0-9a-f-]{36}|n[0-9a-f]{19}|[sx][^\0]*\0|z|-")


def escape(text: str) -> str:
    """Return text without U+0000 and without surrogates, in the same order."""
    return text if _ESCAPED.search(text) is None else _ESCAPED.sub(_escape, text)


def unescape(text: str) -> str:
    """Return what `escape` was given, but for halves of a surrogate pair that stood apart: these are joined."""
    if "\1" not in text and _ABOVE not in text:
        return text
    units = _UNESCAPED.sub(_unescape, text)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encode_value(value: Value | None) -> str:
    """Return a value in the order of values; see the module."""
    if value is None:
        return ABSENT
    return _ENCODERS[type(value)](value)


def is_exact(value: Value) -> bool:
    """Return whether no other value has the same encoding."""
    if isinstance(value, bytes):
        return len(value) < UNITS_MAX
    return not isinstance(value, str) or len(value.encode("utf-16-le", "surrogatepass")) < 2 * UNITS_MAX


def entry_in_partition(values: str, key: Key) -> Key:
    """Return the entry of an entity in an index of each partition, given its encoded values."""
    return key[0], values + key[1]


def entry_in_table(values: str, key: Key) -> Key:
    """Return the entry of an entity in an index of the table, given its encoded values."""
    return values, f"{escape(key[0])}{_END}{key[1]}"


def row_of_entity(key: Key) -> str:
    """Return the row of the entry of an entity in an index of the table."""
    return f"{escape(key[0])}{_END}{key[1]}"


def entity_of(entry: Key, properties: int, *, in_table: bool) -> Key:
    """Return the key of the entity that an entry names.

    Args:
        entry: the key of the entry.
        properties: how many the index has.
        in_table: whether the scope of the index is the table.

    Raises:
        ValueError: the key is no entry.
    """
    if in_table:
        partition, _, row = entry[1].partition(_END)
        return unescape(partition), row
    return entry[0], entry[1][end_of_values(entry[1], properties) :]


def end_of_values(text: str, count: int) -> int:
    """Return where the first encoded values of a text end.

    Raises:
        ValueError: it does not begin with so many.
    """
    end = 0
    for _ in range(count):
        match = _VALUE.match(text, end)
        if match is None:
            raise ValueError("not an entry of an index")
        end = match.end()
    return end


def _escape(match: "re.Match[str]") -> str:
    character = match[0]
    if character < "\2":
        return "\1" + chr(ord(character) + 1)
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join([_ABOVE + chr(unit - _BEFORE_SURROGATES) for unit in struct.unpack(f">{len(units) // 2}H", units)])


def _unescape(match: "re.Match[str]") -> str:
    low, above = match.groups()
    return chr(ord(low) - 1) if low is not None else chr(ord(above) + _BEFORE_SURROGATES)


def _encode_string(value: str) -> str:
    if len(value) > UNITS_MAX // 2:
        value = value.encode("utf-16-le", "surrogatepass")[: 2 * UNITS_MAX].decode("utf-16-le", "surrogatepass")
    return f"{STRING}{escape(value)}{_END}"


def _encode_number(value: float) -> str:
    floor = float(value)
    if math.isnan(floor):
        return NOT_A_NUMBER
    if floor > value:
        floor = math.nextafter(floor, -math.inf)
    rest = int(value) - int(floor) if isinstance(value, int) else 0
    [bits] = struct.unpack(">Q", struct.pack(">d", floor + 0.0))  # Adding 0.0 makes one zero of the two.
    ordered = bits ^ (_ALL if bits & _SIGN else _SIGN)
    return f"{NUMBER}{ordered:016x}{rest:03x}"


_ENCODERS: dict[type[Value], Callable[[Any], str]] = {
    str: _encode_string,
    bool: lambda value: "b1" if value else "b0",
    int: _encode_number,
    float: _encode_number,
    DateTime: lambda value: f"{DATETIME}{value + _SIGN:020}",
    Guid: lambda value: f"g{value}",
    bytes: lambda value: f"x{''.join([chr(2 + byte) for byte in value[:UNITS_MAX]])}{_END}",
}
