"""What a partition holds and what it becomes, in the database's ways of saying it: by statements, or by scripts."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

import asyncpg

from lazulite.engine.postgres.connection import Connection
from lazulite.engine.postgres.errors import AGAIN, CHECK_FAILED
from lazulite.engine.postgres.pool import Pool
from lazulite.engine.postgres.request_batcher import Gather
from lazulite.engine.postgres.sql_scripts import Place, RowChange, apply_script
from lazulite.engine.postgres.sql_statements import APPLY, LOCK, READ, READ_ONE

_BYTES_OF_A_ROW = 16 << 10
"""A value weighs one row more for each of these, so that no statement of many commits grows beyond some megabytes."""


class Reading(NamedTuple):
    """What was read of a partition."""

    head: int
    """The stamp of its last commit; 0: there was none."""
    rows: dict[bytes, bytes | None]
    """The values of the rows asked for that are there, by the forms of their keys."""


class Asked(NamedTuple):
    """What is to be read."""

    place: Place
    row_keys: Sequence[bytes]
    """Forms."""


class Change(NamedTuple):
    """What a partition becomes, if its head is `before`."""

    place: Place
    before: int
    after: int
    rows: Sequence[RowChange]


class Changes(Protocol):
    """A way of saying it."""

    def read(self, asked: Asked) -> Awaitable[Reading]:
        """Return what gives a partition's head and some of its rows, of one moment."""
        ...

    def apply(self, change: Change) -> Awaitable[bool]:
        """Return what does all of a change, or nothing if the head is another one by now, and tells whether it did."""
        ...

    async def settle(self, asked: Asked, decide: Callable[[Reading], Change | None]) -> bool:
        """Read a partition and change it as is decided then, while no other process writes to it.

        Returns whether it was done: a partition without a head cannot be kept from others, and the database may undo
        it for their sake.
        """
        ...

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        ...


class ByStatements:
    """One statement for the partitions of several commits."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.read = Gather(self._read, lambda asked: len(asked.row_keys))
        self.apply = Gather(self._apply, _weight)

    async def finished(self) -> None:
        """See `Changes`."""
        await self.read.finished()
        await self.apply.finished()

    async def _read(self, group: Sequence[Asked]) -> Sequence[Reading]:
        places = [asked.place[:2] for asked in group]
        rows = [(at, *asked.place[:2], row_key) for at, asked in enumerate(group, 1) for row_key in asked.row_keys]
        found = await self._pool.fetch(READ, *_columns(places, 2), *_columns(rows, 4), reads=True)
        heads = [0] * len(group)
        values: list[dict[bytes, bytes | None]] = [{} for _ in group]
        for at, row_key, value, stamp in found:
            if row_key is None:
                heads[at - 1] = stamp
            else:
                values[at - 1][row_key] = value
        return [Reading(*both) for both in zip(heads, values, strict=True)]

    async def _apply(self, group: Sequence[Change]) -> Sequence[bool]:
        done = await self._pool.fetch(APPLY, *_apply_arguments(group))
        moved = {tuple(record) for record in done}
        return [change.place[:2] in moved for change in group]

    async def settle(self, asked: Asked, decide: Callable[[Reading], Change | None]) -> bool:
        """See `Changes`."""
        try:
            async with self._pool.transaction() as connection:
                change = decide(await _locked(connection, asked))
                return change is None or bool(await connection.fetch(APPLY, *_apply_arguments([change])))
        except AGAIN:
            return False


class ByScripts:
    """One statement to read and one script to write, for each partition by itself."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, asked: Asked) -> Reading:
        """See `Changes`."""
        return _reading(await self._pool.fetch(READ_ONE, *_read_arguments(asked), reads=True))

    async def apply(self, change: Change) -> bool:
        """See `Changes`."""
        try:
            await self._pool.run(apply_script(*change))
        except CHECK_FAILED:
            return False
        return True

    async def settle(self, asked: Asked, decide: Callable[[Reading], Change | None]) -> bool:
        """See `Changes`."""
        try:
            async with self._pool.transaction() as connection:
                change = decide(await _locked(connection, asked))
                if change is not None:
                    await connection.execute(apply_script(*change))
        except (*CHECK_FAILED, *AGAIN):
            return False
        return True

    async def finished(self) -> None:
        """See `Changes`."""


async def _locked(connection: Connection, asked: Asked) -> Reading:
    await connection.fetch(LOCK, *asked.place[:2])
    return _reading(await connection.fetch(READ_ONE, *_read_arguments(asked)))


def _read_arguments(asked: Asked) -> Sequence[object]:
    return (*asked.place[:2], list(asked.row_keys))


def _reading(found: Sequence[asyncpg.Record]) -> Reading:
    head = next((stamp for row_key, _, stamp in found if row_key is None), 0)
    return Reading(head, {row_key: value for row_key, value, _ in found if row_key is not None})


def _apply_arguments(group: Sequence[Change]) -> Sequence[object]:
    ordered = sorted(group, key=lambda change: change.place[:2])  # So that no two wait for each other.
    heads = [(*change.place[:2], change.before, change.after) for change in ordered]
    gone, written = [], []
    for place, _, _, rows in ordered:
        for row_key, long_row_key, stamp, value in rows:
            if value is None:
                gone.append((*place[:2], row_key))
            else:
                written.append((*place[:2], row_key, stamp, value, place[2], long_row_key))
    return [*_columns(heads, 4), *_columns(gone, 3), *_columns(written, 7)]


def _weight(change: Change) -> int:
    return sum(1 + len(row.value or b"") // _BYTES_OF_A_ROW for row in change.rows)


def _columns(rows: Sequence[tuple[object, ...]], count: int) -> Sequence[Sequence[object]]:
    return list(zip(*rows, strict=True)) if rows else [()] * count
