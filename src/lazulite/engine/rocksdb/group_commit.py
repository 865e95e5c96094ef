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
- After a failure the group commit is never used again. The database is opened again, and its recovery puts whatever
  survived into synced files.
- The drop of a space has no undo. Until it is durable, `until_durable` covers all keys of the space, and readers wait.
- A commit reads, decides and joins the open group in one step of the event loop, so that no other commit comes between.
  If its reads are too large for one step, a read-ahead reads the values in several steps before that one. The group
  commit tells it of the commits that join meanwhile.

A commit group is the changes between two flushes, kept in memory until the next flush writes them. The worker thread
runs what blocks, one call after the other. An executor of the standard library needs twice the processor time for a
call, because its futures can be waited for in any thread; these can be awaited only, and a write that is alone waits
for such a call. The thread is started when it is made: see `thread_pool`. Where it has no memory to report an outcome,
the process ends by SIGABRT, since the caller would wait forever.

The binding raises a bare `Exception` whose text begins with RocksDB's status ("Corruption: ...", "IO error: ..."). So
the type says nothing, and `engine_error` is the one place that reads the text.
"""

import asyncio
import os
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from enum import Enum, auto
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Final, Generic, NamedTuple, TypeVar

from rocksdict import DbClosedError

from lazulite.engine.commit import Changes, Needs, Values
from lazulite.engine.contract import EngineError, EngineUnavailableError, Waiter

T = TypeVar("T")

KeyChange = tuple[bytes, bytes | None, bytes | None]
"""A key, its old value and its new one; None: absent."""

GroupChanges = Mapping[bytes, bytes | None]
"""New values by key; None: absent."""
_NO_CHANGES: GroupChanges = {}

Bounds = tuple[bytes, bytes]
"""The first key of a range, and the bound above its last."""

GROUP_BYTES_MAX = 1 << 20
"""A group of this size accepts no more commits, so that writing it never holds the event loop for long."""


class StalledError(EngineUnavailableError):
    """RocksDB stalls writes until its flushes or compactions catch up; nothing was written."""


class _StoreErrors:
    """`with STORE_ERRORS:` turns what RocksDB raises inside into an `EngineError`; everything else passes."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Exactly Exception is RocksDB's; subclasses (a programming error, a rejection) are not. A panic is the
        # binding's, when there is no memory for its result; its class cannot be imported.
        if error is not None and (kind in (Exception, DbClosedError) or type(error).__name__ == "PanicException"):
            raise engine_error(str(error)) from error


STORE_ERRORS = _StoreErrors()


def unavailable(error: EngineError) -> EngineUnavailableError:
    """Return an error for one of many waiters, caused by `error`: a traceback grows where one is raised twice."""
    one = EngineUnavailableError(str(error))
    one.__cause__ = error
    return one


def engine_error(text: str) -> EngineError:
    """Return the engine error that a RocksDB error text means."""
    reason = " ".join(text.split())
    if reason.startswith("Result incomplete"):
        return StalledError("the store is behind with its background work")
    if reason.startswith("Corruption"):
        return EngineError(f"the store is damaged: {reason}")
    return EngineUnavailableError(f"the store cannot serve: {reason}")


class _Call(Generic[T]):
    """A function to call, and the future of its outcome. A call whose caller was cancelled runs all the same."""

    __slots__ = ("_function", "_loop", "outcome")

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[T] = self._loop.create_future()

    def run(self) -> None:
        """Call the function, in this thread."""
        try:
            settle = partial(self._succeed, self._function())
        except BaseException as error:  # noqa: BLE001 - the caller gets it, whatever it is.
            settle = partial(self._fail, error)
        with suppress(RuntimeError):  # The loop was closed, and the caller with it.
            self._loop.call_soon_threadsafe(settle)

    def _succeed(self, result: T) -> None:
        if not self.outcome.done():
            self.outcome.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)


