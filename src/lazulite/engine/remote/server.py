"""The owner's side of the border: an engine, served to the processes that have no store of their own.

What must hold, beside the engine's own promises, which it passes on:

1. A row of a *watched* space, which front ends remember, is changed in three steps: every front end is told to hold the
   row and says that it does, so that all of them read it here; the change is committed and answered; they are released.
   No moment exists at which one of them shows the new row and another the old one.
2. Where nobody knows what became of a change (the disk failed), the row stays held until a later change of it succeeds.
3. A front end that does not say so in time is killed, and the change goes on once it is gone: a process that may
   remember what no longer holds must not answer anybody.
4. A front end counts from its first question on: before, it remembers nothing, and need not be waited for. It is told
   of all rows that are held before it is answered anything.
5. What waits for a slow front end is bounded: `SLICES_AHEAD` slices of each of its scans and the answers to what it has
   asked; and while much of that is unsent it is not listened to.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias

from lazulite.engine.contract import EngineError, Key, KeyRange
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Link, Message, Plain
from lazulite.engine.remote.messages import ENGINE_ERRORS, SLICES_AHEAD, Wording
from lazulite.engine.rocksdb.engine import RocksEngine

HELD_SECONDS_MAX = 5.0
"""How long a front end may take to say that it holds a row."""

Work: TypeAlias = Coroutine[object, None, None]
_Row = tuple[int, Key]


class EngineServer:
    """An engine and its front ends.

    Args:
        engine: closed by its owner, after the front ends are gone.
        wording: the front ends' too.
        watched: the spaces whose rows front ends remember.
        report: told, in a line for people, of calls that failed for no reason that an engine has.
        paced: makes of long work the same work with turns for others.
        passed: called when a short call was answered.
        held_seconds: see `HELD_SECONDS_MAX`.
        check: makes the durable write that front ends ask for; None for the engine's own.
    """

    def __init__(
        self,
        engine: RocksEngine,
        wording: Wording,
        watched: Collection[int],
        report: Callable[[str], None],
        *,
        paced: Callable[[Work], Work] = lambda work: work,
        passed: Callable[[], None] = lambda: None,
        held_seconds: float = HELD_SECONDS_MAX,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.engine = engine
        self.check = check or engine.check_writable
        self.wording = wording
        self.report = report
        self.paced = paced
        self.passed = passed
        self._watched = frozenset(watched)
        self._held_seconds = held_seconds
        self._visitors: set[_Visitor] = set()
        self._changing: Counter[_Row] = Counter()
        self._doubtful: set[_Row] = set()
        self._changes = 0

    def link(self, kill: Callable[[], None]) -> Link:
        """Return the end for a new front end, to be connected at once. `kill` must make it end, whatever it does."""
        return _Visitor(self, kill).link

    def welcome(self, visitor: "_Visitor") -> None:
        """Count a front end among those that remember."""
        self._visitors.add(visitor)
        for space, key in {*self._changing, *self._doubtful}:
            visitor.link.post((messages.HOLD, 0, space, [key]))

    def forget(self, visitor: "_Visitor") -> None:
        """Count it no more."""
        self._visitors.discard(visitor)

    async def close(self) -> None:
        """Hang up on all front ends; what they asked for may go on."""
        visitors = list(self._visitors)
        for visitor in visitors:
            visitor.link.close()
        for visitor in visitors:
            await visitor.link.closed()

    async def commit(self, space: int, partition: str, rows: Sequence[str], told: Plain) -> int:
        """Commit what a front end decided, with the others' knowledge if need be."""
        decide = self.wording.decision(told)
        if space not in self._watched:
            return await self.engine.commit(space, partition, rows, decide)
        async with self._held(space, [(partition, row) for row in rows]):
            return await self.engine.commit(space, partition, rows, decide)

    @asynccontextmanager
    async def _held(self, space: int, keys: list[Key]) -> AsyncIterator[None]:
        """Surround a change of watched rows."""
        held = [(space, key) for key in keys]
        self._changing.update(held)
        try:
            await self._hold(space, keys)
            yield
        except EngineError:
            self._doubtful.update(held)
            raise
        else:
            self._doubtful.difference_update(held)
        finally:
            self._changing.subtract(held)
            self._changing = +self._changing
            free = [key for key in keys if not self._changing[space, key] and (space, key) not in self._doubtful]
            for visitor in self._visitors:
                visitor.link.post((messages.RELEASE, space, free))

    async def _hold(self, space: int, keys: list[Key]) -> None:
        self._changes += 1
        number = self._changes
        waits = {visitor.hold(number, space, keys): visitor for visitor in self._visitors}
        if not waits:
            return
        _, late = await asyncio.wait(waits, timeout=self._held_seconds)
        for wait in late:
            waits[wait].kill()
        if late:
            await asyncio.wait(late)


