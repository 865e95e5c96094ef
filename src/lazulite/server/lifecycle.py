"""The life of a serving process: start, announce, serve, leave on a signal, drain, return.

Invariant: `serve` returns normally after a signal, with everything in flight answered or the drain's time used up, so
that its caller can close the engine and exit 0.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Protocol, TypeVar

from lazulite.engine.thread_pool import ThreadPool
from lazulite.server.allocator import keep_freed_memory
from lazulite.server.limits import Limits
from lazulite.server.server import BindError, Server

T = TypeVar("T")
Ports_co = TypeVar("Ports_co", covariant=True)

_BLOCKING_THREADS = 4
"""The threads of the loop's default executor: metrics, and each backup, take up to two for a while."""
_SPARE_FILES = 5 * 1024
"""File descriptors beside the connections': a store's, which keeps up to 4,096 open, and the logs'."""

__all__ = ["BindError", "Server", "allow_connections", "allow_files", "run", "serve"]


def handle_signals(loop: asyncio.AbstractEventLoop, handlers: Mapping[int, Callable[[], None]]) -> Callable[[], None]:
    """Call handlers on a loop at signals; return what ends that.

    Windows' event loops take no handlers. There, Python's own handlers wake the loop.

    Args:
        loop: the running loop, of the main thread.
        handlers: signal number -> what to call.
    """
    try:
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
    except NotImplementedError:
        return _handle_by_python(loop, handlers)

    def restore() -> None:
        for number in handlers:
            loop.remove_signal_handler(number)

    return restore


def _handle_by_python(
    loop: asyncio.AbstractEventLoop, handlers: Mapping[int, Callable[[], None]]
) -> Callable[[], None]:
    def on_signal(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(handlers[number])

    before = {number: signal.signal(number, on_signal) for number in handlers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


try:
    import uvloop
except ImportError:  # There is none for Windows.
    uvloop = None  # type: ignore[assignment]  # mypy knows one platform only
try:
    import resource
except ImportError:  # Windows has no limit of this kind.
    resource = None  # type: ignore[assignment]  # mypy knows the module of this platform only


class Serving(Protocol[Ports_co]):
    """A `Server`, several of them, or a `WorkerSupervisor`."""

    @property
    def limits(self) -> Limits:
        """Its bounds."""
        ...

    @property
    def ports(self) -> Ports_co:
        """What is listened on since `start`."""
        ...

    async def start(self) -> None:
        """Begin to accept requests."""
        ...

    def leave(self) -> None:
        """Go on, but make clients go elsewhere."""
        ...

    async def stop(self) -> None:
        """Stop accepting, answer what is in flight, end."""
        ...

    def force_stop(self) -> None:
        """End a running or later `stop` at once."""
        ...


async def serve(
    server: Serving[T], *, on_ready: Callable[[T], None], on_hangup: Callable[[], None] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then leave, then drain; each signal after the first cuts short what is on then.

    Args:
        server: not yet started.
        on_ready: called with the actual ports once requests are accepted.
        on_hangup: called at each SIGHUP; None leaves that signal alone.

    Raises:
        BindError: the address cannot be listened on.
    """
    allow_connections(server.limits)
    keep_freed_memory()
    loop = asyncio.get_running_loop()
    signalled, left = asyncio.Event(), asyncio.Event()
    delay_seconds = server.limits.drain_delay_seconds
    if not delay_seconds:
        left.set()

    def on_signal() -> None:
        if not signalled.is_set():
            signalled.set()
        elif not left.is_set():
            left.set()
        else:
            server.force_stop()

    handlers: dict[int, Callable[[], None]] = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if on_hangup is not None and hasattr(signal, "SIGHUP"):  # Windows has none.
        handlers[signal.SIGHUP] = on_hangup
    restore = handle_signals(loop, handlers)
    try:
        await server.start()
        on_ready(server.ports)
        await signalled.wait()
        server.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_seconds):
                await left.wait()
        left.set()
    finally:
        await server.stop()
        restore()


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end on a fresh event loop, uvloop's where there is one, as `asyncio.run` does.

    Its default executor, that of `asyncio.to_thread`, starts no thread later.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop if uvloop is None else uvloop.new_event_loop) as runner:
        runner.get_loop().set_default_executor(ThreadPool(_BLOCKING_THREADS, "lazulite-blocking"))
        return runner.run(main)


def allow_connections(limits: Limits) -> None:
    """Let the process open as many files as its connections and its store need, as far as that is allowed.

    A store looks at what is allowed when it is opened, so this comes first.
    """
    allow_files(limits.connections + _SPARE_FILES)


def allow_files(count: int) -> int:
    """Raise the process's soft limit of open files towards `count`, as far as the hard limit lets; return the limit."""
    if resource is None:
        return count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return soft
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
