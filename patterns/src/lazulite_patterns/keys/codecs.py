"""What a component of a key is made of: a value to a text of the same order, and back.

A codec knows nothing of the characters of keys: `characters` escapes its texts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError

T = TypeVar("T")


class Codec(Protocol[T]):
    """Turns values into texts: injective, and in the order of UTF-16 units as the values are ordered."""

    def encode(self, value: T) -> str:
        """Return the value's text. Raises KeyValueError for a value that has none."""

    def decode(self, text: str) -> T:
        """Return the text's value. Raises KeyFormatError for a text that no value has."""


@dataclass(frozen=True)
class FunctionCodec(Generic[T]):
    """A codec of two functions. It reads a text only if `write` makes it again."""

    kind: type[T] | tuple[type[T], ...]
    write: Callable[[T], str]
    parse: Callable[[str], T]
    reverse: bool = False
    """Whether the greatest value has the first text."""
    timed: bool = False
    """Whether values follow the clock: new ones are beside each other."""

    def encode(self, value: T) -> str:
        """Return the value's text."""
        if not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool):
            raise KeyValueError(f"{value!r} is of the wrong type: {type(value).__name__}")
        return self.write(value)

    def decode(self, text: str) -> T:
        """Return the text's value."""
        try:
            value = self.parse(text)
            again = self.write(value)
        except (ValueError, ArithmeticError) as error:
            raise KeyFormatError(f"{text!r} is not the text of a value") from error
        if again != text:
            raise KeyFormatError(f"{text!r} is not the text of a value")
        return value


@dataclass(frozen=True)
class Integers:
    """Decimal digits of a fixed width; `reverse` puts the greatest first.

    `signed` adds 10 to the width's power: the digit before the others is 1, and 0 for negative values.
    """

    width: int
    signed: bool = False
    reverse: bool = False

    def __post_init__(self) -> None:
        """Check the width."""
        if self.width < 1:
            raise ValueError("an integer has at least one digit")

    @property
    def _offset(self) -> int:
        return int(10**self.width) if self.signed else 0

    @property
    def _first(self) -> int:
        return 1 - 10**self.width if self.signed else 0

    @property
    def _last(self) -> int:
        return int(10**self.width - 1)

    def encode(self, value: int) -> str:
        """Return the value's digits."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise KeyValueError(f"{value!r} is no integer")
        if not self._first <= value <= self._last:
            raise KeyValueError(f"{value} is not from {self._first} to {self._last}")
        number = self._last - value if self.reverse else value + self._offset
        return f"{number:0{self.width + self.signed}d}"

    def decode(self, text: str) -> int:
        """Return the value of the digits."""
        if not re.fullmatch(f"[0-9]{{{self.width + self.signed}}}", text):
            raise KeyFormatError(f"{text!r} is not {self.width + self.signed} digits")
        value = self._last - int(text) if self.reverse else int(text) - self._offset
        if not self._first <= value <= self._last:
            raise KeyFormatError(f"{text!r} is out of range")
        return value


@dataclass(frozen=True)
class Choices:
    """One of some texts. They sort as texts, not as they are listed."""

    values: tuple[str, ...]

    def encode(self, value: str) -> str:
        """Return the value itself."""
        if value not in self.values:
            raise KeyValueError(f"{value!r} is none of {', '.join(self.values)}")
        return value

    def decode(self, text: str) -> str:
        """Return the text itself."""
        if text not in self.values:
            raise KeyFormatError(f"{text!r} is none of {', '.join(self.values)}")
        return text
