"""The primary's side of the IPC protocol: an engine, served to the workers.

Invariants, beside the engine's own guarantees:

1. A row of a *watched* space, which workers cache, is changed in three steps. Every worker evicts the row and
   acknowledges that, so that all workers read it here. The change is committed and its caller gets the response. The
   invalidation ends. So one worker never shows the new row while another shows the old one.
2. If the outcome of a change is unknown, because the disk failed, the row stays invalidated until a later change of it
   succeeds.
3. A worker that does not acknowledge in time is killed, and the change goes on once the worker is gone: a process with
   a stale cache must not respond to clients.
4. A worker is registered by its first call; before, it caches nothing, and no change waits for it. It learns of all
   invalidated rows before it gets its first response.
5. Memory for a slow worker is bounded: `SLICES_AHEAD` slices of each of its scans, and the responses to its calls.
   While many of these are unsent, nothing is received from the worker.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeAlias

from lazulite.engine.commit import Expected, Plain
from lazulite.engine.contract import (
    UNKNOWN,
    EngineError,
    EngineUnavailableError,
    Key,
    KeyRange,
    Snapshot,
    Unknown,
    Waiter,
)
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Channel, Message
from lazulite.engine.remote.codec import Codec
from lazulite.engine.remote.conditional_writes import WRITES_MAX, Parts
from lazulite.engine.remote.messages import SLICES_AHEAD, Procedure
from lazulite.engine.rocksdb.database import Rows
from lazulite.engine.rocksdb.engine import RocksEngine, Written

ACKNOWLEDGE_SECONDS_MAX = 5.0
"""How long a worker may take to acknowledge an invalidation."""

Work: TypeAlias = Coroutine[object, None, None]
_Row = tuple[int, Key]


class EngineServer:
    """An engine and its workers.

    Args:
        engine: closed by the caller, after the workers are gone; None: the workers have a database, and this process
            has procedures alone.
        codec: the same as the workers'.
        watched: the spaces whose rows workers cache.
        report: takes a line for people about each call that failed by a defect.
        schedule_fairly: schedules long work fairly.
        passed: called after the response to a short call.
        acknowledge_seconds: see `ACKNOWLEDGE_SECONDS_MAX`.
        check: makes the durable write of a health check; None for the engine's own.
        procedures: that workers can call, by name.
    """

    def __init__(  # noqa: PLR0913 - most have a default
        self,
        engine: RocksEngine | None,
        codec: Codec,
        watched: Collection[int],
        report: Callable[[str], None],
        *,
        schedule_fairly: Callable[[Work], Work] = lambda work: work,
        passed: Callable[[], None] = lambda: None,
        acknowledge_seconds: float = ACKNOWLEDGE_SECONDS_MAX,
        check: Callable[[], Awaitable[None]] | None = None,
        procedures: Mapping[str, Procedure] | None = None,
    ) -> None:
        self._engine = engine
        self.check = check
        self.codec = codec
        self.report = report
        self.schedule_fairly = schedule_fairly
        self.passed = passed
        self.procedures = procedures or {}
        self._watched = frozenset(watched)
        self._acknowledge_seconds = acknowledge_seconds
        self._sessions: set[_WorkerSession] = set()
        self._changing: Counter[_Row] = Counter()
        self._doubtful: set[_Row] = set()
        self._changes = 0

    @property
    def engine(self) -> RocksEngine:
        """The engine. Raises `EngineUnavailableError` if there is none."""
        if self._engine is None:
            raise EngineUnavailableError("this process has no store")
        return self._engine

    def open_channel(self, kill: Callable[[], None]) -> Channel:
        """Return the end for a new worker, to be connected at once. `kill` must end the worker, whatever it does."""
        return _WorkerSession(self, kill).channel

    def register(self, session: "_WorkerSession") -> None:
        """Have a worker acknowledge each change from now on."""
        self._sessions.add(session)
        for space, key in {*self._changing, *self._doubtful}:
            session.channel.post((messages.INVALIDATE, 0, space, [key]))

    def unregister(self, session: "_WorkerSession") -> None:
        """Wait for a worker no more."""
        self._sessions.discard(session)

    async def close(self) -> None:
        """Close all channels; calls in flight may go on."""
        sessions = list(self._sessions)
        for session in sessions:
            session.channel.close()
        for session in sessions:
            await session.channel.closed()

    async def commit(self, space: int, partition: str, name: str, payload: Plain) -> Plain:
        """Run a worker's commit; invalidate the rows first if other workers may cache them."""
        procedure = self.codec.commits[name]
        commit = procedure.make(payload)
        if space not in self._watched:
            return procedure.encode_result(await self.engine.commit(space, partition, commit))
        async with self.invalidated(space, [(partition, row) for row in commit.rows]):
            return procedure.encode_result(await self.engine.commit(space, partition, commit))

    def write(self, space: int, name: str, rows: Rows, waiter: Waiter, *, together: bool) -> Written | Unknown:
        """Have a worker's conditional writes join the open commit group, see `RocksEngine.write_now`."""
        if len(rows) > WRITES_MAX:
            raise ValueError("a message has too many writes")
        if space in self._watched:
            return Written(0, range(len(rows)))
        return self.engine.write_now(space, rows, self.codec.commits[name].complete, waiter, together=together)

    @asynccontextmanager
    async def invalidated(self, space: int, keys: list[Key]) -> AsyncIterator[None]:
        """Keep rows out of the workers' caches while they are changed."""
        invalid = [(space, key) for key in keys]
        self._changing.update(invalid)
        try:
            await self._invalidate(space, keys)
            yield
        except EngineError:
            self._doubtful.update(invalid)
            raise
        else:
            self._doubtful.difference_update(invalid)
        finally:
            self._changing.subtract(invalid)
            self._changing = +self._changing
            free = [key for key in keys if not self._changing[space, key] and (space, key) not in self._doubtful]
            for session in self._sessions:
                session.channel.post((messages.END_INVALIDATION, space, free))

    async def _invalidate(self, space: int, keys: list[Key]) -> None:
        self._changes += 1
        number = self._changes
        waits = {session.invalidate(number, space, keys): session for session in self._sessions}
        if not waits:
            return
        _, late = await asyncio.wait(waits, timeout=self._acknowledge_seconds)
        for wait in late:
            waits[wait].kill()
        if late:
            await asyncio.wait(late)


