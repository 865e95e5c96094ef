"""An `Engine` whose store another process has open: the front end's side of the border (see `messages`).

Invariants: each call has one answer; once the owner is gone every call, those in flight too, is refused with
`EngineUnavailableError`, and nobody knows then what became of a commit in flight. Whoever gives up waiting for a call
does not undo it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from lazulite.engine.contract import Decide, EngineUnavailableError, KeyRange, Slice
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Link, Message, Plain
from lazulite.engine.remote.messages import ENGINE_ERRORS, Watcher, Wording
from lazulite.engine.rocksdb.scan import RowSlice


class RemoteEngine:
    """See above.

    Args:
        wording: the owner's too.
        lost: called when the owner is gone, unless `close` was.
    """

    def __init__(self, wording: Wording, lost: Callable[[], None] = lambda: None) -> None:
        self.link = Link(self._received, self._gone)
        """To be connected with the owner's end before anything is asked."""
        self.watchers: Mapping[int, Watcher] = {}
        """By their spaces; to be told of before anything is asked."""
        self._wording = wording
        self._lost = lost
        self._number = 0
        self._pending: dict[int, asyncio.Future[Plain]] = {}
        self._scans: dict[int, asyncio.Queue[RowSlice | Exception | None]] = {}
        self._closed = ""

    # --- the engine

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """See `Engine.get`."""
        value: bytes | None = await self._ask(messages.GET, space, partition, row)
        return value

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: Decide) -> int:
        """See `Engine.commit`. The decision must be one that the wording knows."""
        told = self._wording.tell_decision(decide)
        stamp: int = await self._ask(messages.COMMIT, space, partition, list(rows), told)
        return stamp

    async def drop(self, space: int) -> None:
        """See `Engine.drop`."""
        await self._ask(messages.DROP, space)

    async def check_writable(self) -> None:
        """See `Engine.check_writable`."""
        await self._ask(messages.CHECK)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None
    ) -> AsyncGenerator[Slice, None]:
        """See `Engine.scan`."""
        self._check_open()
        number = self._next()
        slices = self._scans[number] = asyncio.Queue()
        told: list[Plain] = [(tuple(lower), upper and tuple(upper)) for lower, upper in ranges]
        self.link.post((messages.SCAN, number, space, told, limit))
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
                self.link.post((messages.MORE, number))
        finally:
            del self._scans[number]
            if not over:
                self.link.post((messages.STOP, number))

    async def close(self) -> None:
        """See `Engine.close`: of this end; the owner's store stays open."""
        self._closed = self._closed or "the store is closing"
        if self._pending:
            await asyncio.wait(list(self._pending.values()))
        self.link.close()
        await self.link.closed()

    # --- calls

    def _check_open(self) -> None:
        if self._closed:
            raise EngineUnavailableError(self._closed)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _ask(self, kind: int, *arguments: Plain) -> Plain:
        self._check_open()
        number = self._next()
        answer: asyncio.Future[Plain] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        self.link.post((kind, number, *arguments))
        try:
            return await answer
        finally:
            del answer  # An error's traceback has this frame, and would have itself by what is waited for.

    def _received(self, message: Message) -> None:
        kind, number = message[0], message[1]
        if kind == messages.SLICE:
            self._deliver(number, RowSlice(message[2], message[3]))
        elif kind == messages.HOLD:
            for key in message[3]:
                self.watchers[message[2]].hold(key)
            self.link.post((messages.HELD, number))
        elif kind == messages.RELEASE:
            for key in message[2]:
                self.watchers[number].release(key)
        elif number in self._scans:
            self._deliver(number, None if kind == messages.DONE else self._failure(message))
        else:
            answer = self._pending.pop(number, None)
            if answer is None or answer.done():
                return  # A scan that was stopped, or a caller who does not wait any more.
            if kind == messages.DONE:
                answer.set_result(message[2])
            else:
                answer.set_exception(self._failure(message))

    def _deliver(self, number: Plain, part: RowSlice | Exception | None) -> None:
        slices = self._scans.get(number)
        if slices is not None:
            slices.put_nowait(part)

    def _failure(self, message: Message) -> Exception:
        if message[0] == messages.REFUSED:
            return self._wording.refusal(message[2])
        return ENGINE_ERRORS[message[2]](message[3])

    def _gone(self) -> None:
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
