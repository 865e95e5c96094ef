"""Request coalescing: requests that arrive while others are in flight are sent together, as one batch.

A batch costs the database and this process more than one more request in it. If several processes write to the same
partitions, each batch also waits until those of the others are durable, whatever its size. So fewer, larger batches are
cheaper.

Invariants:
- At most `_IN_FLIGHT_MAX` batches are in flight. While none is, a request is sent at once. A request lingers for others
  only while a batch in flight is younger than the linger time, has company of `_FEW` requests or more in flight, and
  too few requests wait to fill a batch.
- Each request gets an answer; if a batch fails, each of its requests fails. A request whose caller was cancelled is not
  sent.
- With locks, a partition is in one batch at a time, and a row once in a batch; a request that must wait for its
  partition does not delay the requests of others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from lazulite.engine.postgres.errors import copy_for_waiter
from lazulite.engine.postgres.partition_locks import Partition, PartitionLocks

_IN_FLIGHT_MAX = 3
"""Batches."""
_FEW = 4
"""While fewer requests are in flight, lingering for others does not pay."""

_REQUESTS_MAX = 64
WEIGHT_MAX = 200

Request = TypeVar("Request")
Result = TypeVar("Result")

_Queue: TypeAlias = list[tuple[Request, asyncio.Future[Result]]]
"""Requests with the futures of their results."""

Row = tuple[Partition, bytes]
"""The partition and the index key of a row."""


class BatchWindow:
    """The window of one kind of batches.

    Args:
        batch_max: requests of a full batch.
        linger_seconds: how long a batch in flight makes other requests linger.
        on_linger_end: called when the linger time of a batch ends.
    """

    def __init__(self, batch_max: int, linger_seconds: float, on_linger_end: Callable[[], None]) -> None:
        self._batch_max = batch_max
        self._linger_seconds = linger_seconds
        self._on_linger_end = on_linger_end
        self._in_flight: set[Hashable] = set()
        self._lingering: dict[Hashable, tuple[int, asyncio.TimerHandle]] = {}
        """By batch: its requests, and the timer that ends its linger time."""
        self._lingering_requests = 0
        """Their sum."""

    def allows(self, waiting: int) -> bool:
        """Return whether a batch may be sent now, while so many requests wait."""
        if len(self._in_flight) >= _IN_FLIGHT_MAX:
            return False
        return waiting >= self._batch_max or self._lingering_requests < _FEW

    def sent(self, batch: Hashable, requests: int) -> None:
        """Record that a batch of so many requests was sent."""
        self._in_flight.add(batch)
        if self._linger_seconds:
            timer = asyncio.get_running_loop().call_later(self._linger_seconds, self._end_linger, batch)
            self._lingering[batch] = requests, timer
            self._lingering_requests += requests

    def answered(self, batch: Hashable) -> None:
        """Record that a batch was answered."""
        self._in_flight.discard(batch)
        requests, timer = self._lingering.pop(batch, (0, None))
        self._lingering_requests -= requests
        if timer is not None:
            timer.cancel()

    def _end_linger(self, batch: Hashable) -> None:
        self._lingering_requests -= self._lingering.pop(batch)[0]
        self._on_linger_end()


class Retry(Enum):
    """The type of `RETRY`."""

    TOKEN = auto()


RETRY: Final = Retry.TOKEN
"""The outcome of a request that has to be sent again, before the ones that wait."""


class Rejected(NamedTuple):
    """The outcome of a request that failed alone."""

    error: BaseException


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
