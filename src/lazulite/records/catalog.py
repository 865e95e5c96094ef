"""The named resources of all accounts that have a space each, such as tables or queues.

A resource is a row of the catalog's space: partition = account, row = the resource's name, value = its stored form.
Rows `!{space}` mark spaces that were dropped and are not yet empty; their value is the row of the resource. Such a
marker is written in the commit that removes the row of the space. So a later change of the catalog, or a restart,
finishes a drop that was interrupted. Older versions wrote an empty value, which may be of any resource.

Invariants: the space of a resource is its own, and is never used again after the resource is deleted. So a resource of
the same name created at once is empty. A change depends on the engine's rows, never on cached ones, which other
processes may have changed.

Invariants of the cache of decoded rows, which a service looks up on every request: a cached row equals the engine's. A
row is evicted in the step that changes it. A read that began before such a step never fills the cache. If a change
neither succeeded nor was rejected (the disk failed, the caller was cancelled), its outcome is unknown. Such a row is
*doubtful*: the cache does not hold it until a later change succeeds.

Other processes may change rows as well. There are two cases:

- One primary owns the store. It invalidates a row in each cache before a change can be seen (`begin_invalidation`),
  waits for the acknowledgement, and ends the invalidation once the outcome is known (`end_invalidation`). In between,
  the row is read from the engine.
- The processes share a database only. A cached row then has a `TimeToLive`, counted from before it was read. A row is
  doubtful for no longer than that. A row that cannot be read again, as its node of the database is away, is used for
  `KEPT_SECONDS` more (`renewed`): so a process serves the partitions of the other nodes meanwhile.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Generic, NamedTuple, Self, TypeVar

from lazulite.engine.commit import Decision, change_row, put_rows
from lazulite.engine.contract import Engine, EngineUnavailableError, Key, KeyRange
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.protocol.errors import ServiceError
from lazulite.records.spaces import SpaceAllocator

CachedKeyT = TypeVar("CachedKeyT", bound=Hashable)
CachedT = TypeVar("CachedT")

ENTRIES_MAX = 10_000
KEPT_SECONDS = 30.0
"""How long a row is used that cannot be read again. Clients of Azure expect that a change of an access policy may take
so long. Source: https://learn.microsoft.com/rest/api/storageservices/define-stored-access-policy."""

_PREFIX, _AFTER_PREFIX = "!", '"'


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
class _Entry(Generic[CachedT]):
    value: CachedT
    read_s: float
    """When its read began."""
    fresh_until_s: float
    is_away: bool = False
    """Whether the latest attempt to read it again failed, or took too long."""


class RowCache(Generic[CachedKeyT, CachedT]):
    """Holds decoded rows by key.

    Args:
        entries_max: the most rows, and the most doubtful keys.
        ttl: how long a row is cached; None: until it changes, of which this cache is always notified.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX, ttl: TimeToLive | None = None) -> None:
        self._entries_max = entries_max
        self._ttl = ttl
        self._entries: dict[CachedKeyT, _Entry[CachedT]] = {}
        self._renewals: dict[CachedKeyT, asyncio.Future[CachedT | None]] = {}
        """The reads of rows that should be read again, each begun after the last change of its row here."""
        self._doubtful: set[CachedKeyT] = set()
        self._invalid: set[CachedKeyT] = set()
        self._changes = 0

    def get(self, key: CachedKeyT) -> CachedT | None:
        """Return the cached row; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        ttl = self._ttl
        return entry.value if ttl is None or ttl.monotonic() < entry.fresh_until_s else None

    async def renewed(self, key: CachedKeyT, read: Callable[[], Awaitable[CachedT | None]]) -> CachedT | None:
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

    def _end_renewal(self, key: CachedKeyT, entry: _Entry[CachedT], renewal: "asyncio.Future[CachedT | None]") -> None:
        if self._renewals.get(key) is renewal:
            del self._renewals[key]
        if _is_unavailable(renewal):
            self._keep(entry)

    def _keep(self, entry: _Entry[CachedT]) -> None:
        if self._ttl is not None:
            entry.is_away = True
            entry.fresh_until_s = min(self._ttl.monotonic() + self._ttl.seconds, entry.read_s + KEPT_SECONDS)

    def before_read(self) -> Moment:
        """Return the moment to hand to `fill`. Call it before reading the engine."""
        return Moment(self._changes, 0.0 if self._ttl is None else self._ttl.monotonic())

    def fill(self, key: CachedKeyT, value: CachedT, before: Moment) -> None:
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

    def evict(self, key: CachedKeyT) -> None:
        """Evict a row that a read did not find."""
        self._entries.pop(key, None)
        self._renewals.pop(key, None)

    def begin_invalidation(self, key: CachedKeyT) -> None:
        """See `engine.remote.messages.CacheInvalidation`."""
        self._invalid.add(key)
        self._changes += 1
        self.evict(key)

    def end_invalidation(self, key: CachedKeyT) -> None:
        """See `engine.remote.messages.CacheInvalidation`."""
        self._invalid.discard(key)
        self._changes += 1

    @contextmanager
    def changing(self, key: CachedKeyT) -> Iterator[None]:
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


