"""A cache of decoded rows that a service looks up on every request.

Invariants: a cached row equals the engine's. A row is evicted in the step that changes it. A read that began before
such a step never fills the cache. If a change neither succeeded nor was rejected (the disk failed, the caller was
cancelled), its outcome is unknown. Such a row is *doubtful*: the cache does not hold it until a later change succeeds.

Other processes may change rows as well. There are two cases:

- One primary owns the store. It invalidates a row in each cache before a change can be seen (`begin_invalidation`),
  waits for the acknowledgement, and ends the invalidation once the outcome is known (`end_invalidation`). In between,
  the row is read from the engine.
- The processes share a database only. A cached row then has a `TimeToLive`, counted from before it was read. A row is
  doubtful for no longer than that. A row that cannot be read again, as its node of the database is away, is used for
  `KEPT_SECONDS` more (`renewed`): so a process serves the partitions of the other nodes meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.errors import ServiceError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

ENTRIES_MAX = 10_000
KEPT_SECONDS = 30.0
"""How long a row is used that cannot be read again. Clients of Azure expect that a change of an access policy may take
so long. Source: https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy."""


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """How long a row stays in the cache."""

    seconds: float
    monotonic: Callable[[], float]
    """Returns seconds that never step back."""
    patience_seconds: float = 0.4
    """How long a caller waits for a row that it has and that should be read again."""


class Moment(NamedTuple):
    """The moment at which a read began."""

    changes: int
    """The number of changes so far."""
    at_s: float


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Value
    read_s: float
    """When its read began."""
    fresh_until_s: float
    is_away: bool = False
    """Whether the latest attempt to read it again failed, or took too long."""


class RowCache(Generic[Key, Value]):
    """Holds decoded rows by key.

    Args:
        entries_max: the most rows, and the most doubtful keys.
        ttl: how long a row is cached; None: until it changes, of which this cache is always notified.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX, ttl: TimeToLive | None = None) -> None:
        self._entries_max = entries_max
        self._ttl = ttl
        self._entries: dict[Key, _Entry[Value]] = {}
        self._renewals: dict[Key, asyncio.Future[Value | None]] = {}
        """The reads of rows that should be read again, each begun after the last change of its row here."""
        self._doubtful: set[Key] = set()
        self._invalid: set[Key] = set()
        self._changes = 0

    def get(self, key: Key) -> Value | None:
        """Return the cached row; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        ttl = self._ttl
        return entry.value if ttl is None or ttl.monotonic() < entry.fresh_until_s else None

    async def renewed(self, key: Key, read: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """Return a row that `get` does not return: read it, or take the one of before if it cannot be read.

        Args:
            key: of the row.
            read: reads the row and fills the cache; None: there is no row.

        Raises:
            EngineUnavailableError: it cannot be read, and was not read in the last `KEPT_SECONDS`.
        """
        ttl, entry = self._ttl, self._entries.get(key)
        if ttl is None or entry is None or ttl.monotonic() - entry.read_s >= KEPT_SECONDS:
            return await read()
        renewal = self._renewals.get(key)
        if renewal is None:
            renewal = self._renewals[key] = asyncio.ensure_future(read())
            renewal.add_done_callback(lambda _: self._end_renewal(key, entry, renewal))
        if not entry.is_away:
            await asyncio.wait([renewal], timeout=ttl.patience_seconds)
            if not renewal.done():
                self._keep(entry)
            elif not _is_unavailable(renewal):
                return renewal.result()
        return entry.value

    def _end_renewal(self, key: Key, entry: _Entry[Value], renewal: "asyncio.Future[Value | None]") -> None:
        if self._renewals.get(key) is renewal:
            del self._renewals[key]
        if _is_unavailable(renewal):
            self._keep(entry)

    def _keep(self, entry: _Entry[Value]) -> None:
        if self._ttl is not None:
            entry.is_away = True
            entry.fresh_until_s = min(self._ttl.monotonic() + self._ttl.seconds, entry.read_s + KEPT_SECONDS)

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
        self._entries[key] = _Entry(value, before.at_s, before.at_s + (0.0 if self._ttl is None else self._ttl.seconds))

    def evict(self, key: Key) -> None:
        """Evict a row that a read did not find."""
        self._entries.pop(key, None)
        self._renewals.pop(key, None)

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


def _is_unavailable(renewal: "asyncio.Future[Value | None]") -> bool:
    """Return whether a read that has ended failed as its node is away, or was given up."""
    return renewal.cancelled() or isinstance(renewal.exception(), EngineUnavailableError)
