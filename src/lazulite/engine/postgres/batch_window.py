"""The in-flight window of a request batcher: whether another batch may be sent yet.

Invariants: at most `_IN_FLIGHT_MAX` batches are in flight. While none is, a request is sent at once. A request lingers
for others only while a batch in flight is younger than the linger time, has company of `_FEW` requests or more in
flight, and too few requests wait to fill a batch.

A batch costs the database and this process more than one more request in it. If several processes write to the same
partitions, each batch also waits until those of the others are durable, whatever its size. So fewer, larger batches are
cheaper.
"""

import asyncio
from collections.abc import Callable, Hashable

_IN_FLIGHT_MAX = 3
"""Batches."""
_FEW = 4
"""While fewer requests are in flight, lingering for others does not pay."""


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