def _is_unavailable(renewal: "asyncio.Future[CachedT | None]") -> bool:
    """Return whether a read that has ended failed as its node is away, or was given up."""
    return renewal.cancelled() or isinstance(renewal.exception(), EngineUnavailableError)


@dataclass(frozen=True, slots=True)
class StoredAccessPolicy:
    """One signed identifier of an ACL. A token that names the policy must state what is None here."""

    id: str
    """The name that a signature refers to by `si`, at most 64 characters."""
    start: int | None = None
    """Not valid before this instant, in ticks."""
    expiry: int | None = None
    """The last instant at which it is valid, in ticks."""
    permission: str | None = None
    """Permission letters of the service, such as `raud`."""


@dataclass(frozen=True, slots=True)
class NamedResource:
    """One resource; its stored form is the JSON of its fields."""

    name: str
    """As its creator spelled it."""
    space: int
    """The number of the space that holds its rows."""
    policies: tuple[StoredAccessPolicy, ...] = field(default=(), kw_only=True)

    @property
    def spaces(self) -> Collection[int]:
        """The numbers of all spaces that go with it."""
        return (self.space,)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Self:
        """Read the stored form."""
        fields = json.loads(value)
        policies = tuple(StoredAccessPolicy(**policy) for policy in fields.pop("policies"))
        return cls(**fields, policies=policies)


def marker_of(space: int) -> str:
    """Return the row that marks a space as dropped."""
    return f"{_PREFIX}{space}"


def is_marker(row: str) -> bool:
    """Tell whether a row of a catalog is a marker."""
    return row.startswith(_PREFIX)


def marked_space(row: str) -> int:
    """Return the space that a marker names.

    Raises:
        ValueError: the row is no marker.
    """
    return int(row.removeprefix(_PREFIX))


