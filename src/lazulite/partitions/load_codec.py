"""What a process counted of all tables, as bytes, for the process that balances.

Invariants: of any bytes, `decode` returns loads or raises `LoadError`. The size is bounded: what does not fit are the
ranges with the least load, and all samples but the latest of a range.
"""

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeAlias

from lazulite.partitions.load import RangeLoad
from lazulite.partitions.ranges import TableKey

BYTES_MAX = 1 << 20
SAMPLES_MAX = 32
"""The samples of a range that are told: several processes tell theirs."""

Loads: TypeAlias = Mapping[TableKey, Mapping[str, RangeLoad]]


class LoadError(ValueError):
    """Bytes are no loads. The text is one line for people."""


def encode(loads: Loads) -> bytes:
    """Return loads as they are told to other processes."""
    found = sorted(
        ((load, table, start) for table, ranges in loads.items() for start, load in ranges.items()),
        key=lambda each: -each[0].operations,
    )
    lines, room = list[bytes](), BYTES_MAX
    for load, table, start in found:
        samples = list(islice(reversed(load.samples), SAMPLES_MAX))[::-1]
        row = [*table, start, load.operations, load.bytes_written, samples]
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return b"\n".join(lines)


def decode(document: bytes) -> dict[TableKey, dict[str, RangeLoad]]:
    """Return the loads of their bytes.

    Raises:
        LoadError: the bytes are none.
    """
    loads: dict[TableKey, dict[str, RangeLoad]] = {}
    if len(document) > BYTES_MAX:
        raise LoadError(f"loads have {len(document):,} bytes, of at most {BYTES_MAX:,}")
    for line in document.splitlines() if document else ():
        try:
            account, table, space, start, operations, written, samples = json.loads(line)
            load = RangeLoad(_number(operations), int(_number(written)))
            load.samples.extend(map(_text, samples))
            loads.setdefault(TableKey(_text(account), _text(table), int(space)), {})[_text(start)] = load
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise LoadError(f"loads cannot be read: {type(error).__name__}") from error
    return loads


def added(loads: Loads, others: Loads) -> dict[TableKey, dict[str, RangeLoad]]:
    """Return the sum of what two processes have counted."""
    return _joined(loads, others, lambda one, other: one.bytes_written + other.bytes_written)


def continued(earlier: Loads, later: Loads) -> dict[TableKey, dict[str, RangeLoad]]:
    """Return what one process has counted in two rounds. The sizes of ranges are those of the later one."""
    return _joined(earlier, later, lambda _, load: load.bytes_written)


def _joined(
    loads: Loads, others: Loads, size: Callable[[RangeLoad, RangeLoad], int]
) -> dict[TableKey, dict[str, RangeLoad]]:
    total = {table: dict(ranges) for table, ranges in loads.items()}
    for table, ranges in others.items():
        found = total.setdefault(table, {})
        for start, load in ranges.items():
            known = found.get(start, RangeLoad())
            found[start] = both = RangeLoad(known.operations + load.operations, size(known, load))
            both.samples.extend([*known.samples, *load.samples])
    return total


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    value.encode()  # A lone surrogate is no character of a key.
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e18 <= value <= 1e18:
        raise ValueError("number")
    return value
