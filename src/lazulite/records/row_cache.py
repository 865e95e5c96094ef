"""A cache of decoded rows that a service looks up on every request.

Invariants: a cached row equals the engine's. A row is evicted in the step that changes it. A read that began before
such a step never fills the cache. If a change neither succeeded nor was rejected (the disk failed, the caller was
cancelled), its outcome is unknown. Such a row is *doubtful*: the cache does not hold it until a later change succeeds.

Other processes may change rows as well. There are two cases:

- One primary owns the store. It invalidates a row in each cache before a change can be seen (`begin_invalidation`),
  waits for the acknowledgement, and ends the invalidation once the outcome is known (`end_invalidation`). In between,
  the row is read from the engine.
- The processes share a database only. A cached row then has a `TimeToLive`, counted from before it was read. A row is
  doubtful for no longer than that.
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
class TimeToLive:
    """How long a row stays in the cache."""

    seconds: float
    monotonic: Callable[[], float]
    """Returns seconds that never step back."""


class Moment(NamedTuple):
    """The moment at which a read began."""

    changes: int
    """The number of changes so far."""
    at_s: float


class RowCache(Generic[Key, Value]):
    """Holds decoded rows by key.

    Args:
        entries_max: the most rows, and the most doubtful keys.
        ttl: how long a row is cached; None: until it changes, of which this cache is always notified.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX, ttl: TimeToLive | None = None) -> None:
        self._entries_max = entries_max
        self._ttl = ttl
        self._entries: dict[Key, tuple[Value, float]] = {}
        """Each value with the second at which its read began."""
        self._doubtful: set[Key] = set()
        self._invalid: set[Key] = set()
        self._changes = 0

    def get(self, key: Key) -> Value | None:
        """Return the cached row; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, read_s = entry
        ttl = self._ttl
        return value if ttl is None or ttl.monotonic() - read_s < ttl.seconds else None

    def before_read(self) -> Moment:
        """Return the moment to hand to `fill`. Call it before reading the engine."""
        return Moment(self._changes, 0.0 if self._ttl is None else self._ttl.monotonic())

    def fill(self, key: Key, value: Value, before: Moment) -> None:
        """Cache the row that a read returned, unless any row changed since the read began."""
        if (
            before.changes != self._changes
            or key in self._doubtful
            or key in self._invalid
            or len(self._doubtful) >= self._entries_max
        ):
            return
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[key] = value, before.at_s

    def evict(self, key: Key) -> None:
        """Evict a row that a read did not find."""
        self._entries.pop(key, None)

    def begin_invalidation(self, key: Key) -> None:
        """See `engine.remote.messages.CacheInvalidation`."""
        self._invalid.add(key)
        self._changes += 1
        self.evict(key)

    def end_invalidation(self, key: Key) -> None:
        """See `engine.remote.messages.CacheInvalidation`."""
        self._invalid.discard(key)
        self._changes += 1

    @contextmanager
    def changing(self, key: Key) -> Iterator[None]:
        """Surround the commit that changes a row."""
        try:
            yield
        except ServiceError:
            raise
        except BaseException:
            if self._ttl is None:
                self._doubtful.add(key)
            raise
        else:
            self._doubtful.discard(key)
        finally:
            self._changes += 1
            self.evict(key)
            if len(self._doubtful) >= self._entries_max:
                self._entries.clear()