class WorkerThread:
    """A thread, running from now on.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call[object] | None] = SimpleQueue()
        # A process may end without a shutdown, as after a crash: it must not wait for the thread.
        self._thread: Thread | None = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function after all earlier ones; return the future of its result, or of its exception."""
        call = _Call(function)
        self._calls.put(call)  # type: ignore[arg-type]  # The result's type is that of the caller's future.
        return call.outcome

    def __enter__(self) -> "WorkerThread":
        """Return this thread, to be shut down at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Shut down."""
        self.shutdown()

    def shutdown(self) -> None:
        """End the thread after all calls so far."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        try:
            while (call := self._calls.get()) is not None:
                call.run()
                del call  # While it waits for the next one, the thread keeps nothing.
        except BaseException:  # noqa: BLE001 - a call raises nothing, so there is no memory.
            os.abort()


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    TOKEN = auto()


UNCHANGED: Final = Unchanged.TOKEN
"""Says that a commit group does not change a key, so that its value is found further down."""


class Outcome(NamedTuple, Generic[T]):
    """The outcome of a commit, and the future of the moment when the caller may learn it (None: now)."""

    result: T | Needs[T] | Exception
    """An exception rejects the commit: no commit has such a result."""
    durable: asyncio.Future[None] | None


class CommitGroup:
    """Changes that become durable together.

    Attributes:
        changes: the last new value of each key; None is a deletion.
        undo: the value of each key before the group.
        dropped: spaces dropped, after all changes of their keys.
        size_bytes: size of the keys and values of all changes.
        waiters: to be resolved once the group is durable, futures most of them.
    """

    __slots__ = ("changes", "dropped", "size_bytes", "undo", "waiters")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.undo: dict[bytes, bytes | None] = {}
        self.dropped: set[int] = set()
        self.size_bytes = 0
        self.waiters: list[Waiter] = []

    def join(self, changed: Iterable[KeyChange]) -> None:
        """Add the changes of a commit."""
        undo, changes = self.undo, self.changes
        size_bytes = self.size_bytes
        for key, before, after in changed:
            undo.setdefault(key, before)
            changes[key] = after
            size_bytes += len(key) + (0 if after is None else len(after))
        self.size_bytes = size_bytes

    def touches(self, keys: Iterable[bytes], space: int) -> bool:
        """Return whether the group changes one of these keys of a space, or drops the space."""
        return space in self.dropped or any(key in self.changes for key in keys)

    def acknowledge(self) -> None:
        """Resolve the waiters: the whole group is durable."""
        for waiter in self.waiters:
            if not waiter.done():  # The task of a waiter may have been cancelled.
                waiter.set_result(None)

    def reject(self, error: EngineError) -> None:
        """Fail the waiters, each with an error of its own."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(unavailable(error))


def changes_by_key(
    rows: Sequence[str], keys: Sequence[bytes], current: Values, changes: Changes
) -> list[KeyChange] | None:
    """Return a commit's changes by key; None if it has not named all rows."""
    if len(rows) == 1 and len(changes) == 1:  # The common case, without a dictionary.
        [(row, value)] = changes.items()
        return [(keys[0], current[0], value)] if row == rows[0] else None
    if rows == list(changes):
        return list(zip(keys, current, changes.values(), strict=True))
    named = zip(rows, keys, current, strict=True)
    found = {row: (key, before, changes[row]) for row, key, before in named if row in changes}
    return list(found.values()) if len(found) == len(changes) else None


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
        self.on_durable: Callable[[CommitGroup], None] = lambda _: None
        """Called with each group that is durable, before a reader sees it or a waiter knows."""
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

    @property
    def undone(self) -> GroupChanges:
        """The durable values of all keys of which the database may hold later ones. They do not change."""
        return _NO_CHANGES if self._flushing is None else self._flushing.undo

    def latest(self, key: bytes) -> bytes | Unchanged | None:
        """Return a key's latest value where the database may not hold it yet, else UNCHANGED."""
        for changes in self.pending_changes():
            if key in changes:
                return changes[key]
        return UNCHANGED

    def pending_changes(self) -> tuple[GroupChanges, GroupChanges]:
        """Return the changes of the open group, and those of the flushing one.

        The latest value of a key is in the first of them that has the key, else in the database.
        """
        return self._open.changes, _NO_CHANGES if self._flushing is None else self._flushing.changes

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

    def resolve(self, waiter: Waiter) -> None:
        """Have a waiter resolved once all that joined is durable. Only while there is no `failure`."""
        self._open.waiters.append(waiter)
        if self._flush is None:
            self._flush = asyncio.create_task(self._flush_groups())

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
            self._fail(EngineUnavailableError("a flush was broken off"))  # No waiter may wait forever.
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
        self.on_durable(group)
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
