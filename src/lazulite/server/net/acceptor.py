"""A listening socket, and who comes in through it.

Invariants: when the process has no file descriptor or memory for one more client, the event loop rests and who comes
waits with the kernel, for `PAUSE_SECONDS` at a time; after `stop` nobody comes in and nobody is on the way in; whom
the kernel has let in, `stop` lets in too. (The event loop's own server has none of them.)
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine

from lazulite.server.net.syn_filter import turn_away

ACCEPTED_PER_TURN = 64
PAUSE_SECONDS = 1.0
HANDSHAKE_SECONDS = 0.05
"""How long `stop` waits for connections that the kernels of both sides are about to make: a round trip."""


class Entrance:
    """Lets clients in.

    Args:
        listening: not blocking; closed by `stop`.
        receive: takes a client's socket over, which does not block, and returns the way in. None: the client was sent
            away.
    """

    def __init__(
        self, listening: socket.socket, receive: Callable[[socket.socket], Coroutine[object, object, None] | None]
    ) -> None:
        self._listening = listening
        self._receive = receive
        self._waiting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    @property
    def waiting_count(self) -> int:
        """Clients on their way in."""
        return len(self._waiting)

    def start(self) -> None:
        """Let clients in from now on, on the running loop."""
        self._pause = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def stop(self, *, send_away: bool) -> None:
        """Let nobody in any more; send away who is on the way in, or see them in."""
        if self._listening.fileno() >= 0:
            turn_away(self._listening)
            await asyncio.sleep(HANDSHAKE_SECONDS)
            if self._pause is not None:
                self._pause.cancel()
            asyncio.get_running_loop().remove_reader(self._listening)
            if not send_away:
                with contextlib.suppress(OSError, MemoryError):
                    while self._let_in():
                        pass
            self._listening.close()
        waiting = list(self._waiting)
        if send_away:
            for task in waiting:
                task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_PER_TURN):
            try:
                if not self._let_in():
                    return
            except (OSError, MemoryError):
                loop.remove_reader(self._listening)
                self._pause = loop.call_later(PAUSE_SECONDS, self.start)
                return

    def _let_in(self) -> bool:
        """Let one client in; False if nobody waits."""
        try:
            client, _address = self._listening.accept()
        except BlockingIOError:
            return False
        except ConnectionAbortedError:
            return True
        client.setblocking(False)
        if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # Reset already; a look is cheap.
            client.close()
            return True
        received = self._receive(client)
        if received is not None:
            task = asyncio.get_running_loop().create_task(received)
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
        return True
