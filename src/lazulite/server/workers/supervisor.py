"""The front-end processes of a service, started, kept and ended by the process that owns the store.

Each has a place: its own listening sockets, of which the kernel gives each new connection to one, and which this
process keeps open too, so that connections that wait at the place of a dead process are accepted by the next one. A
front end is told what to do by its standard input, one byte a command, after its settings; the input's end means that
this process is gone, and so is the store.

Invariants: after `start` each place has a process, or one is being started; one that dies is replaced; after `stop`
there is none. Who ends because of `stop` has answered what it had begun, unless the drain's time was up.
"""

import asyncio
import contextlib
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from lazulite.server.limits import Limits
from lazulite.server.server import Ports, Sockets, listen_together

LEAVE, DRAIN, HURRY, RELOAD = b"l", b"d", b"h", b"r"
"""Commands: make clients go elsewhere; finish what is in flight and end; end at once; read the certificate again."""

READY = b"ready\n"
"""What a front end prints once it accepts requests."""

RESTART_SECONDS = 1.0
"""How long after a process that never accepted a request the next one is started."""
STOP_SECONDS_MAX = 10.0
"""How much longer than its drain a front end may take to end, before it is killed."""


class FrontEndError(Exception):
    """A front end ended before it accepted requests; it has said why."""


class Address(NamedTuple):
    """Where to listen: the ports as in `Ports`, 0 for any free one."""

    host: str
    http: int | None
    https: int | None


class FrontEnds:
    """See above; `lifecycle.serve` runs it as it runs a `Server`.

    Args:
        command: makes the command line of a front end, given its stream to the store and its sockets, as descriptors.
        settings: what each is told first.
        count: how many there are.
        address: where they listen.
        limits: theirs.
        attach: connects a stream to the store's side of a new front end; it is given what kills that one.
        report: told, in a line for people, what died.
        shared: descriptors that all of them inherit.
    """

    def __init__(
        self,
        command: Callable[[int, Sockets], Sequence[str]],
        settings: bytes,
        *,
        count: int,
        address: Address,
        limits: Limits,
        attach: Callable[[socket.socket, Callable[[], None]], Awaitable[None]],
        report: Callable[[str], None],
        shared: Sequence[int] = (),
    ) -> None:
        self.limits = limits
        self._command = command
        self._settings = len(settings).to_bytes(8, "big") + settings
        self._count = count
        self._address = address
        self._attach = attach
        self._report = report
        self._shared = tuple(shared)
        self._sockets: list[Sockets] = []
        self._processes: dict[int, Process] = {}
        self._places: list[asyncio.Task[None]] = []
        self._leaving = self._stopping = False

    @property
    def ports(self) -> Ports:
        """What is listened on since `start`."""
        return self._sockets[0].ports

    async def start(self) -> None:
        """Listen, start all processes and return once they accept requests.

        Raises:
            BindError: the address is in use, unknown or not allowed.
            FrontEndError: one of them cannot.
        """
        host, http, https = self._address
        plain = await listen_together(host, http, self._count)
        secure = await listen_together(host, https, self._count)
        self._sockets = [Sockets(*pair) for pair in zip(plain, secure, strict=True)]
        ready = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        self._places = [asyncio.create_task(self._keep(place, ready[place])) for place in range(self._count)]
        await asyncio.gather(*ready)

    def reload(self) -> None:
        """Have the certificate read again."""
        self._tell(RELOAD)

    def leave(self) -> None:
        """Go on, but make clients go elsewhere."""
        self._leaving = True
        self._tell(LEAVE)

    def hurry(self) -> None:
        """End a running or later `stop` without waiting for requests in flight."""
        self._tell(HURRY)

    async def stop(self) -> None:
        """Stop accepting, have what is in flight answered, and end all processes."""
        self._stopping = True
        for sockets in self._sockets:
            sockets.close()
        self._tell(DRAIN)
        if self._places:
            _, late = await asyncio.wait(self._places, timeout=self.limits.drain_seconds + STOP_SECONDS_MAX)
            for process in self._processes.values():
                _kill(process)
            if late:
                await asyncio.wait(late)

    def _tell(self, command: bytes) -> None:
        for process in self._processes.values():
            _say(process, command)

    async def _keep(self, place: int, ready: "asyncio.Future[None]") -> None:
        """Have a process at a place until `stop`."""
        name = f"front end {place + 1}"
        while not self._stopping:
            try:
                accepted, code = await self._live(place, ready)
            except OSError as error:
                accepted, code = False, error.errno
                self._report(f"{name} cannot be started: {error.strerror}")
            if self._stopping:
                break
            if not ready.done():
                ready.set_exception(FrontEndError(f"{name} did not start"))
                break
            self._report(f"{name} ended with {code}: its connections are lost, and another takes its place")
            if not accepted:
                await asyncio.sleep(RESTART_SECONDS)

    async def _live(self, place: int, ready: "asyncio.Future[None]") -> tuple[bool, int | None]:
        """Run a process at a place to its end; return whether it ever accepted requests, and its exit code."""
        process = self._processes[place] = await self._begin(place)
        assert process.stdin is not None
        assert process.stdout is not None
        if self._leaving:
            _say(process, LEAVE)
        if self._stopping:
            _say(process, DRAIN)
        accepts = await process.stdout.readline() == READY
        if accepts and not ready.done():
            ready.set_result(None)
        code = await process.wait()
        del self._processes[place]
        process.stdin.close()
        return accepts, code

    async def _begin(self, place: int) -> Process:
        ours, theirs = socket.socketpair()
        with theirs:
            sockets = self._sockets[place]
            inherited = (theirs.fileno(), *sockets.descriptors(), *self._shared)
            command = self._command(theirs.fileno(), sockets)
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, pass_fds=inherited)
        await self._attach(ours, lambda: _kill(process))
        _say(process, self._settings)
        return process


def _say(process: Process, words: bytes) -> None:
    """Tell a process something; one that has just ended does not hear it, and is waited for by who keeps its place."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, RuntimeError):  # The latter is what uvloop says of a pipe that is closed.
        process.stdin.write(words)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
