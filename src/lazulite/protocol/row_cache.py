"""A memory of rows that only change through it: what a service looks up on every request.

Invariants: what is remembered is what the engine holds. A row is forgotten in the step that changes it, and never
remembered from a read that began before such a step. Where a change neither succeeded nor was refused (the disk failed,
the caller was cancelled), nobody knows whether it will take effect: such a row is doubtful, and read through until a
later change of it succeeds.

Where other processes change rows as well, each such change is announced before it can be seen (`hold`) and over when
its outcome is known (`release`); between the two the row is read through.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from lazulite.protocol.errors import ServiceError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRIES_MAX = 10_000


class RowCache(Generic[Key, Value]):
    """Remembers decoded rows by key; at most `entries_max` of them, and as many doubtful keys."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._entries: dict[Key, Value] = {}
        self._doubtful: set[Key] = set()
        self._held: set[Key] = set()
        self._changes = 0

    def get(self, key: Key) -> Value | None:
        """Return what is remembered."""
        return self._entries.get(key)

    def before_read(self) -> int:
        """Return what `fill` wants to be told; to be called before the engine is read."""
        return self._changes

    def fill(self, key: Key, value: Value, before: int) -> None:
        """Remember what a read gave, unless something changed since it began."""
        if (
            before != self._changes
            or key in self._doubtful
            or key in self._held
            or len(self._doubtful) >= self._entries_max
        ):
            return
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[key] = value

    def hold(self, key: Key) -> None:
        """See `engine.border.Watcher`."""
        self._held.add(key)
        self._changes += 1
        self._entries.pop(key, None)

    def release(self, key: Key) -> None:
        """See `engine.border.Watcher`."""
        self._held.discard(key)
        self._changes += 1

    @contextmanager
    def changing(self, key: Key) -> Iterator[None]:
        """Surround the commit that changes a row."""
        try:
            yield
        except ServiceError:
            raise
        except BaseException:
            self._doubtful.add(key)
            raise
        else:
            self._doubtful.discard(key)
        finally:
            self._changes += 1
            self._entries.pop(key, None)
            if len(self._doubtful) >= self._entries_max:
                self._entries.clear()