class DroppedSpaces:
    """The markers of one catalog.

    Args:
        engine: of the store.
        catalog: the number of the catalog's space.
        close: has every process reject changes in a space, given its number.
        clean_up: removes other rows about a space, given the partition of its resource, and its number.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: int,
        close: Callable[[int], Awaitable[None]],
        clean_up: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._close = close
        self._clean_up = clean_up

    async def finish(self) -> None:
        """Close and empty every space that is still marked, and delete its marker."""
        await self._finish(KeyRange(("", ""), None), lambda _: True)

    async def finish_of(self, resource: Key) -> None:
        """Do the same with the spaces that a resource had, given the key of its row."""
        partition, row = resource
        markers = KeyRange((partition, _PREFIX), (partition, _AFTER_PREFIX))
        await self._finish(markers, lambda name: name in (row.encode(), b""))

    async def _finish(self, within: KeyRange, accepts: Callable[[bytes], bool]) -> None:
        pending: list[Key] = []
        async for part in self._engine.scan(self._catalog, [within]):
            keys = [part.key(index) for index, value in enumerate(part.values) if accepts(value)]
            pending += [key for key in keys if is_marker(key[1])]
        for key in pending:
            await self._reclaim(*key)

    async def _reclaim(self, partition: str, marker: str) -> None:
        await self._close(marked_space(marker))
        with suppress(EngineUnavailableError):  # The marker stays, and a later `finish` does the rest.
            await self._engine.drop(marked_space(marker))
            await self._clean_up(partition, marked_space(marker))
            await self._engine.commit(self._catalog, partition, put_rows({marker: None}))


T = TypeVar("T")
ResourceT = TypeVar("ResourceT", bound=NamedResource)


class ResourceCatalog(Generic[ResourceT]):
    """The resources of one service, kept in an engine.

    Args:
        engine: holds the rows.
        space: number of the catalog's own space.
        resource: the class of the resources.
        missing_code: the error for a resource that does not exist.
        fold: takes a name to its row, the same for all spellings of one name.
        first_name: no name in a list sorts before it; the `!` of markers does.
        listed: whether the keys of the resources' spaces are listed without values, see `engine.contract.LISTED`.
        ttl: how long a row is cached if other processes change rows without invalidation; None: until it changes.
    """

    def __init__(
        self,
        engine: Engine,
        space: int,
        resource: type[ResourceT],
        missing_code: str,
        *,
        fold: Callable[[str], str] = str,
        first_name: str = "0",
        listed: bool = False,
        ttl: TimeToLive | None = None,
    ) -> None:
        self.space = space
        self._engine = engine
        self._decode = resource.from_bytes
        self._missing_code = missing_code
        self._fold = fold
        self._first_name = first_name
        self._spaces = SpaceAllocator(engine, listed=listed)
        self._dropped = DroppedSpaces(engine, space, self._close, self._clean_up)
        self._cache: RowCache[Key, ResourceT] = RowCache(ttl=ttl)

    @property
    def invalidation(self) -> CacheInvalidation:
        """The cache to invalidate when other processes change rows of the catalog."""
        return self._cache

    def cached(self, account: str, name: str) -> ResourceT | None:
        """Return a resource if it is cached."""
        return self._cache.get((account, self._fold(name)))

    async def get(self, account: str, name: str) -> ResourceT | None:
        """Return a resource, perhaps from the cache."""
        cached = self.cached(account, name)
        if cached is not None:
            return cached
        return await self._cache.renewed((account, self._fold(name)), lambda: self.read(account, name))

    async def read(self, account: str, name: str) -> ResourceT | None:
        """Return a resource as it is now."""
        row = self._fold(name)
        if is_marker(row):
            return None
        key = (account, row)
        before = self._cache.before_read()
        value = await self._engine.get(self.space, *key)
        if value is None:
            self._cache.evict(key)
            return None
        resource = self._decode(value)
        self._cache.fill(key, resource, before)
        return resource

    async def require(self, account: str, name: str) -> ResourceT:
        """Return a resource, perhaps from the cache.

        Raises:
            ServiceError: `missing_code`.
        """
        resource = await self.get(account, name)
        if resource is None:
            raise ServiceError(self._missing_code)
        return resource

    async def list(self, account: str, start: str, prefix: str = "") -> AsyncGenerator[ResourceT, None]:
        """Yield the resources of an account, in the order of their rows.

        Args:
            account: the account.
            start: the first row, such as a marker of the previous page names it; it need not exist.
            prefix: what the rows begin with.
        """
        named = KeyRange((account, max(start, prefix, self._first_name)), (account + "\0", ""))
        async with aclosing(self._rows(named)) as rows:
            async for (_, row), value in rows:
                if not row.startswith(prefix):
                    return
                yield self._decode(value)

    async def all(self) -> AsyncGenerator[ResourceT, None]:
        """Yield the resources of all accounts."""
        async with aclosing(self._rows(KeyRange(("", ""), None))) as rows:
            async for (_, row), value in rows:
                if not is_marker(row):
                    yield self._decode(value)

    async def rows_of(self, account: str) -> AsyncGenerator[str, None]:
        """Yield the rows of everything that an account has, also of what was deleted and can be restored."""
        async with aclosing(self._rows(KeyRange((account, ""), (account + "\0", "")))) as rows:
            async for (_, row), _ in rows:
                if not is_marker(row):
                    yield row

    async def _rows(self, within: KeyRange) -> AsyncGenerator[tuple[Key, bytes], None]:
        async with aclosing(self._engine.scan(self.space, [within])) as parts:
            async for part in parts:
                for index, value in enumerate(part.values):
                    yield part.key(index), value

    async def add(
        self, account: str, name: str, make: Callable[[int], ResourceT], accept: Callable[[ResourceT], None]
    ) -> ResourceT | None:
        """Add a resource.

        Args:
            account: the account.
            name: its name.
            make: takes the number of a new space to the resource.
            accept: takes the resource that has the name already, and raises the error for that, if it is one.

        Returns:
            The new resource; None if there is one, which was accepted.
        """
        found = await self.read(account, name)
        if found is not None:
            accept(found)
            return None
        added = make(await self._spaces.allocate())

        def put(current: bytes | None) -> Decision[ResourceT | None]:
            if current is None:
                return Decision({self._fold(name): added.to_bytes()}, added)
            accept(self._decode(current))
            return Decision({}, None)

        return await self._change(account, name, put)

    async def delete(self, account: str, name: str) -> None:
        """Delete a resource: gone at once, its rows reclaimed in the background.

        Raises:
            ServiceError: `missing_code`.
        """
        await self._replace(account, name, lambda _: None)

    async def clear(self, account: str, name: str) -> None:
        """Delete everything in a resource at once: give it a new space.

        Raises:
            ServiceError: `missing_code`.
        """
        space = await self._spaces.allocate()
        await self._replace(account, name, lambda resource: replace(resource, space=space))

    async def _replace(
        self, account: str, name: str, successor: Callable[[ResourceT], ResourceT | None]
    ) -> ResourceT | None:
        """Replace the row of a resource or delete it, return what follows it, and drop the spaces that it had alone.

        Spaces that earlier calls have left are dropped, too: one that was interrupted, or is under way.
        """
        row = self._fold(name)

        def drop(resource: ResourceT) -> Decision[ResourceT | None]:
            following = successor(resource)
            value = None if following is None else following.to_bytes()
            left = () if following is None else following.spaces
            dropped = {marker_of(space): row.encode() for space in resource.spaces if space not in left}
            return Decision({row: value, **dropped}, following)

        following = await self._change_present(account, name, drop)
        await self._dropped.finish_of((account, row))
        return following

    async def _close(self, space: int) -> None:
        """Have every process reject changes in a space that it may still have in its cache."""

    async def _clean_up(self, account: str, space: int) -> None:
        """Remove other rows about a space that was dropped."""

    async def update(self, account: str, name: str, change: Callable[[ResourceT], ResourceT]) -> ResourceT:
        """Change a resource, and return it; `change` is pure, and keeps its name and its space.

        Raises:
            ServiceError: `missing_code`.
        """
        return (await self.change(account, name, lambda resource: (change(resource), None)))[0]

    async def change(
        self, account: str, name: str, change: Callable[[ResourceT], tuple[ResourceT, T]]
    ) -> tuple[ResourceT, T]:
        """Change a resource as `update` does; `change` returns it with a result. Return both.

        Raises:
            ServiceError: `missing_code`.
        """
        row = self._fold(name)

        def decide(resource: ResourceT) -> Decision[tuple[ResourceT, T]]:
            changed = change(resource)
            return Decision({row: changed[0].to_bytes()}, changed)

        return await self._change_present(account, name, decide)

    async def policies(self, account: str, name: str) -> tuple[StoredAccessPolicy, ...]:
        """Return the stored access policies of a resource; none if it does not exist."""
        resource = await self.get(account, name)
        return () if resource is None else resource.policies

    async def set_policies(self, account: str, name: str, policies: Sequence[StoredAccessPolicy]) -> None:
        """Replace the stored access policies of a resource. Raises as `update`."""
        await self.update(account, name, lambda resource: replace(resource, policies=tuple(policies)))

    async def finish_drops(self) -> None:
        """Empty the spaces that a crash left to be emptied."""
        await self._dropped.finish()

    async def _change_present(self, account: str, name: str, change: Callable[[ResourceT], Decision[T]]) -> T:
        def present(current: bytes | None) -> Decision[T]:
            if current is None or is_marker(self._fold(name)):
                raise ServiceError(self._missing_code)
            return change(self._decode(current))

        return await self._change(account, name, present)

    async def _change(self, account: str, name: str, change: Callable[[bytes | None], Decision[T]]) -> T:
        row = self._fold(name)
        with self._cache.changing((account, row)):
            return await self._engine.commit(self.space, account, change_row(row, change))
