"""Reads and changes of a partition in the database, by statements or by scripts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import asyncpg

from lazulite.engine.postgres.citus.node_batchers import NodeBatchers
from lazulite.engine.postgres.citus.shard_map import ShardMap
from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import CHECK_FAILED, RETRYABLE
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import RequestBatcher
from lazulite.engine.postgres.sql_scripts import (
    CompanionChange,
    PartitionAddress,
    RowChange,
    RowPrefix,
    RowWrite,
    apply_script,
    write_script,
)
from lazulite.engine.postgres.sql_statements import APPLY, APPLY_WITH_COMPANIONS, LOCK, READ, READ_ONE

_BYTES_OF_A_ROW = 16 << 10
"""A value weighs one row more for each of these bytes, so that statements stay below some megabytes."""


class PartitionState(NamedTuple):
    """A partition's version and some of its rows, of one moment."""

    version: int
    """The timestamp of its last commit, in ticks; 0: there was none."""
    rows: dict[bytes, bytes | None]
    """The values of the requested rows that are present, by index key."""


class PartitionRead(NamedTuple):
    """A request for a partition's version and some of its rows."""

    address: PartitionAddress
    row_keys: Sequence[bytes]
    """Index keys."""


class PartitionChange(NamedTuple):
    """A change of a partition whose version is `before`; its version becomes `after`."""

    address: PartitionAddress
    before: int
    after: int
    rows: Sequence[RowChange]
    expected: Sequence[RowPrefix] = ()
    """What some rows must begin with."""
    companions: Sequence[CompanionChange] = ()
    """Changes of rows elsewhere, made with those of the partition."""


T = TypeVar("T")

Decide: TypeAlias = Callable[[PartitionState], tuple[PartitionChange | None, T]]
"""Returns the change of a partition for its state (None: there is none), and what is known if the change is made."""


AskedRows: TypeAlias = Callable[[], Sequence[bytes]]
"""Returns the index keys of rows to read, once the partition is locked."""

Write = Callable[[Sequence[RowWrite], int], Awaitable[bool]]
"""Makes writes to a partition whose version is below a base, if all rows are as expected; returns whether it did."""


class PartitionIo(Protocol):
    """Reads and changes partitions."""

    def read(self, request: PartitionRead) -> Awaitable[PartitionState]:
        """Return an awaitable of a partition's version and rows."""
        ...

    def apply(self, change: PartitionChange) -> Awaitable[bool]:
        """Return an awaitable of whether the change was made.

        It is not if the partition's version is another one, or if an expected row is missing or begins otherwise.
        """
        ...

    @property
    def write(self) -> Write | None:
        """Makes writes to a partition that was not read; None: a read costs little, as many commits share it."""
        ...

    async def apply_locked(self, address: PartitionAddress, asked: AskedRows, decide: Decide[T]) -> T | None:
        """Lock a partition, read the rows that are asked for then, and make the change that `decide` returns.

        Returns:
            What `decide` returned with the change; None if the change was not made. A partition without a version row
            cannot be locked, and the database may undo the transaction in favour of another one.
        """
        ...

    async def finished(self) -> None:
        """Return when no request is in flight."""
        ...


class StatementIo:
    """One statement for the partitions of several commits: `PartitionIo` by statements."""

    write = None

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.read = RequestBatcher(self._read, lambda request: len(request.row_keys))
        self.apply = RequestBatcher(self._apply, _weight)

    async def finished(self) -> None:
        """See `PartitionIo`."""
        await self.read.finished()
        await self.apply.finished()

    async def _read(self, batch: Sequence[PartitionRead]) -> Sequence[PartitionState]:
        addresses = [request.address[:2] for request in batch]
        rows = [
            (at, *request.address[:2], row_key) for at, request in enumerate(batch, 1) for row_key in request.row_keys
        ]
        found = await self._pool.fetch(READ, *_columns(addresses, 2), *_columns(rows, 4), reads=True)
        versions = [0] * len(batch)
        values: list[dict[bytes, bytes | None]] = [{} for _ in batch]
        for at, row_key, value, timestamp in found:
            if row_key is None:
                versions[at - 1] = timestamp
            else:
                values[at - 1][row_key] = value
        return [PartitionState(*both) for both in zip(versions, values, strict=True)]

    async def _apply(self, batch: Sequence[PartitionChange]) -> Sequence[bool]:
        statement, arguments = _apply_statement(batch)
        done = await self._pool.fetch(statement, *arguments)
        moved = {tuple(record) for record in done}
        return [change.address[:2] in moved for change in batch]

    async def apply_locked(self, address: PartitionAddress, asked: AskedRows, decide: Decide[T]) -> T | None:
        """See `PartitionIo`."""
        try:
            async with self._pool.transaction() as connection:
                change, known = decide(await _read_locked(connection, address, asked))
                if change is None:
                    return known
                statement, arguments = _apply_statement([change])
                return known if await connection.fetch(statement, *arguments) else None
        except RETRYABLE:
            return None


