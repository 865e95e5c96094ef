"""Group commit: one write and one sync make many commits durable, and readers see durable values only.

    join          a commit adds each key's new value and its old one (the undo) to the *open* commit group
    close         the open group becomes the *flushing* one, and an empty group opens
    before_write  failpoint before each batch; before the first one the database holds nothing of the group
    write         the group enters the database as one unsynced batch, on the event loop; a large one as several, and
                  each but the last is synced, with the failpoints of a sync (see `rollback_journal`)
    before_sync   failpoint; the database holds all of the group, a power cut may take it back
    sync          a worker thread syncs the log, while new commits join the open group
    after_sync    failpoint; the group is durable, no waiter knows yet
    acknowledge   the group is discarded and its waiters resume, in one step of the event loop
    latest value  of a key, for commits: the open group's change, else the flushing group's, else the database's
    durable value of a key, for readers: the flushing group's undo, else the database's
    stall         the database rejected the whole write: both groups are rejected, later commits go on
    failure       of a write or sync: both groups are rejected, the undo stays for readers, no commit is accepted

Consequences:

- A reader sees all of a commit or nothing, and sees it from the moment that its writer is acknowledged.
- A commit that received a value from either group waits for that group, whether it writes or not.
- A stall rejects the open group too, because its commits may build on the flushing ones.
- After a failure the group commit is never used again. The database is opened anew, and its recovery puts whatever
  survived into synced files.
- The drop of a space has no undo. Until it is durable, `until_durable` covers all keys of the space, and readers wait.
- A commit reads, decides and joins the open group in one step of the event loop, so that no other commit comes between.
  If its reads are too large for one step, a read-ahead reads the values in several steps before that one. The group
  commit tells it of the commits that join meanwhile.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.rocksdb.commit_group import UNCHANGED, CommitGroup, KeyChange, Unchanged
from lazulite.engine.rocksdb.errors import StalledError, unavailable
from lazulite.engine.rocksdb.worker_thread import WorkerThread

Bounds = tuple[bytes, bytes]
"""The first key of a range, and the bound above its last."""

GROUP_BYTES_MAX = 1 << 20
"""A group of this size accepts no more commits, so that writing it never holds the event loop for long."""


class ReadAhead:
    """The latest values of the keys read so far."""

    __slots__ = ("_rejected", "_values")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes | None] = {}
        self._rejected: EngineError | None = None

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add a key with its latest value."""
        self._values[key] = value

    def follow(self, changed: Iterable[KeyChange]) -> None:
        """Take in the changes of another commit."""
        for key, _, after in changed:
            if key in self._values:
                self._values[key] = after

    def reject(self, error: EngineError) -> None:
        """Take in that commits whose changes may be among the values were rejected."""
        self._rejected = error

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the latest values of keys that were added.

        Raises:
            EngineUnavailableError: they were rejected.
        """
        if self._rejected is not None:
            raise unavailable(self._rejected)
        return [self._values[key] for key in keys]


class GroupCommit:
    """Collects commits into groups, flushes one group after the other and acknowledges its commits."""

    def __init__(
        self, write: Callable[[CommitGroup], Awaitable[None]], sync: Callable[[], None], worker: WorkerThread
    ) -> None:
        """`write` puts a group into the database; `sync` makes all that was written durable, in `worker`."""
        self.failure: EngineError | None = None
        """The error after which no commit is accepted."""
        self.on_failure: Callable[[], None] = lambda: None
        """Called once, after a failure, when no flush is in flight any more."""
        self.on_rejected_drops: Callable[[set[int]], None] = lambda _: None
        """Called with the spaces whose drop a stall rejected."""
        self._write = write
        self._sync = sync
        self._worker = worker
        self._open = CommitGroup()
        self._flushing: CommitGroup | None = None
        self._flush: asyncio.Task[None] | None = None
        self._closed: asyncio.Future[None] | None = None
        """Resolved when the open group closes, for commits that wait for room in the next one."""
        self._flush_lock = asyncio.Lock()
        self._read_ahead: set[ReadAhead] = set()

    # --- values that readers and commits see

    def durable(self, key: bytes) -> bytes | Unchanged | None:
        """Return a key's durable value where the database may hold a later one, else UNCHANGED."""
        return UNCHANGED if self._flushing is None else self._flushing.undo.get(key, UNCHANGED)

    def durable_within(self, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        """Return the value of `durable` for each key in some ranges (ascending, disjoint), except UNCHANGED ones."""
        if self._flushing is None:
            return {}
        starts = [start for start, _ in ranges]
        found: dict[bytes, bytes | None] = {}
        for key, value in self._flushing.undo.items():
            index = bisect_right(starts, key) - 1
            if index >= 0 and key < ranges[index][1]:
                found[key] = value
        return found

    def latest(self, key: bytes) -> bytes | Unchanged | None:
        """Return a key's latest value where the database may not hold it yet, else UNCHANGED."""
        value: bytes | Unchanged | None = self._open.changes.get(key, UNCHANGED)
        if value is UNCHANGED and self._flushing is not None:
            value = self._flushing.changes.get(key, UNCHANGED)
        return value

    @contextmanager
    def read_ahead(self) -> Iterator[ReadAhead]:
        """Yield a read-ahead that follows all commits meanwhile."""
        reads = ReadAhead()
        self._read_ahead.add(reads)
        try:
            yield reads
        finally:
            self._read_ahead.discard(reads)

    def pending_drops(self) -> set[int]:
        """Return the spaces whose drop is not durable yet."""
        flushing = self._flushing
        return self._open.dropped | (flushing.dropped if flushing is not None else set())

    # --- join, and wait

    @property
    def full(self) -> bool:
        """Whether the open group accepts no more commits: see `wait_for_room`."""
        return self._open.size_bytes >= GROUP_BYTES_MAX and self.failure is None

    async def wait_for_room(self) -> None:
        """Return when the open group accepts commits."""
        while self.full:
            if self._closed is None:
                self._closed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._closed)

    def join(self, changed: Sequence[KeyChange]) -> None:
        """Add the changes of a commit to the open group."""
        self._open.join(changed)
        for reads in self._read_ahead:
            reads.follow(changed)

    def join_drop(self, space: int) -> None:
        """Add the drop of a space to the open group; none of its keys may change from now on."""
        self._open.dropped.add(space)

    def until_all_durable(self) -> asyncio.Future[None]:
        """Return a future of the moment when all that joined is durable; it raises EngineError if that fails."""
        return self._wait(self._open)

    def until_durable(self, keys: Iterable[bytes], space: int) -> asyncio.Future[None] | None:
        """Return a future of the moment when the latest values of these keys are durable; None if they are."""
        keys = list(keys)
        for group in (self._open, self._flushing):
            if group is not None and group.touches(keys, space):
                return self._wait(group)
        return None

    async def drain(self) -> None:
        """Return when no flush is in flight."""
        while self._flush is not None:
            await asyncio.wait([self._flush])

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None, None]:
        """Pause flushes: between entering and leaving, everything that the database holds is durable.

        Raises:
            EngineUnavailableError: the group commit has failed.
        """
        async with self._flush_lock:
            if self.failure is not None:
                raise unavailable(self.failure)
            yield

    def _wait(self, group: CommitGroup) -> asyncio.Future[None]:
        # Asking for the running loop takes longer than all else here.
        loop = asyncio.get_running_loop() if self._flush is None else self._flush.get_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        if self.failure is not None:
            waiter.set_exception(unavailable(self.failure))
            return waiter
        group.waiters.append(waiter)
        if self._flush is None:
            self._flush = asyncio.create_task(self._flush_groups())
        return waiter

    # --- close, write, sync, acknowledge

    async def _flush_groups(self) -> None:
        """Flush one group after the other while commits wait."""
        try:
            while self._open.waiters:
                async with self._flush_lock:
                    await self._flush_group()
                await asyncio.sleep(0)  # Callers just acknowledged often commit again at once: let them join.
        except EngineError as error:
            self._fail(error)
        except BaseException:
            self._fail(EngineUnavailableError("a flush was broken off"))  # No waiter may wait for ever.
            raise
        finally:
            self._flush = None
            if self.failure is not None:
                self.on_failure()

    async def _flush_group(self) -> None:
        group = self._close()
        try:
            await self._write(group)
        except StalledError as error:
            self._reject_stalled(error)
            return
        await self._worker.run(self._sync)
        self._acknowledge(group)

    def _close(self) -> CommitGroup:
        """Make the open group the flushing one, and open an empty one."""
        closed = self._flushing = self._open
        self._reopen()
        return closed

    def _acknowledge(self, group: CommitGroup) -> None:
        self._flushing = None
        group.acknowledge()

    def _reopen(self) -> None:
        self._open = CommitGroup()
        self._admit()

    def _admit(self) -> None:
        """Let the commits proceed that wait for room."""
        if self._closed is not None:
            self._closed.set_result(None)
            self._closed = None

    def _reject_stalled(self, error: StalledError) -> None:
        """Discard both groups, of which the database holds nothing."""
        groups = (self._flushing, self._open)
        self.on_rejected_drops(self.pending_drops())
        self._flushing = None
        self._reopen()
        self._reject(groups, error)

    def _fail(self, error: EngineError) -> None:
        """Reject both groups; the flushing one stays, because readers need its undo."""
        self.failure = error
        self._admit()
        self._reject((self._flushing, self._open), error)

    def _reject(self, groups: Iterable[CommitGroup | None], error: EngineError) -> None:
        for group in groups:
            if group is not None:
                group.reject(error)
        for reads in self._read_ahead:
            reads.reject(error)
