"""Conditional writes: the rows of commits that a worker has decided, but for the timestamp.

A worker makes the whole rows but for their timestamps, and states what it expects of the rows that are stored. The
primary compares that, gives the timestamp, and has the rows join the open commit group. So of each commit the primary
bears little more than its bytes. Commits of one row, of one iteration of the event loop, are one message, with one
response once all of them are durable. A commit of several rows is a message of its own.

    (WRITE, n, space, name, keys, expected, parts, together)     to the primary
    (DONE, n, (first, declined))                                 to the worker

`name` is that of a `CommitProcedure`. Each write has its key without the space, what it expects, and the parts of its
row. Write number i has the timestamp `first + i`, but all have `first` if they are written *together*: all of them or
none. The writes whose numbers are in `declined` did nothing: their rows were not as expected, are large, or are cached
by workers, or the space was dropped. The worker asks the primary to run these commits, which tells why they are
rejected.

Invariants: the writes of a message are decided in one step, in their order, and each sees those before it. A message
has up to `WRITES_MAX` writes. If these are of several commits, it has up to `BYTES_MAX` of keys and parts.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lazulite.engine.commit import ConditionalWrite, Expected, Plain
from lazulite.engine.contract import EngineError
from lazulite.engine.key_encoding import SPACE_BYTES

WRITES_MAX = 100
BYTES_MAX = 1 << 18

Parts: TypeAlias = Sequence[bytes] | None
Send: TypeAlias = Callable[
    [int, str, Sequence[bytes], Sequence[Expected], Sequence[Parts], bool], "asyncio.Future[Plain]"
]
"""Sends space, name, keys, expected, parts and whether they are written together; returns the future of the response.
"""


class _Gathered:
    """Writes that are sent in one message, of a commit for each waiter."""

    __slots__ = ("expected", "keys", "parts", "size_bytes", "waiters")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.expected: list[Expected] = []
        self.parts: list[Parts] = []
        self.waiters: list[asyncio.Future[int | None]] = []
        self.size_bytes = 0

    def add(self, keys: Sequence[bytes], writes: Sequence[ConditionalWrite]) -> asyncio.Future[int | None]:
        """Add the writes of a commit; return the future of its timestamp."""
        waiter: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.keys += [key[SPACE_BYTES:] for key in keys]
        self.expected += [write.expected for write in writes]
        self.parts += [write.parts for write in writes]
        self.waiters.append(waiter)
        self.size_bytes += size_of(keys, writes)
        return waiter

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

    def add(
        self, space: int, name: str, keys: Sequence[bytes], writes: Sequence[ConditionalWrite]
    ) -> asyncio.Future[int | None]:
        """Send the writes of a commit soon; return the future of its timestamp. None: nothing was written.

        Args:
            space: of the rows.
            name: of the procedure.
            keys: of the rows, as `encode_keys` makes them.
            writes: up to `WRITES_MAX`.
        """
        if len(writes) > 1:
            alone = _Gathered()
            waiter = alone.add(keys, writes)
            self._post(space, name, alone, together=True)
            return waiter
        kind = space, name
        gathered = self._gathered.get(kind)
        if gathered is not None and (
            len(gathered.keys) >= WRITES_MAX or gathered.size_bytes + size_of(keys, writes) > BYTES_MAX
        ):
            self._flush()
            gathered = None
        if gathered is None:
            if not self._gathered:
                asyncio.get_running_loop().call_soon(self._flush)
            gathered = self._gathered[kind] = _Gathered()
        return gathered.add(keys, writes)

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for (space, name), each in gathered.items():
            self._post(space, name, each, together=False)

    def _post(self, space: int, name: str, gathered: _Gathered, *, together: bool) -> None:
        response = self._send(space, name, gathered.keys, gathered.expected, gathered.parts, together)
        response.add_done_callback(gathered.answer)


def size_of(keys: Sequence[bytes], writes: Sequence[ConditionalWrite]) -> int:
    """Return the bytes of keys and parts."""
    return sum(map(len, keys)) + sum([sum(map(len, write.parts)) for write in writes if write.parts is not None])
