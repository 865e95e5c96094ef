"""The components of a key in order, and the key's text made of them."""

from collections.abc import Mapping
from typing import NamedTuple

from lazulite_patterns.keys.characters import (
    MARK,
    SEPARATOR,
    UNITS_MAX,
    KeyFormatError,
    KeyValueError,
    escape,
    unescape,
    units,
)
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.key_range import KeyRange


class Layout(NamedTuple):
    """Names and components of a kind of key. `owner` is named in messages."""

    owner: str
    components: tuple[tuple[str, Component], ...]

    def text(self, values: Mapping[str, object]) -> str:
        """Return the text of a key.

        Raises:
            KeyValueError: a component has no such value, or the key is longer than 1,024 units.
        """
        joined = SEPARATOR.join(self._escaped(index, values) for index in range(len(self.components)))
        if units(joined) > UNITS_MAX:
            raise KeyValueError(f"{self.owner}: the key has {units(joined)} units, {UNITS_MAX} are allowed")
        return joined

    def values(self, text: str) -> dict[str, object]:
        """Return the values of a key's text.

        Raises:
            KeyFormatError: `text` makes no such key.
        """
        if units(text) > UNITS_MAX:
            raise KeyFormatError(f"{self.owner}: a key has {UNITS_MAX} UTF-16 units at most")
        parts = self._split(text)
        if len(parts) != len(self.components):
            raise KeyFormatError(f"{self.owner}: {text!r} has {len(parts)} components, not {len(self.components)}")
        last = len(parts) - 1
        texts = {}
        for index, (part, (name, _)) in enumerate(zip(parts, self.components, strict=True)):
            try:
                texts[name] = unescape(part, last=index == last)
            except KeyFormatError as error:
                raise KeyFormatError(f"{self.owner}.{name}: {error}") from error
        return self.decoded(texts)

    def decoded(self, texts: Mapping[str, str]) -> dict[str, object]:
        """Return the values of the components' texts.

        Raises:
            KeyFormatError: a text is of no value, or a bucket is not the computed one.
        """
        found = {}
        for name, each in self.components:
            try:
                found[name] = each.codec.decode(texts[name])
            except KeyFormatError as error:
                raise KeyFormatError(f"{self.owner}.{name}: {error}") from error
        for name, each in self.components:
            if each.source is None or each.source not in texts or each.compute is None:
                continue
            if each.compute(texts[each.source]) != found[name]:
                raise KeyFormatError(f"{self.owner}.{name}: {found[name]!r} is not computed from {each.source}")
        return found

    def computed(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the values that the caller does not give: constants and buckets."""
        values: dict[str, object] = {}
        components = dict(self.components)
        for name, each in self.components:
            if each.constant is not None:
                values[name] = each.constant
            elif each.source is not None and each.compute is not None:
                source = components[each.source]
                values[name] = each.compute(self._encoded(each.source, source, given[each.source]))
            elif each.compute is not None:
                values[name] = each.compute("")
        return values

    def prefix(self, values: Mapping[str, object], starting_with: str | None = None) -> KeyRange:
        """Return exactly the keys that have these first components, and the next one beginning with a text.

        Raises:
            KeyValueError: the components are not the first ones, or have no such values.
        """
        names = [name for name, _ in self.components]
        constants = {name: each.constant for name, each in self.components if each.constant is not None}
        known = {**constants, **values}
        count = next((index for index, name in enumerate(names) if name not in known), len(names))
        if missing := [name for name in values if name not in names[:count]]:
            raise KeyValueError(f"{self.owner}.{missing[0]}: a prefix has the first components, without a gap")
        if count == len(names):
            if starting_with is not None:
                raise KeyValueError(f"{self.owner}: all components are given, none is left to begin with a text")
            whole = self.text(known)
            return KeyRange.of(whole, whole)
        start = "".join(self._escaped(index, known) + SEPARATOR for index in range(count))
        if starting_with is not None:
            start += escape(starting_with, last=count == len(names) - 1)
        return KeyRange.starting_with(start)

    def _split(self, text: str) -> list[str]:
        """Return the escaped components: the separator is a `!` that no mark follows; the last may contain some."""
        parts: list[str] = []
        start, count = 0, len(self.components)
        position = text.find(SEPARATOR)
        while position >= 0 and len(parts) < count - 1:
            if text[position + 1 : position + 2] != MARK:
                parts.append(text[start:position])
                start = position + 1
            position = text.find(SEPARATOR, position + 1)
        return [*parts, text[start:]]

    def _encoded(self, name: str, each: Component, value: object) -> str:
        try:
            return each.codec.encode(value)
        except KeyValueError as error:
            raise KeyValueError(f"{self.owner}.{name}: {error}") from error

    def _escaped(self, index: int, values: Mapping[str, object]) -> str:
        name, each = self.components[index]
        text = self._encoded(name, each, values[name])
        try:
            return escape(text, last=index == len(self.components) - 1)
        except KeyValueError as error:
            raise KeyValueError(f"{self.owner}.{name}: {error}") from error
