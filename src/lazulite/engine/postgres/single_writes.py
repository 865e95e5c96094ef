"""Commits of one row that need not be read: written on condition, in one round trip.

Those that come while others are on their way are gathered into one statement, which locks the heads of its partitions
in order. Each has a stamp of its own, and all of them are above `base`, below which the heads must be. A row that is
not as foreseen leaves its write undone, and whoever asked for it does it the long way. So does a head that is not,
which another process has set meanwhile; but then the write is first sent again, with a later stamp.

A partition is in one statement at a time: of two, the one that gets the lock later would find the head above its base.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lazulite.engine.postgres.batch_window import Traffic
from lazulite.engine.postgres.errors import CHECK_FAILED, again
from lazulite.engine.postgres.pool import Argument, Pool
from lazulite.engine.postgres.sql_scripts import Place, RowChange, write_script
from lazulite.engine.postgres.sql_statements import DELETE_PRESENT, INSERT, REPLACE, UPDATE_PRESENT
from lazulite.engine.postgres.stamps import Stamps
from lazulite.engine.precondition import Expect, Foreseeing, Foreseen

_STATEMENTS = (INSERT, REPLACE, UPDATE_PRESENT, DELETE_PRESENT)
_PATIENCE_SECONDS = 0.005
"""What a write may wait for others at most: a little longer than a statement takes on a disk that is fast."""
_GROUP_MAX = 64
_GROUP_BYTES = 4 << 20
"""A statement takes no more values from here on, so that sending it never holds the event loop for long."""
_TRIES_MAX = 4
"""How often a write is sent: a clock that is slow would find heads above it for ever."""

Partition = tuple[int, bytes]
"""A space, and the form of a partition key."""


@dataclass(slots=True, eq=False)
class SingleWrite:
    """A write that waits."""

    place: Place
    row_key: bytes
    long_row_key: bytes | None
    decision: Foreseeing
    foreseen: Foreseen
    answer: "asyncio.Future[int | None]"
    tries: int = 0

    @property
    def partition(self) -> Partition:
        """Where it is."""
        return self.place[0], self.place[1]


class SingleWrites:
    """See above.

    Args:
        pool: of connections.
        stamps: of this process.
        scripts: whether each write goes by itself, as a script.
    """

    def __init__(self, pool: Pool, stamps: Stamps, *, scripts: bool) -> None:
        self._pool = pool
        self._stamps = stamps
        self._scripts = scripts
        self._waiting: dict[str, list[SingleWrite]] = {statement: [] for statement in _STATEMENTS}
        self._traffic = {
            statement: Traffic(_GROUP_MAX, _PATIENCE_SECONDS, partial(self._send, statement))
            for statement in _STATEMENTS
        }
        self._due: set[str] = set()
        """The statements for which it will be looked in a moment what can go."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.busy: dict[Partition, asyncio.Future[None]] = {}
        """The partitions that a statement is on its way to, and what is done when it is not."""

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def write(self, write: SingleWrite) -> int | None:
        """Return the stamp of a write; None if its row, or the head of its partition, was not as foreseen."""
        if self._scripts:
            return await self._write_script(write)
        statement = _statement(write.foreseen)
        self._waiting[statement].append(write)
        if statement not in self._due:
            self._due.add(statement)
            asyncio.get_running_loop().call_soon(self._send, statement)  # Others of this turn come along.
        return await write.answer

    def give_up(self, partition: Partition) -> None:
        """Leave undone what waits for a partition, since somebody else keeps it for who knows how long."""
        for waiting in self._waiting.values():
            for write in [each for each in waiting if each.partition == partition]:
                waiting.remove(write)
                if not write.answer.done():  # Somebody who does not wait any more.
                    write.answer.set_result(None)

    def _send(self, statement: str) -> None:
        self._due.discard(statement)
        traffic = self._traffic[statement]
        while traffic.allows(len(self._waiting[statement])):
            group, later = self._next_group(statement)
            if not group or not traffic.allows(len(group)):  # Not all that wait can go.
                return
            self._waiting[statement] = later
            done = asyncio.get_running_loop().create_future()
            traffic.leave(done, len(group))
            self.busy.update(dict.fromkeys((write.partition for write in group), done))
            task = asyncio.create_task(self._write(statement, group, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next_group(self, statement: str) -> tuple[list[SingleWrite], list[SingleWrite]]:
        """Return the writes that can go now, none to a busy partition or to the row of another one; and the others."""
        group: list[SingleWrite] = []
        later: list[SingleWrite] = []
        rows: set[tuple[Partition, bytes]] = set()
        for write in self._waiting[statement]:
            row = write.partition, write.row_key
            if write.answer.done():  # Somebody who does not wait any more.
                continue
            if len(group) >= _GROUP_MAX or write.partition in self.busy or row in rows:
                later.append(write)
            else:
                group.append(write)
                rows.add(row)
        return group, later

    async def _write(self, statement: str, group: list[SingleWrite], done: "asyncio.Future[None]") -> None:
        try:
            await self._write_group(statement, group)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever.
            for write in group:
                if not write.answer.done():
                    write.answer.set_exception(again(error))
        finally:
            for write in group:
                self.busy.pop(write.partition, None)
            done.set_result(None)
            self._traffic[statement].arrive(done)
            for each in _STATEMENTS:
                self._send(each)

    async def _write_group(self, statement: str, group: Sequence[SingleWrite]) -> None:
        base = self._stamps.take(len(group))
        rows: list[tuple[int, SingleWrite, bytes | None]] = []
        once_more = []
        size = 0
        for stamp, write in enumerate(group, base):
            if size >= _GROUP_BYTES:
                once_more.append(write)
                continue
            try:
                value = write.decision.value(stamp)
            except BaseException as refusal:  # noqa: BLE001 - of this one only; it is handed to whoever asked.
                if not write.answer.done():
                    write.answer.set_exception(again(refusal))
            else:
                rows.append((stamp, write, value))
                size += len(value or b"")
        if not rows:
            return
        heads = {write.partition: stamp for stamp, write, _ in rows}
        found = {record[0] for record in await self._pool.fetch(statement, *_arguments(base, heads, rows))}
        for stamp, write, _ in rows:
            write.tries += 1
            if write.answer.done():  # Somebody who does not wait any more.
                continue
            if -heads[write.partition] not in found and write.tries < _TRIES_MAX:
                once_more.append(write)
            else:
                write.answer.set_result(stamp if stamp in found else None)
        self._waiting[statement][:0] = once_more

    async def _write_script(self, write: SingleWrite) -> int | None:
        stamp = self._stamps.take()
        expects, _, expected = write.foreseen
        change = RowChange(write.row_key, write.long_row_key, stamp, write.decision.value(stamp))
        absent, present = expects is Expect.ABSENT, expects is Expect.PRESENT
        try:
            await self._pool.run(write_script(write.place, change, expected, absent=absent, present=present))
        except CHECK_FAILED:
            return None
        return stamp


def _statement(foreseen: Foreseen) -> str:
    if foreseen.expects is Expect.PRESENT:
        return DELETE_PRESENT if foreseen.deletes else UPDATE_PRESENT
    return INSERT if foreseen.expects is Expect.ABSENT else REPLACE


def _arguments(
    base: int, heads: Mapping[Partition, int], rows: Sequence[tuple[int, SingleWrite, bytes | None]]
) -> Sequence[Argument]:
    locked = sorted(heads)
    told = [
        (*write.place[:2], write.row_key, stamp, value, write.place[2], write.long_row_key, write.foreseen.stamp)
        for stamp, write, value in rows
    ]
    return [
        [space for space, _ in locked],
        [partition_key for _, partition_key in locked],
        [heads[partition] for partition in locked],
        base,
        *zip(*told, strict=True),
    ]
