"""Group commit: many commits, one write and one sync, and readers that see only what is durable.

A *generation* is what is committed between two starts of a flush. One is *open* and takes new commits; at most one
more is *flushing*: on its way into the database and onto the disk. What must hold, all of it on the event loop's
thread:

1. The database never holds anything of the open generation. It may hold all of the flushing one, or nothing: a
   generation is written in one batch.
2. So a key's latest value is: the open generation's change, else the flushing one's, else the database's. Commits
   decide on that.
3. And its durable value is: the flushing generation's undo (its value from before), else the database's. Readers see
   that.
4. When the flush has returned, and not before, the generation is forgotten and its waiters are answered, in one step. A
   reader therefore sees all of a commit or nothing, and sees it from the moment its writer was answered.
5. Whoever was shown a value that is not yet durable waits for the generation that makes it so, whether they wrote or
   not.
6. A failed flush acknowledges nothing: every waiter gets the error, the undo stays (so readers go on to see the last
   durable state) and the group takes no more commits. It is not used again; a new group begins with a database that was
   opened anew, where RocksDB's recovery has put whatever survived into synced files.
7. A write that the database refused without doing any of it (it is behind with its background work) refuses both
   generations, since the open one may build on the other, and the group goes on.

A dropped space cannot be noted key by key. While its drop is not durable, `settled` covers all its keys, and readers
wait.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager

from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.engine.rocksdb.commit_group import UNCHANGED, Change, Generation, Unchanged
from lazulite.engine.rocksdb.errors import StalledError

Bounds = tuple[bytes, bytes]
"""The first key of a range, and the bound above its last."""

GENERATION_BYTES_MAX = 1 << 20
"""A generation takes no more commits from here on, so that writing it never holds the event loop for long."""


class GroupCommit:
    """Gathers commits and answers them once flushed."""

    def __init__(
        self, write: Callable[[Generation], Awaitable[None]], sync: Callable[[], None], worker: Executor
    ) -> None:
        """`write` puts a generation into the database; `sync` makes all that was written durable, in `worker`."""
        self.failure: EngineError | None = None
        """Why nothing more is taken, once something failed."""
        self.failed: Callable[[], None] = lambda: None
        """Called once, when the group has failed and nothing of it is in flight any more."""
        self.refused: Callable[[set[int]], None] = lambda _: None
        """Called with the spaces that were not dropped after all, when a stalled write refused their generation."""
        self._write = write
        self._sync = sync
        self._worker = worker
        self._open = Generation()
        self._flushing: Generation | None = None
        self._flush: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[None] | None = None
        self._turn = asyncio.Lock()

    # --- what readers and commits see

    def durable(self, key: bytes) -> bytes | Unchanged | None:
        """Return a key's durable value where the database may hold a later one, else UNCHANGED."""
        return UNCHANGED if self._flushing is None else self._flushing.undo.get(key, UNCHANGED)

    def durable_within(self, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        """Return what `durable` says of every key in some ranges (ascending, disjoint), but for the UNCHANGED ones."""
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

    def unsettled_drops(self) -> set[int]:
        """Return the spaces whose drop is not durable."""
        flushing = self._flushing
        return self._open.dropped | (flushing.dropped if flushing is not None else set())

    # --- what commits do

    @property
    def full(self) -> bool:
        """Whether the open generation takes no more commits: see `room`."""
        return self._open.size_bytes >= GENERATION_BYTES_MAX and self.failure is None

    async def room(self) -> None:
        """Return when the open generation takes commits."""
        while self.full:
            if self._begun is None:
                self._begun = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._begun)

    def change(self, changed: Iterable[Change]) -> None:
        """Note what keys were and become."""
        self._open.change(changed)

    def drop(self, space: int) -> None:
        """Note that a space is dropped; none of its keys may be changed from now on."""
        self._open.dropped.add(space)

    def written(self) -> asyncio.Future[None]:
        """Return what to await for everything noted so far to be durable; raises EngineError when it is not."""
        return self._wait(self._open)

    def settled(self, keys: Iterable[bytes], space: int) -> asyncio.Future[None] | None:
        """Return what to await for the latest values of these keys to be durable; None when they are."""
        keys = list(keys)
        for generation in (self._open, self._flushing):
            if generation is not None and generation.touches(keys, space):
                return self._wait(generation)
        return None

    async def drain(self) -> None:
        """Return when nothing is in flight."""
        while self._flush is not None:
            await asyncio.wait([self._flush])

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None, None]:
        """Keep generations out of the database: between entering and leaving, all that it holds is durable.

        Raises:
            EngineUnavailableError: the group has failed.
        """
        async with self._turn:
            if self.failure is not None:
                raise _again(self.failure)
            yield

    def _wait(self, generation: Generation) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            waiter.set_exception(_again(self.failure))
            return waiter
        generation.waiters.append(waiter)
        if self._flush is None:
            self._flush = asyncio.create_task(self._flush_all())
        return waiter

    # --- flushing

    async def _flush_all(self) -> None:
        """Flush one generation after the other until nobody waits."""
        try:
            while self._open.waiters:
                async with self._turn:
                    await self._flush_one()
                await asyncio.sleep(0)  # Those just answered often come back at once: let them into the next flush.
        except EngineError as error:
            self._fail(error)
        except BaseException:
            self._fail(EngineUnavailableError("a flush was broken off"))  # Nobody may wait for ever.
            raise
        finally:
            self._flush = None
            if self.failure is not None:
                self.failed()

    async def _flush_one(self) -> None:
        flushing = self._flushing = self._open
        self._open = Generation()
        self._let_in()
        try:
            await self._write(flushing)
        except StalledError as error:
            self._start_over(error)
            return
        await asyncio.get_running_loop().run_in_executor(self._worker, self._sync)
        self._flushing = None
        flushing.answer()

    def _let_in(self) -> None:
        if self._begun is not None:
            self._begun.set_result(None)
            self._begun = None

    def _start_over(self, error: StalledError) -> None:
        """Forget both generations, of which the database holds nothing."""
        generations = (self._flushing, self._open)
        self.refused(self.unsettled_drops())
        self._flushing, self._open = None, Generation()
        self._let_in()
        _refuse(generations, error)

    def _fail(self, error: EngineError) -> None:
        """Fail both generations; the flushing one stays where it is, because readers need its undo."""
        self.failure = error
        self._let_in()
        _refuse((self._flushing, self._open), error)


def _refuse(generations: Iterable[Generation | None], error: EngineError) -> None:
    for generation in generations:
        for waiter in generation.waiters if generation is not None else ():
            if not waiter.done():
                waiter.set_exception(_again(error))


def _again(error: EngineError) -> EngineUnavailableError:
    """Return an error of its own for each waiter, since a traceback grows where one is raised twice."""
    again = EngineUnavailableError(str(error))
    again.__cause__ = error
    return again
