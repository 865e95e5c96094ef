"""Group commit: many writes, one flush, and readers that see only what was flushed.

A *generation* is the writes between two starts of a flush. One is *open* and takes new writes; at most one more is
*flushing*. What must hold, all of it on the event loop's thread:

1. Before a key is written, the open generation remembers its value from before (`undo`), once. So the durable value of
   a key is: the flushing generation's undo, else the open one's, else what the database says.
2. Starting a flush closes the open generation, and covers exactly the writes of the generations closed so far.
3. When the flush has returned, and not before, the generation's undo is forgotten and its waiters are answered, in one
   step. A reader therefore sees all of a commit or nothing, and sees it from the moment its writer was answered.
4. Whoever was shown a value that is not yet durable waits for the generation that makes it so, whether they
   wrote or not.
5. A failed flush or write acknowledges nothing: every waiter gets the error, the undos stay (so readers go on to see
   the last durable state) and the group takes no more writes. It is not used again; a new group begins with a database
   that was opened anew, where RocksDB's recovery has put whatever survived into synced files.

A dropped space cannot be remembered key by key. While its drop is not durable, `settled` covers all its keys, and
readers wait.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Final

from lazulite.engine.contract import EngineError, EngineUnavailableError

Bounds = tuple[bytes, bytes]
"""The first key of a range, and the bound above its last."""

UNWRITTEN: Final = object()
"""Says that a key has no undo: the database itself holds its durable value."""


class Generation:
    """The writes between two starts of a flush."""

    __slots__ = ("dropped", "undo", "waiters")

    def __init__(self) -> None:
        self.undo: dict[bytes, bytes | None] = {}
        self.dropped: set[int] = set()
        self.waiters: list[asyncio.Future[None]] = []

    def touches(self, keys: Iterable[bytes], space: int) -> bool:
        """Say whether the generation changed one of these keys of a space."""
        return space in self.dropped or any(key in self.undo for key in keys)


class GroupCommit:
    """Gathers writes and answers them once flushed."""

    def __init__(self, sync: Callable[[], None], worker: Executor) -> None:
        """`sync` makes everything written so far durable, in `worker`."""
        self.failure: EngineError | None = None
        """Why nothing more is taken, once something failed."""
        self.failed: Callable[[], None] = lambda: None
        """Called once, when the group has failed and nothing of it is in flight any more."""
        self._sync = sync
        self._worker = worker
        self._open = Generation()
        self._flushing: Generation | None = None
        self._flush: asyncio.Task[None] | None = None

    def durable(self, key: bytes) -> bytes | object | None:
        """Return a key's durable value where the database may hold a later one, else UNWRITTEN."""
        flushing = self._flushing
        if flushing is not None and key in flushing.undo:
            return flushing.undo[key]
        return self._open.undo.get(key, UNWRITTEN)

    def durable_within(self, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        """Return what `durable` says of every key in some ranges (ascending, disjoint), but for the UNWRITTEN ones."""
        starts = [start for start, _ in ranges]
        found: dict[bytes, bytes | None] = {}
        for generation in (self._open, self._flushing):  # In this order: the earlier generation has the last word.
            for key, value in generation.undo.items() if generation is not None else ():
                index = bisect_right(starts, key) - 1
                if index >= 0 and key < ranges[index][1]:
                    found[key] = value
        return found

    def remember(self, key: bytes, before: bytes | None) -> None:
        """Note a key's latest value; must come before it is overwritten."""
        self._open.undo.setdefault(key, before)

    def remember_drop(self, space: int) -> None:
        """Note that a space is being dropped; must come before it is."""
        self._open.dropped.add(space)

    def unsettled_drops(self) -> set[int]:
        """Return the spaces whose drop is not durable."""
        flushing = self._flushing
        return self._open.dropped | (flushing.dropped if flushing is not None else set())

    def written(self) -> asyncio.Future[None]:
        """Return what to await for everything written so far to be durable; raises EngineError when it is not."""
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

    def fail(self, error: EngineError) -> None:
        """Take nothing more, and refuse what waits, but for a flush already under way, which decides for itself."""
        if self.failure is not None:
            return
        self.failure = error
        _refuse(self._open.waiters, error)
        if self._flush is None:
            self.failed()

    def _wait(self, generation: Generation) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.failure is not None and (generation is self._open or self._flush is None):
            waiter.set_exception(_again(self.failure))
            return waiter
        generation.waiters.append(waiter)
        if self._flush is None:
            self._flush = asyncio.create_task(self._flush_all())
        return waiter

    async def _flush_all(self) -> None:
        """Flush one generation after the other until nobody waits."""
        try:
            while self._open.waiters and self.failure is None:
                await self._flush_one()
                await asyncio.sleep(0)  # Those just answered often come back at once: let them into the next flush.
        except EngineError as error:
            self._refuse_all(error)
        except BaseException:
            self._refuse_all(EngineUnavailableError("a flush was broken off"))  # Nobody may wait for ever.
            raise
        finally:
            self._flush = None
            if self.failure is not None:
                self.failed()

    async def _flush_one(self) -> None:
        flushing = self._flushing = self._open
        self._open = Generation()
        await asyncio.get_running_loop().run_in_executor(self._worker, self._sync)
        self._flushing = None
        for waiter in flushing.waiters:
            if not waiter.done():  # A waiter is done already when its task was cancelled.
                waiter.set_result(None)

    def _refuse_all(self, error: EngineError) -> None:
        """Fail every generation; the flushing one stays where it is, because readers need its undo."""
        self.failure = error
        for generation in (self._flushing, self._open):
            if generation is not None:
                _refuse(generation.waiters, error)


def _refuse(waiters: list[asyncio.Future[None]], error: EngineError) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(_again(error))
    waiters.clear()


def _again(error: EngineError) -> EngineUnavailableError:
    """Return an error of its own for each waiter, since a traceback grows where one is raised twice."""
    again = EngineUnavailableError(str(error))
    again.__cause__ = error
    return again
