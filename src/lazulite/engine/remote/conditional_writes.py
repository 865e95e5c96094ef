"""Conditional writes: commits of one row that a worker has decided, but for the timestamp.

A worker makes the whole row but for its timestamp, and states what it expects of the row that is stored. The primary
compares that, gives the timestamp, and has the row join the open commit group. So of each commit the primary bears
little more than its bytes. Writes of one iteration of the event loop are one message, with one response once all of
them are durable.

    (WRITE, n, space, name, keys, expected, parts)     to the primary
    (DONE, n, (first, declined))                       to the worker

`name` is that of a `CommitProcedure`. Each write has its key without the space, what it expects, and the parts of its
row. Write number i has the timestamp `first + i`. The writes whose numbers are in `declined` did nothing: their rows
were not as expected, or workers cache them, or the space was dropped. The worker asks the primary to run these commits,
which tells why they are rejected.

Invariants: the writes of a message are decided in one step, in their order, and each sees those before it. A message
has up to `WRITES_MAX` writes, and `BYTES_MAX` of keys and parts unless it has one write alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lazulite.engine.commit import ConditionalWrite, Expected, Plain
from lazulite.engine.contract import EngineError
from lazulite.engine.key_encoding import SPACE_BYTES

WRITES_MAX = 64
BYTES_MAX = 1 << 18

Parts: TypeAlias = Sequence[bytes] | None
Send: TypeAlias = Callable[[int, str, Sequence[bytes], Sequence[Expected], Sequence[Parts]], "asyncio.Future[Plain]"]
"""Sends space, name, keys, expected and parts; returns the future of the response."""


class _Gathered:
    """The writes of a message to be."""

    __slots__ = ("expected", "keys", "parts", "size_bytes", "waiters")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.expected: list[Expected] = []
        self.parts: list[Parts] = []
        self.waiters: list[asyncio.Future[int | None]] = []
        self.size_bytes = 0

    def answer(self, response: "asyncio.Future[Plain]") -> None:
        """Tell each waiter its outcome."""
        error = response.exception()
        if error is not None:
            for waiter in self.waiters:
                if not waiter.done():
                    # A traceback grows where one error is raised twice.
                    waiter.set_exception(type(error)(*error.args) if isinstance(error, EngineError) else error)
            return
        first, declined = response.result()
        for number, waiter in enumerate(self.waiters):
            if not waiter.done():
                waiter.set_result(None if number in declined else first + number)


class ConditionalWrites:
    """The conditional writes of a worker.

    Args:
        send: see `Send`.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._gathered: dict[tuple[int, str], _Gathered] = {}

    def add(self, space: int, name: str, key: bytes, write: ConditionalWrite) -> asyncio.Future[int | None]:
        """Send a write soon; return the future of its timestamp. None: nothing was written.

        Args:
            space: of the row.
            name: of the procedure.
            key: of the row, as `encode_key` makes it.
            write: the write.
        """
        kind = space, name
        size_bytes = len(key) + sum(map(len, write.parts or ()))
        batch = self._gathered.get(kind)
        if batch is not None and (len(batch.keys) >= WRITES_MAX or batch.size_bytes + size_bytes > BYTES_MAX):
            self._flush()
            batch = None
        loop = asyncio.get_running_loop()
        if batch is None:
            if not self._gathered:
                loop.call_soon(self._flush)
            batch = self._gathered[kind] = _Gathered()
        waiter: asyncio.Future[int | None] = loop.create_future()
        batch.keys.append(key[SPACE_BYTES:])
        batch.expected.append(write.expected)
        batch.parts.append(write.parts)
        batch.waiters.append(waiter)
        batch.size_bytes += size_bytes
        return waiter

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for (space, name), batch in gathered.items():
            response = self._send(space, name, batch.keys, batch.expected, batch.parts)
            response.add_done_callback(batch.answer)
