"""The queues of all accounts: their names, spaces, metadata and stored access policies.

A queue is a row of the space `QUEUES`: partition = account, row = the queue's name, value = JSON of a `Queue`.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from lazulite.engine.contract import Engine, SpaceDroppedError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.metadata import Metadata, is_same_metadata
from lazulite.queue.model.shard import close_shard
from lazulite.records.catalog import NamedResource, ResourceCatalog, TimeToLive
from lazulite.records.spaces import QUEUES


@dataclass(frozen=True, slots=True)
class Queue(NamedResource):
    """One queue."""

    shards: int
    """The number of partitions of its space that have messages."""
    metadata: Metadata = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", tuple((name, text) for name, text in self.metadata))  # JSON has lists.


class Catalog(ResourceCatalog[Queue]):
    """The queues of all accounts; a queue that does not exist is a `QueueNotFound`.

    Args:
        engine: holds the rows.
        shards: of a new queue.
        ttl: as of `ResourceCatalog`.
    """

    def __init__(self, engine: Engine, shards: int = 1, ttl: TimeToLive | None = None) -> None:
        super().__init__(engine, QUEUES, Queue, "QueueNotFound", ttl=ttl)
        self._shards = shards

    async def create(self, account: str, name: str, metadata: Metadata) -> bool:
        """Create a queue; return False if there is one with the same metadata.

        Raises:
            ServiceError: `QueueAlreadyExists`, there is one with other metadata.
        """

        def accept(queue: Queue) -> None:
            if not is_same_metadata(queue.metadata, metadata):
                raise ServiceError("QueueAlreadyExists")

        queue = await self.add(account, name, lambda space: Queue(name, space, self._shards, metadata), accept)
        if queue is not None and self._shards > 1:
            await self._dropped.finish_of((account, name))  # No process may still put into one that was deleted.
        return queue is not None

    async def set_metadata(self, account: str, name: str, metadata: Metadata) -> None:
        """Replace the metadata of a queue. Raises as `require`."""
        await self.update(account, name, lambda queue: replace(queue, metadata=metadata))

    async def _close(self, space: int) -> None:
        """Close each shard: another process may put messages by an old row of the catalog."""
        if self._shards > 1:
            with suppress(SpaceDroppedError):  # It is dropped only once it is closed.
                await asyncio.gather(*(close_shard(self._engine, space, each) for each in range(self._shards)))
