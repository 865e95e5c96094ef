"""The worker processes of a service, started, replaced and stopped by the primary.

Workers have numbers from 0. Each number has its own listening sockets; the kernel assigns each new connection to one of
the numbers. The primary keeps the sockets open too, so that connections that wait there when a worker dies are accepted
by its successor. A worker reads its settings from standard input, and then commands of one byte. The end of the input
means that the primary is gone. To have a worker run a command of the control channel, the primary passes it one end of
a new pair of sockets.

Invariants: after `start` each number has a process, or one is being started; a process that ends is replaced; after
`stop` there is none. A worker that `stop` ends has responded to all requests in flight, unless the drain's time was up.
"""

import asyncio
import contextlib
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar

from lazulite.server.limits import Limits
from lazulite.server.server import BindError, Ports, Sockets, listen_together

T = TypeVar("T")

ANNOUNCE_STOP, STOP, FORCE_STOP, RELOAD, METRICS = b"l", b"d", b"h", b"r", b"m"
"""Commands: announce the stop; complete the requests in flight and exit; exit at once; reload the certificate; print
the metrics as a line."""

READY = b"ready\n"
"""The line that a worker prints once it accepts requests."""
LINE_BYTES_MAX = 16 << 20
"""The longest line that a worker prints. Its metrics, with all series that there can be, take less than 1 MiB."""

RESTART_SECONDS = 1.0
"""The delay before a process is replaced that never accepted requests."""
STOP_SECONDS_MAX = 10.0
"""How long after the drain's time a worker is killed."""


class WorkerError(Exception):
    """A worker ended before it accepted requests; it printed the reason."""


class Address(NamedTuple):
    """Where a server of each worker listens: the ports as in `Ports`, 0 for any free one."""

    host: str
    http: int | None
    https: int | None


class WorkerListener(Protocol):
    """Observes workers by their numbers."""

    def on_ready(self, worker: int, ask: Callable[[], None], /) -> None:
        """Note that a new process accepts requests; `ask` makes it print its metrics."""
        ...

    def on_line(self, worker: int, line: bytes, /) -> None:
        """Take a line that a process printed."""
        ...

    def on_end(self, worker: int, /) -> None:
        """Note that a process that accepted requests has ended."""
        ...


