"""What an account has in all services, beside its name and keys, and the removal of it.

A running server does this for its location, as it has the store; a command does it for a database, or for a location
that no server has open. Invariant: no cache of the process, or of its workers, shows what was removed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress

from lazulite.app.commands import COUNT_RESOURCES, QUEUE_MESSAGES, REMOVE_DATA, QueueArguments
from lazulite.app.registry import SPACES
from lazulite.blob.storage.catalog import Catalog as Containers
from lazulite.control.channel import Channel
from lazulite.control.command import AccountArguments, ControlError, Json, single
from lazulite.engine.commit import put_rows
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND, system_clock, unix_seconds
from lazulite.protocol.errors import ServiceError
from lazulite.queue.call import SHARDS_OF_DATABASE
from lazulite.queue.catalog import Catalog as Queues
from lazulite.queue.model.message import VISIBLE, Message, read_message, write_id, write_receipt
from lazulite.records.spaces import ACCOUNT_QUOTAS, DELEGATIONS, INDEX_BUILDS, METRIC_COUNTS, SERVICE_PROPERTIES
from lazulite.table.catalog import Catalog as Tables

Invalidated = Callable[[int, list[Key]], AbstractAsyncContextManager[None]]
"""Keeps rows of a space out of all caches while they are changed."""


def caches_of(caches: Mapping[int, Sequence[CacheInvalidation]]) -> Invalidated:
    """Return what keeps rows out of the caches of this process, given those of each space."""

    @asynccontextmanager
    async def invalidated(space: int, keys: list[Key]) -> AsyncIterator[None]:
        found = [(cache, key) for cache in caches.get(space, ()) for key in keys]
        for cache, key in found:
            cache.begin_invalidation(key)
        try:
            yield
        finally:
            for cache, key in found:
                cache.end_invalidation(key)

    return invalidated


class AccountData:
    """The data of accounts in a store.

    Args:
        engine: holds the rows.
        contents: of the blobs.
        invalidated: see `Invalidated`.
        shared: whether other processes change the store, unannounced.
    """

    def __init__(
        self, engine: Engine, contents: ContentStore | None, invalidated: Invalidated, *, shared: bool = False
    ) -> None:
        self._engine = engine
        self._invalidated = invalidated
        shards = SHARDS_OF_DATABASE if shared else 1
        self._queues = Queues(engine, shards)
        self._catalogs = (Tables(engine), self._queues, Containers(engine, system_clock, contents))

    def register(self, channel: Channel) -> None:
        """Have commands count and remove data in this process."""

        def count(of: AccountArguments) -> AsyncGenerator[Json, None]:
            return single(self.count(of.account))

        def remove(of: AccountArguments) -> AsyncGenerator[Json, None]:
            return single(self.remove(of.account))

        channel.register(COUNT_RESOURCES, count)
        channel.register(QUEUE_MESSAGES, self._messages)
        channel.register(REMOVE_DATA, remove)

    async def _messages(self, of: QueueArguments) -> AsyncGenerator[Json, None]:
        queue = await self._queues.read(of.account, of.queue)
        if queue is None:
            raise ControlError("no-queue", f"account {of.account[:64]!r} has no queue {of.queue[:64]!r}")
        now, left = system_clock(), of.count or -1
        partition, _, start = of.start.partition("/")
        async with aclosing(self._engine.scan(queue.space, [KeyRange((partition, start), None)])) as parts:
            async for part in parts:
                for index, value in enumerate(part.values):
                    partition, row = part.key(index)
                    if row.startswith(VISIBLE):
                        message = read_message(row, value)
                        if message.expires > now:
                            yield _described(message, f"{partition}/{row}", now)
                            left -= 1
                            if not left:
                                return

    async def count(self, account: str) -> Mapping[str, int]:
        """Return how many tables, queues and containers an account has, by their nouns, without zeros."""
        counts: dict[str, int] = {}
        for catalog in self._catalogs:
            count = len([row async for row in catalog.rows_of(account)])
            space = SPACES.get(catalog.space)
            assert space is not None
            assert space.catalog is not None
            if count:
                nouns = space.catalog.nouns
                counts[nouns.space if count == 1 else nouns.spaces] = count
        return counts

    async def remove(self, account: str) -> Mapping[str, int]:
        """Remove everything that an account has; its name and keys stay where they are. Return no numbers.

        Raises:
            EngineError: the store cannot be read or written; the same call removes the rest later.
        """
        for catalog in self._catalogs:
            rows = [row async for row in catalog.rows_of(account)]
            async with self._invalidated(catalog.space, [(account, row) for row in rows]):
                for row in rows:
                    with suppress(ServiceError):  # A request has deleted it meanwhile.
                        await catalog.delete(account, row)
        for space in (SERVICE_PROPERTIES, DELEGATIONS, ACCOUNT_QUOTAS, METRIC_COUNTS, INDEX_BUILDS):
            await self._remove_rows(space, account)
        return {}

    async def _remove_rows(self, space: int, account: str) -> None:
        within = KeyRange((account, ""), (account + "\0", ""))
        parts = [part async for part in self._engine.scan(space, [within])]
        keys = [part.key(index) for part in parts for index in range(len(part.values))]
        async with self._invalidated(space, keys):
            for partition, row in keys:
                await self._engine.commit(space, partition, put_rows({row: None}))


def _described(message: Message, position: str, now: int) -> Json:
    """Return a message as an item of `QUEUE_MESSAGES`."""
    hidden = max(0, -(-(message.visible - now) // TICKS_PER_SECOND))
    left = -(-(message.expires - now) // TICKS_PER_SECOND)
    return {
        "text": message.text.decode(),
        "hidden_seconds": hidden,
        "lives_seconds": -1 if message.expires >= LAST_TICK else max(left, hidden + 1),
        "dequeues": message.dequeues,
        "id": write_id(message.id),
        "position": position,
        "receipt": write_receipt(message),
        "inserted": unix_seconds(message.inserted),
        "visible": unix_seconds(message.visible),
    }