class ScriptIo:
    """One statement to read each partition, and one script for the changes that wait for a node: `PartitionIo`.

    A change that is not as expected undoes the script; then each change is sent by itself.
    """

    def __init__(self, pool: Pool, shards: ShardMap) -> None:
        self._pool = pool
        self._shards = shards
        self._applies = NodeBatchers(shards, lambda: RequestBatcher(self._apply, _weight))

    async def read(self, request: PartitionRead) -> PartitionState:
        """See `PartitionIo`."""
        partition = request.address.partition_key
        return _state(await self._pool.fetch(READ_ONE, *_read_arguments(request), reads=True, partition=partition))

    def apply(self, change: PartitionChange) -> Awaitable[bool]:
        """See `PartitionIo`."""
        return self._applies.of(change.address.partition_key)(change)

    async def _apply(self, batch: Sequence[PartitionChange]) -> Sequence[bool]:
        if len(batch) > 1:
            in_order = sorted(batch, key=self._order)  # As in `conditional_writes`, so that no two scripts deadlock.
            if await self._run(";\n".join(apply_script(*change) for change in in_order), batch[0].address):
                return [True] * len(batch)
        return await asyncio.gather(*(self._run(apply_script(*change), change.address) for change in batch))

    def _order(self, change: PartitionChange) -> tuple[int, int, bytes]:
        return self._shards.shard(change.address.partition_key), *change.address[:2]

    async def write(self, writes: Sequence[RowWrite], base: int) -> bool:
        """See `PartitionIo`."""
        return await self._run(write_script([writes], base), writes[0].address)

    async def _run(self, script: str, address: PartitionAddress) -> bool:
        try:
            await self._pool.run(script, address.partition_key)
        except CHECK_FAILED:
            return False
        return True

    async def apply_locked(self, address: PartitionAddress, asked: AskedRows, decide: Decide[T]) -> T | None:
        """See `PartitionIo`."""
        try:
            async with self._pool.transaction(address.partition_key) as connection:
                change, known = decide(await _read_locked(connection, address, asked))
                if change is not None:
                    await connection.execute(apply_script(*change))
        except (*CHECK_FAILED, *RETRYABLE):
            return None
        return known

    async def finished(self) -> None:
        """See `PartitionIo`."""
        await self._applies.finished()


async def _read_locked(connection: Connection, address: PartitionAddress, asked: AskedRows) -> PartitionState:
    await connection.fetch(LOCK, *address[:2])
    return _state(await connection.fetch(READ_ONE, *_read_arguments(PartitionRead(address, asked()))))


def _read_arguments(request: PartitionRead) -> Sequence[object]:
    return (*request.address[:2], list(request.row_keys))


def _state(found: Sequence[asyncpg.Record]) -> PartitionState:
    version = next((timestamp for row_key, _, timestamp in found if row_key is None), 0)
    return PartitionState(version, {row_key: value for row_key, value, _ in found if row_key is not None})


def _apply_statement(batch: Sequence[PartitionChange]) -> tuple[str, Sequence[object]]:
    """Return the statement that makes changes, and its arguments."""
    ordered = sorted(
        batch, key=lambda change: change.address[:2]
    )  # In one order, so that no two statements wait for each other.
    versions = [(*change.address[:2], change.before, change.after) for change in ordered]
    gone, written = [], []
    for address, _, _, rows, *_ in ordered:
        for row_key, long_row_key, timestamp, value in rows:
            if value is None:
                gone.append((*address[:2], row_key))
            else:
                written.append((*address[:2], row_key, timestamp, value, address[2], long_row_key))
    expected = [(*change.address[:2], *each) for change in ordered for each in change.expected]
    arguments = [*_columns(versions, 4), *_columns(gone, 3), *_columns(written, 7), *_columns(expected, 4)]
    companions = sorted(
        (*address[:2], *row, *change.address[:2], address[2])
        for change in ordered
        for address, row in change.companions
    )
    if not companions:
        return APPLY, arguments
    return APPLY_WITH_COMPANIONS, [*arguments, *_columns(companions, 9)]


def _weight(change: PartitionChange) -> int:
    return sum(1 + len(row.value or b"") // _BYTES_OF_A_ROW for row in change.rows) + len(change.companions)


def _columns(rows: Sequence[tuple[object, ...]], count: int) -> Sequence[Sequence[object]]:
    return list(zip(*rows, strict=True)) if rows else [()] * count