class WorkerSupervisor(Generic[T]):
    """See above; `lifecycle.serve` runs it as it runs a `Server`.

    Args:
        command: returns the command line of a worker, given the descriptors of its stream to the store and of the
            socket by which connections are passed, and its sockets, those of each address.
        settings: sent to each worker first.
        count: of the workers.
        addresses: where they listen, by what is served there.
        limits: of each worker.
        attach: connects a new worker's stream to the store; its second argument kills the worker.
        report: takes a line for people about each worker that ends.
        shared: descriptors that all workers inherit.
        listener: observes the workers; None if there are no metrics.
        explained: returns the error for people of an address that cannot be listened on.
    """

    def __init__(  # noqa: PLR0913 - most are given by name
        self,
        command: Callable[[int, int, Sequence[Sockets]], Sequence[str]],
        settings: bytes,
        *,
        count: int,
        addresses: Mapping[T, Address],
        limits: Limits,
        attach: Callable[[socket.socket, Callable[[], None]], Awaitable[None]],
        report: Callable[[str], None],
        shared: Sequence[int] = (),
        listener: WorkerListener | None = None,
        explained: Callable[[BindError, T], BindError] = lambda error, _: error,
    ) -> None:
        self.limits = limits
        self._command = command
        self._settings = _counted(settings)
        self._count = count
        self._addresses = addresses
        self._attach = attach
        self._report = report
        self._shared = tuple(shared)
        self._listener = listener
        self._explained = explained
        self._sockets: list[list[Sockets]] = []
        """By worker, those of each address."""
        self._processes: dict[int, Process] = {}
        self._passages: dict[int, socket.socket] = {}
        """By worker, where connections are passed to one that accepts requests."""
        self._keepers: list[asyncio.Task[None]] = []
        self._stop_announced = self._stopping = False

    @property
    def ports(self) -> Mapping[T, Ports]:
        """The ports that are listened on since `start`."""
        return {served: sockets.ports for served, sockets in zip(self._addresses, self._sockets[0], strict=True)}

    def connects(self) -> Mapping[str, Callable[[], socket.socket]]:
        """Return the name of each worker that accepts requests -> what returns a new connection to its channel."""
        passages = sorted(self._passages.items())
        return {f"worker {number + 1}": partial(_pass_connection, passage) for number, passage in passages}

    async def start(self) -> None:
        """Listen, start all processes and return once they accept requests.

        Raises:
            BindError: the address is in use, unknown or not allowed.
            WorkerError: a worker did not start.
        """
        self._sockets = [[] for _ in range(self._count)]
        for served, (host, http, https) in self._addresses.items():
            try:
                plain = await listen_together(host, http, self._count)
                secure = await listen_together(host, https, self._count)
            except BindError as error:
                raise self._explained(error, served) from error
            for sockets, *pair in zip(self._sockets, plain, secure, strict=True):
                sockets.append(Sockets(*pair))
        ready = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        self._keepers = [asyncio.create_task(self._keep(number, ready[number])) for number in range(self._count)]
        await asyncio.gather(*ready)

    def use(self, settings: bytes) -> None:
        """Have all processes that start from now on get other settings. A command tells the running ones.

        A process that is starting misses both: it ends when it is ready, and another one replaces it.
        """
        self._settings = _counted(settings)

    def reload(self) -> None:
        """Have each worker reload the certificate."""
        self._send_all(RELOAD)

    def leave(self) -> None:
        """Announce the stop: `/health` reports it, and connections are closed after their next response."""
        self._stop_announced = True
        self._send_all(ANNOUNCE_STOP)

    def force_stop(self) -> None:
        """End a running or later `stop` without waiting for requests in flight."""
        self._send_all(FORCE_STOP)

    async def stop(self) -> None:
        """Stop accepting, let the workers complete the requests in flight, and end all processes."""
        self._stopping = True
        for pair in chain.from_iterable(self._sockets):
            pair.close()
        self._send_all(STOP)
        if self._keepers:
            _, late = await asyncio.wait(self._keepers, timeout=self.limits.drain_seconds + STOP_SECONDS_MAX)
            for process in self._processes.values():
                _kill(process)
            if late:
                await asyncio.wait(late)

    def _send_all(self, command: bytes) -> None:
        for process in self._processes.values():
            _send(process, command)

    async def _keep(self, number: int, ready: "asyncio.Future[None]") -> None:
        """Keep a worker running until `stop`."""
        name = f"worker {number + 1}"
        while not self._stopping:
            try:
                accepted, code = await self._live(number, ready)
            except OSError as error:
                accepted, code = False, error.errno
                self._report(f"{name} cannot be started: {error.strerror}")
            if self._stopping:
                break
            if not ready.done():
                ready.set_exception(WorkerError(f"{name} did not start"))
                break
            self._report(f"{name} ended with {code}: its connections are lost, and another one replaces it")
            if not accepted:
                await asyncio.sleep(RESTART_SECONDS)

    async def _live(self, number: int, ready: "asyncio.Future[None]") -> tuple[bool, int | None]:
        """Run one process to its end; return whether it ever accepted requests, and its exit code."""
        settings = self._settings
        process, passage = await self._begin(number)
        _send(process, settings)
        self._processes[number] = process
        assert process.stdin is not None
        assert process.stdout is not None
        if self._stop_announced:
            _send(process, ANNOUNCE_STOP)
        if self._stopping:
            _send(process, STOP)
        accepts = await process.stdout.readline() == READY
        if accepts:
            if not ready.done():
                ready.set_result(None)
            if settings is self._settings:
                self._passages[number] = passage
                await self._listen(number, process, process.stdout)
            else:
                _kill(process)
        code = await process.wait()
        del self._processes[number]
        self._passages.pop(number, None)
        passage.close()
        process.stdin.close()
        return accepts, code

    async def _listen(self, number: int, process: Process, output: asyncio.StreamReader) -> None:
        """Pass on the lines that a process prints, to the end of its output."""
        if self._listener is None:
            return
        self._listener.on_ready(number, lambda: _send(process, METRICS))
        try:
            async for line in output:
                self._listener.on_line(number, line)
        finally:
            self._listener.on_end(number)

    async def _begin(self, number: int) -> tuple[Process, socket.socket]:
        """Start a process; return it, and where connections are passed to it."""
        ours, theirs = socket.socketpair()
        passage, passed = socket.socketpair()
        passage.setblocking(False)
        with theirs, passed:
            sockets = self._sockets[number]
            listening = [descriptor for pair in sockets for descriptor in pair.descriptors()]
            inherited = (theirs.fileno(), passed.fileno(), *listening, *self._shared)
            command = self._command(theirs.fileno(), passed.fileno(), sockets)
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES_MAX, pass_fds=inherited
            )
        await self._attach(ours, lambda: _kill(process))
        return process, passage


def _counted(settings: bytes) -> bytes:
    return len(settings).to_bytes(8, "big") + settings


def _send(process: Process, data: bytes) -> None:
    """Send bytes to a process. If it has just ended they are dropped; `_keep` notices the end."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, RuntimeError):  # uvloop raises the latter for a closed pipe.
        process.stdin.write(data)


def _pass_connection(passage: socket.socket) -> socket.socket:
    """Pass a process one end of a new pair of sockets, and return the other. Raises `OSError` if it takes none."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            socket.send_fds(passage, [b"c"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
    return ours


def take_connections(passage: socket.socket, take: Callable[[socket.socket], None]) -> None:
    """Have a worker take each connection that its primary passes, on the running loop, until the primary is gone.

    Args:
        passage: the socket that the worker inherited.
        take: called with each connection.
    """
    passage.setblocking(False)
    loop = asyncio.get_running_loop()

    def receive() -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(passage, 1, 1)
        except BlockingIOError:
            return
        for descriptor in descriptors:
            take(socket.socket(fileno=descriptor))
        if not data:
            loop.remove_reader(passage)

    loop.add_reader(passage, receive)


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
