"""What all connections have to send, sent together at the end of a pass of the event loop.

Each send may wake the client's side, which costs more than the send itself when that side sleeps in between. Answers
that come out of one pass are therefore kept to its end and sent one right after the other.

Invariants: what one connection posts leaves in the order it was posted; nothing is kept beyond the pass, nor while more
than `ANSWERS_MAX` answers wait, nor once an answer has waited for `SECONDS_MAX` when another is posted.
"""

import asyncio
from collections.abc import Callable

ANSWERS_MAX = 64
SECONDS_MAX = 0.002


class WriteBatcher:
    """Keeps answers for a moment.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []
        self._send_by_s = 0.0

    def post(self, transport: asyncio.Transport, data: bytes) -> None:
        """Send these bytes soon."""
        now_s = self._clock()
        if not self._waiting:
            self._send_by_s = now_s + SECONDS_MAX
            asyncio.get_running_loop().call_soon(self.send)
        self._waiting.append((transport, data))
        if now_s >= self._send_by_s or len(self._waiting) >= ANSWERS_MAX:
            self.send()

    def send(self) -> None:
        """Send all that waits, now."""
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                try:
                    transport.write(data)
                except MemoryError:  # One client is disconnected; the others' answers go out.
                    transport.abort()
