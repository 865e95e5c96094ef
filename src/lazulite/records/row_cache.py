"""A memory of rows that only change through it: what a service looks up on every request.

Invariants: what is remembered is what the engine holds. A row is forgotten in the step that changes it, and never
remembered from a read that began before such a step. Where a change neither succeeded nor was refused (the disk failed,
the caller was cancelled), nobody knows whether it will take effect: such a row is doubtful, and read through until a
later change of it succeeds.

Where other processes change rows as well, one of two things holds. If all of them have one owner's store, each such
change is announced before it can be seen (`hold`) and over when its outcome is known (`release`); between the two the
row is read through. If they share nothing but a database, nobody announces anything, and what is remembered has a
`Lifetime`: it is never older than that, counted from before it was read. Doubt is no older then, either.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from lazulite.protocol.errors import ServiceError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRIES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long rows are remembered."""

    seconds: float
    monotonic: Callable[[], float]
    """Seconds that never step back."""


class Moment(NamedTuple):
    """When a read began."""

    changes: int
    """How many there had been."""
    at_s: float


class RowCache(Generic[Key, Value]):
    """Remembers decoded rows by key; at most `entries_max` of them, and as many doubtful keys.

    Args:
        entries_max: see above.
        lifetime: how long; None: until they change, as all changes are made or announced here.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX, lifetime: Lifetime | None = None) -> None:
        self._entries_max = entries_max
        self._lifetime = lifetime
        self._entries: dict[Key, tuple[Value, float]] = {}
        """Each with the second at which it was read."""
        self._doubtful: set[Key] = set()
        self._held: set[Key] = set()
        self._changes = 0

    def get(self, key: Key) -> Value | None:
        """Return what is remembered."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, read_s = entry
        lifetime = self._lifetime
        return value if lifetime is None or lifetime.monotonic() - read_s < lifetime.seconds else None

    def before_read(self) -> Moment:
        """Return what `fill` wants to be told; to be called before the engine is read."""
        return Moment(self._changes, 0.0 if self._lifetime is None else self._lifetime.monotonic())

    def fill(self, key: Key, value: Value, before: Moment) -> None:
        """Remember what a read gave, unless something changed since it began."""
        if (
            before.changes != self._changes
            or key in self._doubtful
            or key in self._held
            or len(self._doubtful) >= self._entries_max
        ):
            return
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[key] = value, before.at_s

    def forget(self, key: Key) -> None:
        """Remember a row no more, as a read did not find it."""
        self._entries.pop(key, None)

    def hold(self, key: Key) -> None:
        """See `engine.remote.messages.Watcher`."""
        self._held.add(key)
        self._changes += 1
        self.forget(key)

    def release(self, key: Key) -> None:
        """See `engine.remote.messages.Watcher`."""
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
            if self._lifetime is None:
                self._doubtful.add(key)
            raise
        else:
            self._doubtful.discard(key)
        finally:
            self._changes += 1
            self.forget(key)
            if len(self._doubtful) >= self._entries_max:
                self._entries.clear()
