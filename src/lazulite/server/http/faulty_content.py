"""What a fault does to the body of a response on its way: where it is cut, and how slowly it comes.

Invariant: without a cut, all of the body is sent, in its order.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum, auto
from typing import NamedTuple

from lazulite.protocol.fault import Break, Effect, Fault
from lazulite.protocol.message import ResponseContent, Window

_PIECES_PER_SECOND = 4
"""A slow body comes in so many pieces a second."""


class Ending(Enum):
    """How the connection ends after a response."""

    NONE = auto()
    """As ever."""
    CLOSED = auto()
    """It is closed before the body is whole."""
    RESET = auto()


class Delivery(NamedTuple):
    """How a response is sent."""

    ending: Ending = Ending.NONE
    has_head: bool = True
    """Whether anything is sent."""
    part: float = 1
    """The part of the body that is sent before the connection ends."""
    bytes_per_second: float = 0
    """0: as fast as the client takes them."""

    def cut_bytes(self, length: int) -> int:
        """Return how many bytes are sent of a body of a length."""
        if self.ending is not Ending.CLOSED:
            return int(length * self.part)
        return max(0, min(length - 1, int(length * self.part)))  # Else the client would take it for whole.


_RESETS = {
    Break.REQUEST: Delivery(Ending.RESET, has_head=False),
    Break.ANSWER: Delivery(Ending.RESET, has_head=False),
    Break.HEAD: Delivery(Ending.RESET, part=0),
    Break.MIDDLE: Delivery(Ending.RESET, part=0.5),
    Break.END: Delivery(Ending.RESET),
}


def delivery_of(fault: Fault) -> Delivery:
    """Return how the response is sent that suffers from a fault of `DELIVERY`."""
    if fault.effect is Effect.RESET:
        return _RESETS[Break(str(fault.value))]
    value = float(fault.value)
    return Delivery(bytes_per_second=value) if fault.effect is Effect.SLOW else Delivery(Ending.CLOSED, part=value)


class FaultyContent:
    """The body of a response that suffers from a fault. Implements `ResponseContent`.

    Args:
        content: the body.
        delivery: how it is sent.
        end: ends the connection, and raises `ClientDisconnectedError`; called when all is sent that is to be.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        content: ResponseContent,
        delivery: Delivery,
        end: Callable[[], Awaitable[None]],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._content = content
        self._delivery = delivery
        self._end = end
        self._sleep = sleep
        self.length = content.length
        self.held_bytes = content.held_bytes

    async def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`."""
        delivery = self._delivery
        left = delivery.cut_bytes(self.length)
        if not left:
            yield b""  # So that the head is sent.
        else:
            async for window in self._content.chunks():
                sent = window[:left]
                left -= len(sent)
                async for piece in self._paced(sent):
                    yield piece
                if not left:
                    break
        if delivery.ending is not Ending.NONE:
            await self._end()

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        await self._content.aclose()

    async def _paced(self, window: Window) -> AsyncIterator[Window]:
        rate = self._delivery.bytes_per_second
        if not rate:
            yield window
            return
        size = max(1, int(rate / _PIECES_PER_SECOND))
        for start in range(0, len(window), size):
            piece = window[start : start + size]
            yield piece
            await self._sleep(len(piece) / rate)
