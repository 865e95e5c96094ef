"""Commits the changes of partitions, and has the garbage deleted that they make.

Invariant: a container is announced to `Garbage` before the first commit that makes garbage in it.
"""

from typing import TypeVar

from lazulite.blob.model.transaction import Decide, Transaction
from lazulite.blob.storage.garbage import Garbage
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.readers import Partition
from lazulite.engine.contract import EngineError

T = TypeVar("T")


class Changes:
    """The changes of all partitions.

    Args:
        partitions: of the blobs.
        garbage: that changes make.
    """

    def __init__(self, partitions: Partitions, garbage: Garbage) -> None:
        self._partitions = partitions
        self._garbage = garbage

    async def commit(self, partition: Partition, decide: Decide[T], *rows: str) -> T:
        """Change a partition; return the result of `decide`. See `Partitions.commit`.

        Garbage that the change makes is deleted afterwards.
        """
        space, name = partition
        if self._garbage.is_announced(space):
            transaction, result = await self._partitions.commit(space, name, decide, rows)
        else:

            def cautious(transaction: Transaction) -> T:
                result = decide(transaction)
                if transaction.new_garbage:
                    raise _UnannouncedGarbageError
                return result

            try:
                transaction, result = await self._partitions.commit(space, name, cautious, rows)
            except _UnannouncedGarbageError:
                await self._garbage.announce(space)
                transaction, result = await self._partitions.commit(space, name, decide, rows)
        if transaction.ledger.garbage:
            self._garbage.begin(partition)
        return result


class _UnannouncedGarbageError(EngineError):
    """A change makes garbage in a container of which no row tells it. Nothing was changed."""
