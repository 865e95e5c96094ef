"""Request batchers by node: requests that wait for one node of a Citus cluster share a batch.

So a silent node fails only its own requests. In a database without nodes, all requests share one batcher.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.request_batcher import RequestBatcher

Request = TypeVar("Request")
Result = TypeVar("Result")


class NodeBatchers(Generic[Request, Result]):
    """The batchers of one kind of requests.

    Args:
        shards: where partitions are.
        make: makes the batcher of a node.
    """

    def __init__(self, shards: ShardMap, make: Callable[[], RequestBatcher[Request, Result]]) -> None:
        self._shards = shards
        self._make = make
        self._batchers: dict[int, RequestBatcher[Request, Result]] = {}

    def of(self, partition_key: bytes) -> RequestBatcher[Request, Result]:
        """Return the batcher of a partition's node, by the partition's index key."""
        node = self._shards.node(partition_key)
        batcher = self._batchers.get(node)
        if batcher is None:
            batcher = self._batchers[node] = self._make()
        return batcher

    def withdraw(self, chosen: Callable[[Request], bool], result: Result) -> None:
        """Answer the chosen ones of the waiting requests without sending them."""
        for batcher in self._batchers.values():
            batcher.withdraw(chosen, result)

    async def finished(self) -> None:
        """Return when no batch is in flight."""
        while any(batcher.busy for batcher in self._batchers.values()):
            for batcher in self._batchers.values():
                await batcher.finished()