class _Visitor:
    """One front end."""

    def __init__(self, server: EngineServer, kill: Callable[[], None]) -> None:
        self.link = Link(self._received, self._lost, patient=True)
        self.kill = kill
        self._server = server
        self._engine = server.engine
        self._welcome = False
        self._holds: dict[int, asyncio.Future[None]] = {}
        self._scans: dict[int, tuple[asyncio.Task[None], asyncio.Semaphore]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def hold(self, number: int, space: int, keys: list[Key]) -> asyncio.Future[None]:
        """Have rows held; return what is done when they are, or the front end is gone."""
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holds[number] = held
        self.link.post((messages.HOLD, number, space, list(keys)))
        return held

    def _received(self, message: Message) -> None:
        if not self._welcome:
            self._welcome = True
            self._server.welcome(self)
        kind, number = message[0], message[1]
        if kind == messages.GET:
            self._get(number, *message[2:])
        elif kind in (messages.MORE, messages.STOP):
            task, credit = self._scans.get(number, (None, None))
            if task is not None and credit is not None:
                if kind == messages.MORE:
                    credit.release()
                else:
                    task.cancel()
        elif kind == messages.HELD:
            held = self._holds.pop(number, None)
            if held is not None:
                held.set_result(None)
        elif kind == messages.SCAN:
            credit = asyncio.Semaphore(SLICES_AHEAD)
            self._scans[number] = self._begin(self._server.paced(self._scan(number, credit, *message[2:]))), credit
        else:
            self._begin(self._answer(number, _CALLS[kind](self._server, *message[2:])))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _get(self, number: int, *arguments: Plain) -> None:
        """Read a row, without a task of its own if the engine need not wait, as it hardly ever does."""
        reading = self._engine.get(*arguments)
        try:
            reading.send(None)
        except StopIteration as result:
            self.link.post((messages.DONE, number, result.value))
            self._server.passed()
        except Exception as failure:  # noqa: BLE001 - whatever it is, the caller waits for an answer
            self._fail(number, failure)
        else:
            reading.close()
            self._begin(self._answer(number, self._engine.get(*arguments)))

    async def _answer(self, number: int, call: Coroutine[Any, Any, Plain]) -> None:
        try:
            result = await call
        except Exception as failure:  # noqa: BLE001 - as above
            self._fail(number, failure)
        else:
            self.link.post((messages.DONE, number, result))
            self._server.passed()

    async def _scan(self, number: int, credit: asyncio.Semaphore, space: int, told: Plain, limit: int | None) -> None:
        ranges = [KeyRange(lower, upper) for lower, upper in told]
        try:
            async with aclosing(self._engine.scan(space, ranges, limit)) as slices:
                async for part in slices:
                    await credit.acquire()
                    self.link.post((messages.SLICE, number, part.keys, part.values))
        except Exception as failure:  # noqa: BLE001 - as above
            self._fail(number, failure)
        else:
            self.link.post((messages.DONE, number, None))
        finally:
            self._scans.pop(number, None)

    def _fail(self, number: int, failure: Exception) -> None:
        for kind, error in enumerate(ENGINE_ERRORS):
            if isinstance(failure, error):
                self.link.post((messages.FAILED, number, kind, str(failure)))
                return
        try:
            told = self._server.wording.tell_refusal(failure)
        except Exception as defect:  # noqa: BLE001 - a defect of this program, which one call must not spread
            self._server.report(f"a call of a front end failed: {type(defect).__name__}")
            self.link.post((messages.FAILED, number, ENGINE_ERRORS.index(EngineError), type(defect).__name__))
        else:
            self.link.post((messages.REFUSED, number, told))

    def _lost(self) -> None:
        """End its scans; its commits go on, as half of one would leave what nobody expects."""
        self._server.forget(self)
        for task, _ in self._scans.values():
            task.cancel()
        for held in self._holds.values():
            held.set_result(None)
        self._holds.clear()


async def _drop(server: EngineServer, space: int) -> None:
    await server.engine.drop(space)


async def _check(server: EngineServer) -> None:
    await server.check()


_CALLS: dict[int, Callable[..., Coroutine[Any, Any, Plain]]] = {
    messages.COMMIT: EngineServer.commit,
    messages.DROP: _drop,
    messages.CHECK: _check,
}
