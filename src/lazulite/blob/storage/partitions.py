"""Reads and changes the partitions of blobs.

Each change is one commit of one partition, so that leases and conditional headers hold whatever runs beside it.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from lazulite.blob.model.blob import Blob, read_blob
from lazulite.blob.model.rows import CURRENT, LEDGER, VERSION
from lazulite.blob.model.transaction import Decide, MissingRowError, Transaction
from lazulite.engine.commit import Commit, Decision, Needs, Values
from lazulite.engine.contract import UNKNOWN, Clock, Engine, KeyRange, Slice, Unknown, Waiter
from lazulite.engine.ordinal import after_prefix

T = TypeVar("T")


class Partitions:
    """The partitions of all blobs.

    Args:
        engine: holds the rows.
        clock: the time, for reads.
        present: the time by which leases and rehydrations end; None: that of the commit.
    """

    def __init__(self, engine: Engine, clock: Clock, *, present: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock
        self._present = present

    async def get(self, space: int, name: str, row: str = CURRENT) -> Blob | None:
        """Return a blob, snapshot or version, as it is now; None if there is none."""
        blob = self.get_now(space, name, row)
        return self._read(await self._engine.get(space, name, row)) if blob is UNKNOWN else blob

    def get_now(self, space: int, name: str, row: str = CURRENT) -> Blob | Unknown | None:
        """Return what `get` returns, or `UNKNOWN` if it has to wait."""
        value = self._engine.get_now(space, name, row)
        return UNKNOWN if value is UNKNOWN else self._read(value)

    def _read(self, value: bytes | None) -> Blob | None:
        if value is None:
            return None
        blob = read_blob(value)
        return blob if blob.archive is None else blob.at((self._present or self._clock)())

    async def locate(self, space: int, name: str, row: str) -> tuple[str, Blob | None]:
        """Return the row that has a blob, snapshot or version, and what it has; None for one that is deleted or absent.

        Args:
            space: of the container.
            name: of the blob.
            row: as a request addresses it. The id of the current version names the current blob (§44).
        """
        blob = await self.get(space, name, row)
        if blob is None and row.startswith(VERSION):
            current = await self.get(space, name)
            if current is not None and current.is_version(row):
                return CURRENT, current
            blob = await self.get(space, name, row)  # It may have been overwritten between the two reads.
        return row, None if blob is None or blob.deleted else blob

    async def slices(self, space: int, name: str, prefix: str) -> AsyncGenerator[Slice, None]:
        """Yield the rows whose keys begin with a prefix, some at a time. The caller closes the generator."""
        following = after_prefix(prefix)
        end = (name + "\0", "") if following is None else (name, following)
        async with aclosing(self._engine.scan(space, [KeyRange((name, prefix), end)])) as parts:
            async for part in parts:
                yield part

    async def kept_rows(self, space: int, name: str, *kinds: str) -> list[str]:
        """Return the rows of a blob's snapshots (`SNAPSHOT`) and past versions (`VERSION`), in their order."""
        found: list[str] = []
        for kind in kinds:
            async with aclosing(self.slices(space, name, kind)) as parts:
                async for part in parts:
                    found += [part.key(index)[1] for index in range(len(part.values))]
        return found

    async def commit(self, space: int, name: str, decide: Decide[T], rows: Sequence[str] = ()) -> tuple[Transaction, T]:
        """Change a partition.

        Args:
            space: of the container.
            name: of the blob.
            decide: changes the transaction, or rejects the commit.
            rows: that `decide` is known to need, beside the ledger and the current blob. Each other row that it needs
                costs another try.

        Returns:
            The transaction that was committed, and the result of `decide`.

        Raises:
            SpaceDroppedError: the container was deleted.
            EngineUnavailableError: the outcome may be unknown.
        """
        return await self._engine.commit(space, name, self._change([LEDGER, CURRENT, *rows], decide))

    def commit_now(
        self, space: int, name: str, decide: Decide[T], waiter: Waiter, rows: Sequence[str] = ()
    ) -> T | Unknown:
        """Decide a change in this step, see `Engine.commit_now`; return the result of `decide`, or `UNKNOWN`."""
        found = self._engine.commit_now(space, name, self._change([LEDGER, CURRENT, *rows], decide), waiter)
        return UNKNOWN if found is UNKNOWN else found[1]

    def _change(self, rows: Sequence[str], decide: Decide[T]) -> Commit[tuple[Transaction, T]]:
        return Commit(rows, partial(self._decide, rows, decide))

    def _decide(
        self, rows: Sequence[str], decide: Decide[T], values: Values, now: int
    ) -> Decision[tuple[Transaction, T]] | Needs[tuple[Transaction, T]]:
        transaction = Transaction(rows, values, now, now if self._present is None else self._present())
        try:
            result = decide(transaction)
        except MissingRowError as needed:
            return Needs(instead=self._change([*rows, needed.row], decide))
        return Decision(transaction.changes(), (transaction, result))
