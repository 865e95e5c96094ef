"""When the entities of a table expire: a time after their last write, or at a date that each has.

An entity that has expired is absent: for reads by the clock of their process, for writes by the Timestamp that they
get. Its row stays until a sweep removes it. So no clock is asked, and no row is looked into, where nothing expires.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.xml.text import is_name
from lazulite.table.model.edm import DateTime, Value
from lazulite.table.model.property_reader import property_reader
from lazulite.table.model.row import ticks_of
from lazulite.table.names import PROPERTY_NAME_MAX

SECONDS_MAX = 36_500 * 86_400
"""The longest time after a write."""
_SYSTEM = ("PartitionKey", "RowKey", "Timestamp")


class ExpiryError(ValueError):
    """Entities cannot expire so. The text is one line for people."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """When the entities of one table expire: one of the two is set."""

    after_seconds: int = 0
    """How long after its Timestamp."""
    on: str = ""
    """The property that has the time, a DateTime. An entity without it, or with another type, does not expire."""

    def is_over(self, row: bytes, now: int) -> bool:
        """Return whether the entity of a row has expired at a time in ticks."""
        if self.on:
            end = _reader(self.on)(row)
            return type(end) is DateTime and end <= now
        return ticks_of(row) + self.after_seconds * TICKS_PER_SECOND <= now

    def living(self, row: bytes | None, now: int) -> bytes | None:
        """Return a row, or None if it has expired."""
        return None if row is None or self.is_over(row, now) else row

    def predicate(self, matches: Callable[[bytes], bool] | None, now: int) -> Callable[[bytes], bool]:
        """Return a test of rows that have not expired; `matches`: what else is wanted of them."""
        if matches is None:
            return lambda row: not self.is_over(row, now)
        return lambda row: matches(row) and not self.is_over(row, now)

    def fields(self) -> dict[str, str | int]:
        """Return the stored form: a JSON object."""
        return {"on": self.on} if self.on else {"after_seconds": self.after_seconds}

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> Self:
        """Read the stored form.

        Raises:
            TypeError, ValueError: it is damaged.
        """
        after, on = fields.get("after_seconds", 0), fields.get("on", "")
        if not isinstance(after, int) or not isinstance(on, str):
            raise TypeError("not an expiry")
        found = cls(after, on)
        check_expiry(found)
        return found


def check_expiry(expiry: Expiry) -> None:
    """Reject what cannot be declared.

    Raises:
        ExpiryError: it is neither a time that is allowed, nor a property, or it is both.
    """
    on = expiry.on
    if bool(on) == bool(expiry.after_seconds):
        raise ExpiryError("entities expire after a time, or on a property")
    if not on and not 0 < expiry.after_seconds <= SECONDS_MAX:
        raise ExpiryError(f"entities expire after at most {SECONDS_MAX} seconds")
    if on and (on in _SYSTEM or len(on) > PROPERTY_NAME_MAX or not is_name(on)):
        raise ExpiryError(f"entities cannot expire on {on!r}")


@lru_cache(maxsize=256)
def _reader(name: str) -> Callable[[bytes], Value | None]:
    return property_reader(name)
