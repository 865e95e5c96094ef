"""Keys as Microsoft's design guide writes them: components with a separator between, and nothing escaped."""

from typing import TYPE_CHECKING, Generic, TypeVar

from lazulite_patterns.keys.characters import UNITS_MAX, KeyFormatError, KeyValueError, plain, units
from lazulite_patterns.keys.key_range import KeyRange

if TYPE_CHECKING:
    from lazulite_patterns.keys.key import Key

K = TypeVar("K", bound="Key")


class GuideStyle(Generic[K]):
    """Writes and reads keys of one class in the guide's style. Injective; a prefix is exact; no order is promised."""

    def __init__(self, kind: type[K], sep: str) -> None:
        """Take a class of keys and a separator.

        Raises:
            ValueError: the separator is not one character that a key may have.
        """
        if len(sep) != 1 or not plain(sep):
            raise ValueError(f"{sep!r} is no separator: one character that a key may have")
        self._kind = kind
        self._sep = sep

    def encode(self, key: K) -> str:
        """Return the text of a key.

        Raises:
            KeyValueError: a component has the separator or a character that would need an escape, or the key is longer
                than 1,024 UTF-16 units.
        """
        text = self._sep.join(self._texts(dict(key.__dict__)))
        if units(text) > UNITS_MAX:
            raise KeyValueError(f"{self._kind.__name__}: the key has {units(text)} units, {UNITS_MAX} are allowed")
        return text

    def decode(self, text: str) -> K:
        """Return the key of a text.

        Raises:
            KeyFormatError: no key has that text.
        """
        components = self._kind.layout.components
        parts = text.split(self._sep, len(components) - 1)
        if len(parts) != len(components):
            raise KeyFormatError(f"{self._kind.__name__}: {text!r} has {len(parts)} components, not {len(components)}")
        if not plain(text):
            raise KeyFormatError(f"{self._kind.__name__}: {text!r} has characters that a key has not")
        names = [name for name, _ in components]
        key = self._kind.__new__(self._kind)
        key.__dict__.update(self._kind.layout.decoded(dict(zip(names, parts, strict=True))))
        return key

    def prefix(self, **values: object) -> KeyRange:
        """Return the range of the keys with these first components.

        Raises:
            KeyValueError: these are not the first components, or a value has the separator.
        """
        names = [name for name, each in self._kind.layout.components]
        constants = {name: each.constant for name, each in self._kind.layout.components if each.constant is not None}
        known = {**constants, **values}
        count = next((index for index, name in enumerate(names) if name not in known), len(names))
        if set(values) - set(names[:count]):
            raise KeyValueError(f"{self._kind.__name__}: a prefix has the first components, without a gap")
        texts = self._texts({name: known[name] for name in names[:count]})
        if count == len(names):
            whole = self._sep.join(texts)
            return KeyRange.of(whole, whole)
        return KeyRange.starting_with("".join(text + self._sep for text in texts))

    def _texts(self, values: dict[str, object]) -> list[str]:
        components = self._kind.layout.components
        texts = []
        for name, each in components:
            if name not in values:
                continue
            text = each.codec.encode(values[name])
            last = name == components[-1][0]
            if not plain(text) or (self._sep in text and not last):
                raise KeyValueError(f"{self._kind.__name__}.{name}: {text!r} has the separator, or needs an escape")
            texts.append(text)
        return texts
