"""Ways to break what workers promise together: `python -m tests.torture.linearizability.worker_mutations NAME …`.

The primary is a whole server. It breaks what it does itself, or starts its workers by the command above, which breaks
them and then does what `lazulite.app.worker` does.
"""

import asyncio
import itertools
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from lazulite.app import worker
from lazulite.app.registry import SPACES
from lazulite.engine.commit import Commit
from lazulite.engine.contract import UNKNOWN, Unknown, Waiter
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Message
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.rocksdb.change_log import ChangeLogReader
from lazulite.engine.rocksdb.database import Rows
from lazulite.engine.rocksdb.engine import RocksEngine, Written
from lazulite.engine.rocksdb.replica import Replica
from lazulite.server.server import Sockets
from tests.torture.variants import slow_syncs

LATE_READS = 8
"""One of so many reads finds the changes."""

Complete: TypeAlias = Callable[[int, Sequence[bytes]], bytes]
T = TypeVar("T")


def cache_rows() -> None:
    """Cache entities in the worker; only the worker's own writes evict them."""
    cached: dict[tuple[int, str, str], bytes | None] = {}
    get_now, plain = RemoteEngine.get_now, RemoteEngine.commit

    def get_cached(self: RemoteEngine, space: int, partition: str, row: str) -> bytes | Unknown | None:
        key = space, partition, row
        if space not in SPACES.watched and key in cached:
            return cached[key]
        value = get_now(self, *key)
        if value is not UNKNOWN:
            cached[key] = value
        return value

    async def evict(self: RemoteEngine, space: int, partition: str, commit: Commit[T]) -> T:
        try:
            return await plain(self, space, partition, commit)
        finally:
            for row in commit.rows:
                cached.pop((space, partition, row), None)

    RemoteEngine.get_now = get_cached  # type: ignore[method-assign]  # That is the mutation.
    RemoteEngine.commit = evict  # type: ignore[method-assign]


def acknowledge_without_evicting() -> None:
    """Acknowledge evictions of cached tables and properties, and keep them."""
    received = RemoteEngine._received

    def acknowledge(self: RemoteEngine, message: Message) -> None:
        if message[0] == messages.INVALIDATE:
            self.channel.post((messages.ACKNOWLEDGE, message[1]))
        elif message[0] != messages.END_INVALIDATION:
            received(self, message)

    RemoteEngine._received = acknowledge  # type: ignore[method-assign]


def read_changes_late() -> None:
    """Read entities without looking for later changes, mostly."""
    is_behind: property = vars(ChangeLogReader)["is_behind"]
    get = Replica.get
    asked = itertools.count(1)
    late = False

    def get_late(self: Replica, space: int, partition: str, row: str) -> bytes | Unknown | None:
        nonlocal late
        late = space not in SPACES.watched and next(asked) % LATE_READS != 0
        try:
            return get(self, space, partition, row)
        finally:
            late = False

    def is_known_behind(self: ChangeLogReader) -> bool:
        return not late and bool(is_behind.__get__(self))

    Replica.get = get_late  # type: ignore[method-assign]  # That is the mutation.
    ChangeLogReader.is_behind = property(is_known_behind)  # type: ignore[assignment, method-assign]


def write_whatever_the_row_is() -> None:
    """Compare no row with what a conditional write of a worker expects."""
    write_now = RocksEngine.write_now

    def write_anyway(
        self: RocksEngine, space: int, rows: Rows, complete: Complete, waiter: Waiter, *, together: bool
    ) -> Written | Unknown:
        return write_now(
            self, space, [(key, True, parts) for key, _, parts in rows], complete, waiter, together=together
        )

    RocksEngine.write_now = write_anyway  # type: ignore[method-assign]  # That is the mutation.


def write_a_part_of_a_transaction() -> None:
    """Write those entities of a transaction that are as expected."""
    write_now = RocksEngine.write_now

    def write_part(
        self: RocksEngine, space: int, rows: Rows, complete: Complete, waiter: Waiter, *, together: bool
    ) -> Written | Unknown:
        return write_now(self, space, rows, complete, waiter, together=False)

    RocksEngine.write_now = write_part  # type: ignore[method-assign]  # That is the mutation.


def repeat_timestamps() -> None:
    """Give conditional writes timestamps that stand still for long."""
    write_now = RocksEngine.write_now

    def write_by_stopped_clock(
        self: RocksEngine, space: int, rows: Rows, complete: Complete, waiter: Waiter, *, together: bool
    ) -> Written | Unknown:
        database = self._lifecycle.writable()
        newest, clock = database.newest_timestamp, self._clock
        self._clock = lambda: newest
        try:
            return write_now(self, space, rows, complete, waiter, together=together)
        finally:
            database.newest_timestamp, self._clock = newest, clock

    RocksEngine.write_now = write_by_stopped_clock  # type: ignore[method-assign]  # That is the mutation.


def acknowledge_before_the_flush() -> None:
    """Acknowledge conditional writes when they have joined a commit group; on a slow disk, so that there is one."""
    slow_syncs()
    write_now = RocksEngine.write_now

    def write_and_tell(
        self: RocksEngine, space: int, rows: Rows, complete: Complete, waiter: Waiter, *, together: bool
    ) -> Written | Unknown:
        later: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written = write_now(self, space, rows, complete, later, together=together)
        if written is not UNKNOWN and len(written.declined) < len(rows):
            asyncio.get_running_loop().call_soon(waiter.set_result, None)
        return written

    RocksEngine.write_now = write_and_tell  # type: ignore[method-assign]  # That is the mutation.


_IN_WORKERS: dict[str, Callable[[], None]] = {
    "cache-rows": cache_rows,
    "acknowledge-without-evicting": acknowledge_without_evicting,
    "read-changes-late": read_changes_late,
}

DETECTED_BY = {
    "cache-rows": "no order explains",
    "acknowledge-without-evicting": "was not seen by all workers",
    "read-changes-late": "no order explains",
    "write-whatever-the-row-is": "no order explains",
    "write-a-part-of-a-transaction": "no order explains",
    "repeat-timestamps": "have the same ETag",
    "acknowledge-before-the-flush": "no order explains",
}
"""A part of the problem that reports each."""


def _start_broken(name: str) -> None:
    command = worker.command

    def broken(lock: int, log: int | None, store: int, passage: int, sockets: Sequence[Sockets]) -> Sequence[str]:
        python, option, _, *arguments = command(lock, log, store, passage, sockets)
        return [python, option, "tests.torture.linearizability.worker_mutations", name, *arguments]

    worker.command = broken


MUTATIONS: dict[str, Callable[[], None]] = {
    **{name: partial(_start_broken, name) for name in _IN_WORKERS},
    "write-whatever-the-row-is": write_whatever_the_row_is,
    "write-a-part-of-a-transaction": write_a_part_of_a_transaction,
    "repeat-timestamps": repeat_timestamps,
    "acknowledge-before-the-flush": acknowledge_before_the_flush,
}


if __name__ == "__main__":
    _IN_WORKERS[sys.argv[1]]()
    sys.exit(worker.main(sys.argv[2:]))
