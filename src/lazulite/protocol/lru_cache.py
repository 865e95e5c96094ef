"""A bounded memory of what was worked out lately: the recently used entries stay.

Two generations: a hit in the old one moves to the young one, and a full young one becomes the old one.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Caches at most `entries_max` values by key."""

    def __init__(self, entries_max: int) -> None:
        self._generation_max = max(1, entries_max // 2)
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Value | None:
        """Return what is cached, or None."""
        value = self._young.get(key)
        if value is None:
            value = self._old.pop(key, None)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: Key, value: Value) -> None:
        """Cache a value."""
        if len(self._young) >= self._generation_max:
            self._old, self._young = self._young, {}
        self._young[key] = value
