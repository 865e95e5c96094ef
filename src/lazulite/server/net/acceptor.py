"""The accept loop of a listening socket.

The event loop's own server has none of these invariants:

- While the process has no file descriptor or memory for one more client, the event loop stays idle. New connections
  wait in the kernel's backlog, for `PAUSE_SECONDS` at a time.
- After `stop`, no connection is accepted, and none is being set up.
- `stop` accepts every connection that the kernel has completed.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine

from lazulite.server.net.syn_filter import drop_new_syns

ACCEPTED_PER_ITERATION = 64
PAUSE_SECONDS = 1.0
HANDSHAKE_SECONDS = 0.05
"""How long `stop` waits for connections that the kernels of both sides are about to make: a round trip."""


class Acceptor:
    """Accepts connections.

    Args:
        listening: not blocking; closed by `stop`.
        receive: takes over a client's non-blocking socket, and returns the setup of the connection, such as a TLS
            handshake. None: there is nothing to set up, or the client was rejected.
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
        """Connections that are being set up."""
        return len(self._waiting)

    def start(self) -> None:
        """Accept from now on, on the running loop."""
        self._pause = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def stop(self, *, reject: bool) -> None:
        """Stop accepting; cancel connections that are being set up if `reject`, otherwise wait for them."""
        if self._listening.fileno() >= 0:
            drop_new_syns(self._listening)
            await asyncio.sleep(HANDSHAKE_SECONDS)
            if self._pause is not None:
                self._pause.cancel()
            asyncio.get_running_loop().remove_reader(self._listening)
            if not reject:
                with contextlib.suppress(OSError, MemoryError):
                    while self._accept_one():
                        pass
            self._listening.close()
        waiting = list(self._waiting)
        if reject:
            for task in waiting:
                task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(ACCEPTED_PER_ITERATION):
            try:
                if not self._accept_one():
                    return
            except (OSError, MemoryError):
                loop.remove_reader(self._listening)
                self._pause = loop.call_later(PAUSE_SECONDS, self.start)
                return

    def _accept_one(self) -> bool:
        """Accept one connection; return False if the backlog is empty."""
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
