"""Request coalescing: requests that arrive while others are in flight are sent together, as one batch.

Invariants: a batch is sent when `batch_window` allows it. Each request gets an answer; if a batch fails, each of its
requests fails. A request whose caller was cancelled is not sent. With locks, a partition is in one batch at a time, and
a row once in a batch; a request that must wait for its partition does not delay the requests of others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from lazulite.engine.postgres.batch_window import BatchWindow
from lazulite.engine.postgres.errors import copy_for_waiter
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks

_REQUESTS_MAX = 64
WEIGHT_MAX = 200

Request = TypeVar("Request")
Result = TypeVar("Result")


_Queue: TypeAlias = list[tuple[Request, asyncio.Future[Result]]]
"""Requests with the futures of their results."""


class Retry(Enum):
    """The type of `RETRY`."""

    TOKEN = auto()


RETRY: Final = Retry.TOKEN
"""The outcome of a request that has to be sent again, before the ones that wait."""


class Rejected(NamedTuple):
    """The outcome of a request that failed alone."""

    error: BaseException


Row = tuple[Partition, bytes]
"""The partition and the index key of a row."""


class RequestBatcher(Generic[Request, Result]):
    """Coalesces requests of one kind.

    Args:
        send: sends a batch and returns the outcome of each request, in their order.
        weight: weighs a request; a batch weighs `WEIGHT_MAX` at most, unless one request alone weighs more. None: each
            weighs 1.
        linger_seconds: see `BatchWindow`.
        locks: the locks of the partitions that batches change; None: batches change nothing, or may overlap.
        row: the row that a request changes, with `locks`.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Request]], Awaitable[Sequence[Result | Retry | Rejected]]],
        weight: Callable[[Request], int] | None = None,
        linger_seconds: float = 0.0,
        *,
        locks: PartitionLocks | None = None,
        row: Callable[[Request], Row] | None = None,
    ) -> None:
        self._send_batch = send
        self._weight = weight
        self._window = BatchWindow(_REQUESTS_MAX, linger_seconds, self._send)
        self._waiting: _Queue[Request, Result] = []
        self._scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks = locks
        self._row = row
        if locks is not None:
            locks.on_release(self._send)

    def __call__(self, request: Request) -> Awaitable[Result]:
        """Queue a request; return an awaitable of its result, which raises its error."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((request, answer))
        if not self._scheduled and self._window.allows(len(self._waiting)):
            self._scheduled = True
            loop.call_soon(self._send)  # Requests of this iteration of the loop come along.
        return answer

    def withdraw(self, chosen: Callable[[Request], bool], result: Result) -> None:
        """Answer the chosen ones of the waiting requests without sending them."""
        kept = []
        for request, answer in self._waiting:
            if not chosen(request):
                kept.append((request, answer))
            elif not answer.done():
                answer.set_result(result)
        self._waiting = kept

    async def finished(self) -> None:
        """Return when no batch is in flight."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    @property
    def busy(self) -> bool:
        """Whether a batch is in flight."""
        return bool(self._tasks)

    def _send(self) -> None:
        """Send as many batches as the window allows."""
        self._scheduled = False
        while self._waiting and self._window.allows(len(self._waiting)):
            batch, later, rows = self._next_batch()
            if not batch:
                self._waiting = later
                return
            if not self._window.allows(len(batch)):  # Fewer than wait, as others wait for their partition.
                return
            self._waiting = later
            self._start(batch, {partition for partition, _ in rows})

    def _next_batch(self) -> tuple[_Queue[Request, Result], _Queue[Request, Result], set[Row]]:
        """Return the requests of the next batch, the ones that wait on, and with locks the rows of the batch."""
        batch: _Queue[Request, Result] = []
        later: _Queue[Request, Result] = []
        rows: set[Row] = set()
        weight = 0
        for index, entry in enumerate(self._waiting):
            request, answer = entry
            if answer.done():  # Its caller was cancelled.
                continue
            if self._weight is not None:
                weight += self._weight(request)
            if len(batch) >= _REQUESTS_MAX or (weight > WEIGHT_MAX and batch):
                return batch, later + self._waiting[index:], rows
            if self._locks is not None and self._row is not None:
                row = self._row(request)
                if row[0] in self._locks or row in rows:
                    later.append(entry)
                    continue
                rows.add(row)
            batch.append(entry)
        return batch, later, rows

    def _start(self, batch: _Queue[Request, Result], partitions: Collection[Partition]) -> None:
        if self._locks is not None:
            self._locks.acquire(partitions)
        task = asyncio.create_task(self._run(batch))
        self._tasks.add(task)
        self._window.sent(task, len(batch))
        task.add_done_callback(partial(self._done, partitions))

    async def _run(self, batch: _Queue[Request, Result]) -> None:
        """Send a batch and answer its requests."""
        outcomes: Sequence[Result | Retry | Rejected]
        try:
            outcomes = await self._send_batch([request for request, _ in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is, each request must be answered.
            outcomes = [Rejected(error)] * len(batch)
        retried = []
        for (request, answer), outcome in zip(batch, outcomes, strict=True):
            if answer.done():  # Its caller was cancelled.
                continue
            if outcome is RETRY:
                retried.append((request, answer))
            elif isinstance(outcome, Rejected):
                answer.set_exception(copy_for_waiter(outcome.error))
            else:
                answer.set_result(outcome)
        self._waiting[:0] = retried

    def _done(self, partitions: Collection[Partition], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._window.answered(task)
        if self._locks is not None:
            self._locks.release(partitions)  # Its listeners are this batcher and the others with these locks.
        else:
            self._send()