class _WorkerSession:
    """One worker."""

    def __init__(self, server: EngineServer, kill: Callable[[], None]) -> None:
        self.channel = Channel(self._received, self._lost, patient=True)
        self.kill = kill
        self._server = server
        self._registered = self._is_lost = False
        self._unacknowledged: dict[int, asyncio.Future[None]] = {}
        self._scans: dict[int, tuple[asyncio.Task[None], asyncio.Semaphore]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._snapshots: dict[int, tuple[Snapshot, AsyncExitStack]] = {}

    def invalidate(self, number: int, space: int, keys: list[Key]) -> asyncio.Future[None]:
        """Invalidate rows; the future is done when the worker acknowledged, or is gone."""
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unacknowledged[number] = acknowledged
        self.channel.post((messages.INVALIDATE, number, space, list(keys)))
        return acknowledged

    def _received(self, message: Message) -> None:
        if not self._registered:
            self._registered = True
            self._server.register(self)
        kind, number = message[0], message[1]
        if kind == messages.GET:
            self._get(number, *message[2:])
        elif kind == messages.WRITE:
            self._write(number, *message[2:])
        elif kind in (messages.MORE, messages.STOP):
            task, credit = self._scans.get(number, (None, None))
            if task is not None and credit is not None:
                if kind == messages.MORE:
                    credit.release()
                else:
                    task.cancel()
        elif kind == messages.ACKNOWLEDGE:
            acknowledged = self._unacknowledged.pop(number, None)
            if acknowledged is not None:
                acknowledged.set_result(None)
        elif kind == messages.SCAN:
            credit = asyncio.Semaphore(SLICES_AHEAD)
            self._scans[number] = (
                self._begin(self._server.schedule_fairly(self._scan(number, credit, *message[2:]))),
                credit,
            )
        else:
            self._begin(self._respond(number, self._call(kind, number, message[2:])))

    def _call(self, kind: int, number: int, arguments: Sequence[Plain]) -> Coroutine[Any, Any, Plain]:
        of_snapshot = _SNAPSHOT_CALLS.get(kind)
        return _CALLS[kind](self._server, *arguments) if of_snapshot is None else of_snapshot(self, number, *arguments)

    async def _open(self, number: int) -> None:
        """Open a snapshot, which has the number of the call."""
        async with AsyncExitStack() as stack:
            opened: Snapshot = await stack.enter_async_context(self._server.engine.snapshot())
            self._snapshots[number] = opened, stack.pop_all()
        if self._is_lost:
            await self._release(0, number)

    async def _keys(self, _: int, snapshot: int, space: int, encoded: Plain, limit: int) -> Plain:
        lower, upper = encoded
        return await self._snapshots[snapshot][0].keys(space, KeyRange(lower, upper), limit)

    async def _values(self, _: int, snapshot: int, space: int, keys: Plain) -> Plain:
        return await self._snapshots[snapshot][0].values(space, keys)

    async def _release(self, _: int, snapshot: int) -> None:
        _opened, stack = self._snapshots.pop(snapshot, (None, None))
        if stack is not None:  # It may not have been opened.
            await stack.aclose()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _get(self, number: int, *arguments: Plain) -> None:
        """Read a row; without a task of its own unless the engine has to wait, which is rare."""
        try:
            value = self._server.engine.get_now(*arguments)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the caller waits for a response
            self.fail(number, failure)
            return
        if value is UNKNOWN:
            self._begin(self._respond(number, self._server.engine.get(*arguments)))
        else:
            self.respond(number, value)

    def _write(
        self,
        number: int,
        space: int,
        name: str,
        keys: list[bytes],
        expected: list[Expected],
        parts: list[Parts],
        together: bool,
    ) -> None:
        """Have conditional writes join the open commit group, without a task unless that is full."""
        answer = _WriteAnswer(self, number)
        try:
            rows = list(zip(keys, expected, parts, strict=True))
            written = self._server.write(space, name, rows, answer, together=together)
        except Exception as failure:  # noqa: BLE001 - as above
            self.fail(number, failure)
            return
        if written is UNKNOWN:
            self._begin(self._write_later(number, space, name, keys, expected, parts, together))
            return
        answer.written = written
        if len(written.declined) == len(rows):
            answer.set_result(None)

    async def _write_later(self, number: int, *arguments: Plain) -> None:
        try:
            await self._server.engine.wait_for_room()
        except Exception as failure:  # noqa: BLE001 - as above
            self.fail(number, failure)
        else:
            self._write(number, *arguments)

    def respond(self, number: int, result: Plain) -> None:
        """Send the response to a short call."""
        self.channel.post((messages.DONE, number, result))
        self._server.passed()

    async def _respond(self, number: int, call: Coroutine[Any, Any, Plain]) -> None:
        try:
            result = await call
        except Exception as failure:  # noqa: BLE001 - as above
            self.fail(number, failure)
        else:
            self.respond(number, result)

    async def _scan(
        self, number: int, credit: asyncio.Semaphore, space: int, encoded: Plain, limit: int | None, keys_only: bool
    ) -> None:
        ranges = [KeyRange(lower, upper) for lower, upper in encoded]
        try:
            async with aclosing(self._server.engine.scan(space, ranges, limit, keys_only=keys_only)) as slices:
                async for part in slices:
                    await credit.acquire()
                    self.channel.post((messages.SLICE, number, part.keys, part.values))
        except Exception as failure:  # noqa: BLE001 - as above
            self.fail(number, failure)
        else:
            self.channel.post((messages.DONE, number, None))
        finally:
            self._scans.pop(number, None)

    def fail(self, number: int, failure: Exception) -> None:
        """Send that a call failed."""
        self.channel.post(self._server.codec.encode_failure(number, failure, self._server.report))

    def _lost(self) -> None:
        """End the worker's scans; its commits go on, so that none is left half done."""
        self._server.unregister(self)
        for task, _ in self._scans.values():
            task.cancel()
        for acknowledged in self._unacknowledged.values():
            acknowledged.set_result(None)
        self._unacknowledged.clear()
        self._is_lost = True
        for number in [*self._snapshots]:
            self._begin(self._release(0, number))


class _WriteAnswer:
    """The response to conditional writes that have joined a commit group. Implements `Waiter`."""

    __slots__ = ("_number", "_session", "written")

    def __init__(self, session: _WorkerSession, number: int) -> None:
        self._session = session
        self._number = number
        self.written: Written | None = None

    def done(self) -> bool:
        """See `Waiter`."""
        return False

    def set_result(self, _: None) -> None:
        """See `Waiter`."""
        assert self.written is not None
        self._session.respond(self._number, (self.written.first, tuple(self.written.declined)))

    def set_exception(self, exception: BaseException) -> None:
        """See `Waiter`."""
        assert isinstance(exception, EngineError), "nothing else makes a commit group fail"
        self._session.fail(self._number, exception)


async def _drop(server: EngineServer, space: int) -> None:
    await server.engine.drop(space)


async def _check(server: EngineServer) -> None:
    await (server.check or server.engine.check_writable)()


async def _flush(server: EngineServer) -> None:
    await server.engine.flush()


async def _call(server: EngineServer, procedure: str, arguments: Plain) -> Plain:
    return await server.procedures[procedure](*arguments)


_CALLS: dict[int, Callable[..., Coroutine[Any, Any, Plain]]] = {
    messages.COMMIT: EngineServer.commit,
    messages.DROP: _drop,
    messages.CHECK: _check,
    messages.FLUSH: _flush,
    messages.CALL: _call,
}

_SNAPSHOT_CALLS: dict[int, Callable[..., Coroutine[Any, Any, Plain]]] = {
    messages.OPEN: _WorkerSession._open,
    messages.KEYS: _WorkerSession._keys,
    messages.VALUES: _WorkerSession._values,
    messages.RELEASE: _WorkerSession._release,
}
