"""The components of a key, as a class body names them.

Each function is typed as the value, so that `year: int = integer(4)` passes type checks; it returns a `Component`.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - `date` is a component.
from datetime import datetime
from decimal import Decimal
from random import SystemRandom
from typing import Literal, TypeVar, cast
from uuid import UUID

from lazulite_patterns.keys.codecs import Choices, Codec, FunctionCodec, Integers
from lazulite_patterns.keys.identifiers import OCTETS, decimal_codec, uuid_codec
from lazulite_patterns.keys.times import Ticks, date_codec, exact_tick_codec, tick_codec

T = TypeVar("T")
_TEXT = FunctionCodec(str, str, str)


@dataclass(frozen=True)
class Component:
    """One part of a key: a codec, and where its value comes from if the caller does not give it."""

    codec: Codec[object]
    constant: str | None = None
    """The value, if it is always this one."""
    source: str | None = None
    """The field that the value is computed from."""
    compute: Callable[[str], object] | None = None
    """The value from the text of the source; from nothing if there is none."""

    count: int | None = None
    """Buckets, if it is the number of one."""

    @property
    def given(self) -> bool:
        """Whether the caller gives the value."""
        return self.constant is None and self.compute is None


def custom(codec: Codec[T]) -> T:
    """Declare a component of a codec of one's own, which must keep the order of values."""
    return cast(T, Component(cast(Codec[object], codec)))


def text() -> str:
    """Declare a text of any length. It sorts by UTF-16 units."""
    return custom(_TEXT)


def integer(width: int, *, signed: bool = False, reverse: bool = False) -> int:
    """Declare an integer of at most `width` digits, padded with zeros; `reverse` sorts the greatest first."""
    return custom(Integers(width, signed, reverse))


def ticks() -> datetime:
    """Declare a time with a zone, as 19 digits of .NET ticks; oldest first."""
    return custom(tick_codec(reverse=False))


def reverse_ticks() -> datetime:
    """Declare a time with a zone, as 19 digits that count down; newest first, as in the guide's log tail."""
    return custom(tick_codec(reverse=True))


def exact_ticks(*, reverse: bool = False) -> Ticks:
    """Declare a time of seven digits after the second, as `Ticks`."""
    return custom(exact_tick_codec(reverse=reverse))


def date() -> Date:
    """Declare a date, as `2014-07-31`."""
    return custom(date_codec(reverse=False))


def reverse_date() -> Date:
    """Declare a date, latest first: 9999 less the year, 12 less the month, 31 less the day."""
    return custom(date_codec(reverse=True))


def uuid() -> UUID:
    """Declare a UUID, in lower case with hyphens."""
    return custom(uuid_codec())


def uuid7() -> UUID:
    """Declare a UUID of version 7, which sorts by the time at which it was made. `new_uuid7` makes one."""
    return custom(uuid_codec(7))


def octets() -> bytes:
    """Declare octets, as base32hex."""
    return custom(OCTETS)


def choice(*values: str) -> str:
    """Declare one of some texts. They sort as texts."""
    return custom(Choices(values))


def decimal(digits: int, scale: int) -> Decimal:
    """Declare a decimal number of at most `digits` digits, `scale` of them after the point."""
    return custom(decimal_codec(digits, scale))


def literal(value: str, *, init: Literal[False] = False) -> str:  # noqa: ARG001 - read by type checkers
    """Declare a text that is the same in every key, such as the kind of the entity. The caller does not give it."""
    return cast(str, Component(cast(Codec[object], Choices((value,))), constant=value))


def bucket(count: int, *, by: str | None = None, init: Literal[False] = False) -> int:  # noqa: ARG001 - see `literal`
    """Declare the number of a bucket, from 0: keys that would all be appended are spread over partitions.

    Args:
        count: buckets. A change of it makes keys of before unreadable.
        by: the field whose text selects the bucket, by CRC-32; None selects one at random for each new key.
        init: the caller does not give the value.
    """
    codec = cast(Codec[object], Integers(len(str(count - 1))))
    if count < 1:
        raise ValueError("there is at least one bucket")
    if by is None:
        return cast(int, Component(codec, compute=lambda _: SystemRandom().randrange(count), count=count))
    return cast(int, Component(codec, source=by, compute=lambda text: zlib.crc32(text.encode()) % count, count=count))


_OF_TYPES: dict[object, object] = {
    str: text(),
    int: integer(19, signed=True),
    datetime: ticks(),
    Date: date(),
    UUID: uuid(),
    bytes: octets(),
}


def of_type(kind: object) -> Component | None:
    """Return the component of any value of a type; None if the type has none."""
    found = _OF_TYPES.get(kind)
    return found if isinstance(found, Component) else None
