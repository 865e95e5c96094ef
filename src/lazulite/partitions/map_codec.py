"""The map of a table as bytes: what a store keeps of it.

Invariants: a map that was encoded is read back as it was. Of any bytes, `decode` returns a map that keeps the
invariants of `ranges`, or raises `MapError`; it takes time and memory in proportion to a bounded size.
"""

import json
from itertools import pairwise
from typing import NoReturn

from lazulite.engine.ordinal import ordinal
from lazulite.partitions.ranges import Range, RangeMap
from lazulite.partitions.targets import RANGES_MAX, SERVERS_MAX

BYTES_MAX = 1 << 20
"""The most bytes of a map. It has room for a thousand ranges with usual keys."""
_FORMAT = 1
_NAME_MAX = 1024
"""The most characters of a PartitionKey, and more than a table's name has."""
_NUMBER_MAX = 1e15
_FIELDS = ("changed", "moving_until", "hot_since", "cold_since", "peak")
_OPTIONAL = frozenset({"hot_since", "cold_since"})


class MapError(ValueError):
    """Bytes are no map, or a map is too large to be stored. The text is one line for people."""


def encode(table: str, found: RangeMap) -> bytes:
    """Return the map of a table as it is stored.

    Raises:
        MapError: it has more than `BYTES_MAX`.
    """
    rows = [[each.start, each.server, *(getattr(each, name) for name in _FIELDS)] for each in found.ranges]
    document = {"format": _FORMAT, "table": table, "version": found.version, "ranges": rows}
    encoded = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if len(encoded) > BYTES_MAX:
        raise MapError(f"a partition map has {len(encoded):,} bytes, of at most {BYTES_MAX:,}")
    return encoded


def decode(document: bytes) -> tuple[str, RangeMap]:
    """Return the name of a table in lower case, and its map.

    Raises:
        MapError: the bytes are no map.
    """
    if len(document) > BYTES_MAX:
        raise MapError(f"a partition map has {len(document):,} bytes, of at most {BYTES_MAX:,}")
    try:
        read = json.loads(document, parse_constant=_reject)
        if read["format"] != _FORMAT:
            raise MapError(f"format {read['format']!r:.20} of a partition map is not known")
        rows = read["ranges"]
        if not 0 < len(rows) <= SERVERS_MAX * RANGES_MAX:
            raise MapError(f"a partition map has {len(rows)} ranges")
        ranges = tuple(_range(*row) for row in rows)
        table, version = _name(read["table"]), _whole(read["version"])
    except MapError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise MapError(f"a partition map cannot be read: {type(error).__name__}") from error
    starts = [ordinal(each.start) for each in ranges]
    if starts[0] or any(left >= right for left, right in pairwise(starts)):
        raise MapError("the ranges of a partition map overlap, or do not begin at the first key")
    return table, RangeMap(ranges, version)


def _range(start: object, server: object, *times: object) -> Range:
    """Return a range of the values of its row.

    Raises:
        ValueError: they are not those of a range.
    """
    values = {
        name: None if value is None and name in _OPTIONAL else _number(value)
        for name, value in zip(_FIELDS, times, strict=True)
    }
    return Range(_name(start), _whole(server, SERVERS_MAX - 1), **values)  # type: ignore[arg-type]  # Only optional ones are None.


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > _NAME_MAX:
        raise ValueError("a name is out of bounds")
    value.encode()  # A lone surrogate is no character of a key.
    return value


def _whole(value: object, most: int = 2**63 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError("an integer is out of bounds")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _NUMBER_MAX:
        raise ValueError("a number is out of bounds")
    return value


def _reject(constant: str) -> NoReturn:
    raise ValueError(constant)
