"""An `Engine` whose store the primary has open: the worker's side of the IPC protocol (see `messages`).

Invariants: each call has one response. Once the primary is gone, every call fails with `EngineUnavailableError`,
including calls in flight; the outcome of a commit in flight is then unknown. Cancelling a caller does not undo its
call.

With a `Replica`, reads ask the primary only while the replica cannot answer. The replica opens the store's files after
a first call to the primary, so that the primary knows of this worker before it caches a row.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

from lazulite.engine.commit import SWAP, Commit, CommitProcedure, Expected, Needs, Plain
from lazulite.engine.commit_needs import commit_prepared
from lazulite.engine.contract import (
    UNKNOWN,
    Clock,
    EngineUnavailableError,
    Key,
    KeyRange,
    Slice,
    Snapshot,
    Unknown,
    Waiter,
)
from lazulite.engine.key_encoding import encode_keys
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Channel, Message
from lazulite.engine.remote.codec import Codec
from lazulite.engine.remote.conditional_writes import WRITES_MAX, ConditionalWrites, Parts
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.engine.rocksdb.replica import Replica
from lazulite.engine.rocksdb.scan import Cursor, RowSlice

T = TypeVar("T")

_READ_BYTES_MAX = 1 << 20
"""So many bytes of a commit's rows are read in one step."""


async def _slices(cursor: Cursor) -> AsyncGenerator[RowSlice, None]:
    try:
        while not cursor.done:
            yield cursor.next_slice(time.perf_counter)
            await asyncio.sleep(0)
    finally:
        cursor.close()


class _PrimarySnapshot:
    """A `Snapshot` that the primary has."""

    def __init__(self, ask: Callable[..., Coroutine[Any, Any, Plain]], number: int) -> None:
        self._ask = ask
        self._number = number

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """See `Snapshot`."""
        lower, upper = key_range
        encoded = tuple(lower), None if upper is None else tuple(upper)
        found = await self._ask(messages.KEYS, self._number, space, encoded, limit)
        return [(partition, row) for partition, row in found]

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        values: list[bytes | None] = await self._ask(messages.VALUES, self._number, space, list(keys))
        return values


