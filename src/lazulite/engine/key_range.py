"""Arithmetic on key ranges."""

from collections.abc import Iterator, Sequence

from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal


def _order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


def clip(ranges: Sequence[KeyRange], within: KeyRange) -> tuple[KeyRange, ...]:
    """Return the intersection of `ranges` with `within`; ascending and disjoint if `ranges` are."""
    return tuple(_clipped(ranges, within))


def _clipped(ranges: Sequence[KeyRange], within: KeyRange) -> Iterator[KeyRange]:
    for lower, upper in ranges:
        first = max(lower, within.lower, key=_order)
        ends = [end for end in (upper, within.upper) if end is not None]
        end = min(ends, key=_order) if ends else None
        if end is None or _order(first) < _order(end):
            yield KeyRange(first, end)
