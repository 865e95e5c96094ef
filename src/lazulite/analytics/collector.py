"""Hands what the request path has left to its consumers, beside the requests.

Invariants: the loop is held for about `SLICE_SECONDS` at a time, and requests come in between. So the cost of a line
falls on the rate of requests, not on the time of one. No consumer waits: each keeps what it needs, within its bound.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from lazulite.analytics.exchange_buffer import ExchangeBuffer
from lazulite.analytics.requests import AnalyticsRequest, RequestReader

SLICE_SECONDS = 0.001
GATHER_SECONDS = 0.05
"""How long exchanges gather: the cost of a turn of the loop is for many of them."""
_STEP = 32
"""Exchanges between two reads of the clock."""


class RequestConsumer(Protocol):
    """Makes something of requests."""

    def take(self, requests: Sequence[AnalyticsRequest]) -> None:
        """Note requests, in the order in which they ended. It is quick, never waits and never raises."""
        ...


class Collector:
    """Empties a buffer.

    Args:
        buffer: the buffer.
        reader: reads what it has.
        consumers: get each request.
        monotonic: returns seconds that never step back.
    """

    def __init__(
        self,
        buffer: ExchangeBuffer,
        reader: RequestReader,
        consumers: Sequence[RequestConsumer],
        monotonic: Callable[[], float],
    ) -> None:
        self._buffer = buffer
        self._reader = reader
        self._consumers = consumers
        self._monotonic = monotonic
        self._has_some = asyncio.Event()
        buffer.on_first = self._has_some.set

    async def run(self) -> None:
        """Empty the buffer again and again."""
        while True:
            await self._has_some.wait()
            self._has_some.clear()
            await asyncio.sleep(GATHER_SECONDS)
            began_s = self._monotonic()
            while self._step():
                if self._monotonic() - began_s > SLICE_SECONDS:
                    await asyncio.sleep(0)
                    began_s = self._monotonic()

    def drain(self) -> None:
        """Empty the buffer now, as at the end of a process."""
        while self._step():
            pass

    def _step(self) -> bool:
        """Hand on some exchanges; return whether there were any."""
        taken = self._buffer.take(_STEP)
        requests = self._reader.read(taken)
        if requests:
            for consumer in self._consumers:
                consumer.take(requests)
        return bool(taken)