class RemoteEngine:
    """See above.

    Args:
        codec: the same as the primary's.
        clock: the time now, for commits that this process decides.
        lost: called when the primary is gone, unless `close` was called before.
    """

    def __init__(self, codec: Codec, clock: Clock, lost: Callable[[], None] = lambda: None) -> None:
        self.channel = Channel(self._received, self._gone)
        """To be connected with the primary's end before the first call."""
        self.invalidations: Mapping[int, Sequence[CacheInvalidation]] = {}
        """Caches by space, those of all services; to be set before the first call."""
        self._codec = codec
        self._clock = clock
        self._lost = lost
        self._number = 0
        self._pending: dict[int, asyncio.Future[Plain]] = {}
        self._scans: dict[int, asyncio.Queue[RowSlice | Exception | None]] = {}
        self._closed = ""
        self._writes = ConditionalWrites(self._send_writes)
        self._replica: Replica | None = None
        self._following: asyncio.Task[None] | None = None
        self._replica_reads = self._primary_reads = 0

    async def use(self, replica: Replica) -> None:
        """Read from a replica from now on, as far as it can answer."""
        await replica.open(self._flush)
        self._replica = replica
        self._following = asyncio.get_running_loop().create_task(replica.run(self._flush))

    def counters(self) -> Mapping[str, float]:
        """Return how many reads, of a row or of ranges, the replica and the primary have answered."""
        return {"replica_reads_total": self._replica_reads, "primary_reads_total": self._primary_reads}

    async def _flush(self) -> None:
        await self._ask(messages.FLUSH)

    # --- the engine

    commits_now = False

    @property
    def reads_now(self) -> bool:
        """See `Engine.reads_now`: there is a replica."""
        return self._replica is not None

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine.get`."""
        found = self.get_now(space, partition, row)
        if found is not UNKNOWN:
            return found
        self._primary_reads += 1
        value: bytes | None = await self._ask(messages.GET, space, partition, row)
        return value

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        """Return the row's value in the replica, see `Engine.get_now`."""
        if self._replica is None:
            return UNKNOWN
        value = self._replica.get(space, partition, row)
        if value is not UNKNOWN:
            self._replica_reads += 1
        return value

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> Unknown:  # noqa: ARG002 - the contract's
        """Return `UNKNOWN`, see `Engine.commit_now`."""
        return UNKNOWN

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """See `Engine.commit`. The codec must know the commit's procedure."""
        procedure = commit.procedure
        if procedure is None:
            return await self._decide_and_swap(space, partition, commit)
        writing = self._write(space, partition, commit, procedure)
        if writing is not None:
            timestamp = await writing
            if timestamp is not None:
                return procedure.decode_result(timestamp)
        payload = procedure.encode(commit.argument)
        return procedure.decode_result(await self._ask(messages.COMMIT, space, partition, procedure.name, payload))

    def _write(
        self, space: int, partition: str, commit: Commit[T], procedure: CommitProcedure[T]
    ) -> "asyncio.Future[int | None] | None":
        """Send a commit as conditional writes, and return the future of its timestamp; None if it comes to none."""
        rows = commit.rows
        if procedure.conditional is None or len(rows) > WRITES_MAX:
            return None
        self._check_open()
        writes = procedure.conditional(commit.argument, None)
        if writes is None and (values := self._read_now(space, partition, rows)) is not None:
            writes = procedure.conditional(commit.argument, values)
        if writes is None:
            return None
        return self._writes.add(space, procedure.name, encode_keys(space, partition, rows), writes)

    def _read_now(self, space: int, partition: str, rows: Sequence[str]) -> list[bytes | None] | None:
        """Return the values of rows in the replica; None if it cannot tell, or if they are large together."""
        values: list[bytes | None] = []
        left_bytes = _READ_BYTES_MAX
        for row in rows:
            value = self.get_now(space, partition, row)
            if value is UNKNOWN:
                return None
            left_bytes -= len(value or b"")
            if left_bytes < 0 and len(rows) > 1:
                return None
            values.append(value)
        return values

    def _send_writes(
        self,
        space: int,
        name: str,
        keys: Sequence[bytes],
        expected: Sequence[Expected],
        parts: Sequence[Parts],
        together: bool,
    ) -> "asyncio.Future[Plain]":
        response = self._post(messages.WRITE, space, name, keys, expected, parts, together)
        self.channel.send()
        return response

    async def _decide_and_swap(self, space: int, partition: str, commit: Commit[T]) -> T:
        """Decide in this process, and write if the rows are still those on which that was done."""
        rows = commit.rows
        while True:
            values = [await self.get(space, partition, row) for row in rows]
            decision = commit.decide(values, self._clock())
            if isinstance(decision, Needs):
                return await commit_prepared(self, space, partition, commit, decision)
            swap = SWAP.encode((dict(zip(rows, values, strict=True)), decision.changes, decision.companions))
            if await self._ask(messages.COMMIT, space, partition, SWAP.name, swap):
                return decision.result

    async def drop(self, space: int) -> None:
        """See `Engine.drop`."""
        await self._ask(messages.DROP, space)

    async def check_writable(self) -> None:
        """See `Engine.check_writable`."""
        await self._ask(messages.CHECK)

    async def call(self, procedure: str, *arguments: Plain) -> Plain:
        """See `Primary.call`."""
        return await self._ask(messages.CALL, procedure, arguments)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        """See `Engine.scan`."""
        self._check_open()
        replica = self._replica
        cursor = None if replica is None else replica.cursor(space, ranges, limit, keys_only=keys_only)
        if cursor is None:
            self._primary_reads += 1
            slices = self._scan_at_primary(space, ranges, limit, keys_only)
        else:
            self._replica_reads += 1
            slices = _slices(cursor)
        async with aclosing(slices):
            async for part in slices:
                yield part

    async def _scan_at_primary(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None, keys_only: bool
    ) -> AsyncGenerator[RowSlice, None]:
        number = self._next()
        slices = self._scans[number] = asyncio.Queue()
        encoded: list[Plain] = [(tuple(lower), upper and tuple(upper)) for lower, upper in ranges]
        self.channel.post((messages.SCAN, number, space, encoded, limit, keys_only))
        over = False
        try:
            while True:
                part = await slices.get()
                if not isinstance(part, RowSlice):
                    over = True
                    if part is not None:
                        raise part
                    return
                yield part
                self.channel.post((messages.MORE, number))
        finally:
            del self._scans[number]
            if not over:
                self.channel.post((messages.STOP, number))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """See `Engine.snapshot`."""
        self._check_open()
        replica = self._replica
        snapshot = None if replica is None else replica.snapshot()
        if snapshot is None:
            self._primary_reads += 1
            opened = self._post(messages.OPEN)
            number = self._number
            try:
                await opened
                yield _PrimarySnapshot(self._ask, number)
            finally:  # Also after a cancellation, as the primary opens it all the same.
                self.channel.post((messages.RELEASE, self._next(), number))
            return
        self._replica_reads += 1
        try:
            yield snapshot
        finally:
            snapshot.close()

    async def close(self) -> None:
        """See `Engine.close`; the primary's store stays open."""
        self._closed = self._closed or "the store is closing"
        await self._stop_following()
        if self._pending:
            await asyncio.wait(list(self._pending.values()))
        self.channel.close()
        await self.channel.closed()

    async def _stop_following(self) -> None:
        replica, self._replica = self._replica, None
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        if replica is not None:
            replica.close()

    # --- calls

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailableError(self._closed)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _post(self, kind: int, *arguments: Plain) -> "asyncio.Future[Plain]":
        """Send a call; return the future of its response."""
        number = self._next()
        answer: asyncio.Future[Plain] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        self.channel.post((kind, number, *arguments))
        return answer

    async def _ask(self, kind: int, *arguments: Plain) -> Plain:
        self._check_open()
        answer = self._post(kind, *arguments)
        try:
            return await answer
        finally:
            del answer  # An error's traceback refers to this frame, and the frame would refer to the error.

    def _received(self, message: Message) -> None:
        kind, number = message[0], message[1]
        if kind == messages.SLICE:
            self._deliver(number, RowSlice(message[2], message[3]))
        elif kind == messages.INVALIDATE:
            self._invalidate(*message[1:])
        elif kind == messages.END_INVALIDATION:
            self._end_invalidation(*message[1:])
        elif number in self._scans:
            self._deliver(number, None if kind == messages.DONE else self._codec.decode_failure(message))
        else:
            answer = self._pending.pop(number, None)
            if answer is None or answer.done():
                return  # A scan was stopped, or the caller was cancelled.
            if kind == messages.DONE:
                answer.set_result(message[2])
            else:
                answer.set_exception(self._codec.decode_failure(message))

    def _invalidate(self, number: int, space: int, keys: list[Key]) -> None:
        for cache in self.invalidations.get(space, ()):
            for key in keys:
                cache.begin_invalidation(key)
        self.channel.post((messages.ACKNOWLEDGE, number))

    def _end_invalidation(self, space: int, keys: list[Key]) -> None:
        for cache in self.invalidations.get(space, ()):
            for key in keys:
                cache.end_invalidation(key)

    def _deliver(self, number: Plain, part: RowSlice | Exception | None) -> None:
        slices = self._scans.get(number)
        if slices is not None:
            slices.put_nowait(part)

    def _gone(self) -> None:
        self._replica = None
        closing = self._closed != ""
        self._closed = self._closed or "the store's process is gone"
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(EngineUnavailableError(self._closed))
        self._pending.clear()
        for slices in self._scans.values():
            slices.put_nowait(EngineUnavailableError(self._closed))
        if not closing:
            self._lost()
