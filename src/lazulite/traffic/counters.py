"""The counters of traffic, and cells of them over time.

A ring holds a cell for each column of time in which there was traffic: the counters of that minute, ten minutes or
hour. Numbers are 32-bit floats: exact up to 16,777,216 in a cell, and beyond that within 1e-7 of the cell at each
addition.

Invariants: the columns of a ring ascend. None is older than the ring's length when one is added. The sum over the rings
of two ranges is not changed by merging them, nor the sum over the parts of one by dividing it.
"""

from array import array
from collections.abc import Iterator, Sequence
from operator import add
from typing import Final, NamedTuple

COUNTERS: Final = ("read", "scanned", "written", "bytes_in", "bytes_out", "requests", "refused")
"""Entities read by their keys, rows scanned and entities written; bytes of bodies; requests, and those refused."""
READ, SCANNED, WRITTEN, BYTES_IN, BYTES_OUT, REQUESTS, REFUSED = range(len(COUNTERS))
WIDTH: Final = len(COUNTERS)

Counts = Sequence[float]
"""A number for each of `COUNTERS`."""


class Resolution(NamedTuple):
    """The columns of one ring."""

    seconds: int
    """The time of a column."""
    length: int
    """The number of columns that are kept."""


MINUTES, TEN_MINUTES, HOURS = Resolution(60, 360), Resolution(600, 576), Resolution(3600, 672)
RESOLUTIONS: Final = (MINUTES, TEN_MINUTES, HOURS)
"""Minutes of 6 hours, ten minutes of 4 days, hours of 28 days."""


def cost(counts: Counts) -> float:
    """Return what traffic costs as targets count it: entities read, scanned and written, at least one for a request."""
    entities = counts[READ] + counts[SCANNED] + counts[WRITTEN]
    return entities if entities > counts[REQUESTS] else counts[REQUESTS]


class Ring:
    """Cells of one resolution.

    Args:
        resolution: of its columns.
    """

    __slots__ = ("_values", "columns", "resolution")

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        self.columns = array("I")
        """Numbers of columns since the epoch."""
        self._values = array("f")

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, column: int, counts: Counts) -> None:
        """Add to a column; to the latest one if there is a later one already, as when a clock goes back."""
        columns, values = self.columns, self._values
        if columns and column <= columns[-1]:
            for index, count in enumerate(counts, len(values) - WIDTH):
                if count:
                    values[index] += count
            return
        columns.append(column)
        values.extend(counts)
        if columns[0] <= column - self.resolution.length:
            self.expire(column)

    def expire(self, column: int) -> None:
        """Drop the columns that are too old at a column."""
        oldest = column - self.resolution.length
        count = next((index for index, each in enumerate(self.columns) if each > oldest), len(self.columns))
        del self.columns[:count]
        del self._values[: count * WIDTH]

    def cells(self) -> Iterator[tuple[int, Counts]]:
        """Yield each column with its counters."""
        for index, column in enumerate(self.columns):
            yield column, self._values[index * WIDTH : (index + 1) * WIDTH]

    def merge(self, other: "Ring", share: float = 1.0) -> None:
        """Add a share of another ring of this resolution."""
        columns = self.columns
        if columns != other.columns:
            columns = array("I", sorted({*columns, *other.columns}))
        added = (value * share for value in other._at(columns))
        self._values = array("f", map(add, self._at(columns), added))
        self.columns = columns[:]
        if columns:
            self.expire(columns[-1])

    def _at(self, columns: "array[int]") -> "array[float]":
        """Return the counters of these columns, which include its own."""
        if len(columns) == len(self.columns):
            return self._values
        places = {column: place for place, column in enumerate(columns)}
        found = array("f", bytes(4 * WIDTH * len(columns)))
        for index, column in enumerate(self.columns):
            place = places[column]
            found[place * WIDTH : (place + 1) * WIDTH] = self._values[index * WIDTH : (index + 1) * WIDTH]
        return found

    def scale(self, share: float) -> None:
        """Keep a share of each counter."""
        self._values = array("f", [value * share for value in self._values])


class History:
    """The cells of all resolutions."""

    __slots__ = ("rings",)

    def __init__(self) -> None:
        self.rings = tuple(Ring(each) for each in RESOLUTIONS)

    def __len__(self) -> int:
        return sum(map(len, self.rings))

    def add(self, seconds: float, counts: Counts) -> None:
        """Add counters at a Unix time."""
        for ring in self.rings:
            ring.add(int(seconds // ring.resolution.seconds), counts)

    def expire(self, seconds: float) -> None:
        """Drop what is too old at a Unix time."""
        for ring in self.rings:
            ring.expire(int(seconds // ring.resolution.seconds))

    def merge(self, other: "History", share: float = 1.0) -> None:
        """Add a share of another history."""
        for ring, others in zip(self.rings, other.rings, strict=True):
            ring.merge(others, share)

    def scale(self, share: float) -> None:
        """Keep a share of it."""
        for ring in self.rings:
            ring.scale(share)
