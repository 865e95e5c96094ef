"""Partitions that a statement of this process is changing: at most one statement changes a partition at a time.

Of two statements, the one that got the database's lock later would find the partition's version above its timestamps.
"""

import asyncio
from collections.abc import Callable, Iterable

Partition = tuple[int, bytes]
"""A space, and the index key of a partition."""


class PartitionLocks:
    """The locked partitions. Call `acquire` and `release` in the same event loop."""

    def __init__(self) -> None:
        self._released: dict[Partition, asyncio.Future[None]] = {}
        """By locked partition, a future of its release."""
        self._listeners: list[Callable[[], None]] = []

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._released

    def on_release(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each release from now on."""
        self._listeners.append(listener)

    def acquire(self, partitions: Iterable[Partition]) -> None:
        """Lock partitions, none of which is locked."""
        self._released.update(dict.fromkeys(partitions, asyncio.get_running_loop().create_future()))

    async def wait_and_acquire(self, partition: Partition) -> None:
        """Lock one partition once it is not locked any more."""
        while released := self._released.get(partition):
            await released
        self.acquire([partition])

    def release(self, partitions: Iterable[Partition]) -> None:
        """Unlock partitions that one call locked."""
        for released in {self._released.pop(partition) for partition in partitions}:
            released.set_result(None)
        for listener in self._listeners:
            listener()
