"""The file of a listening Unix socket: bound, connected to, and removed.

Only its owner may connect. The file has mode 0600 before its socket listens, and a socket that does not listen takes
no connection. A directory that other users may write to is rejected, unless its sticky bit protects the files of each
user from the others: they could put their own socket into the place of ours.

A file that a killed process left is replaced, and one on which a process listens is not. Both are found out under a
lock of the directory, which no other process gets before our socket listens.

The path of a socket has about a hundred bytes. On Linux it is shortened by way of the directory's descriptor.
"""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from lazulite.control.channel import CONNECTIONS_MAX, Channel
from lazulite.control.command import ControlError
from lazulite.control.messages import REQUEST_BYTES_MAX

try:
    import fcntl
except ImportError:  # Windows has none, and no Unix sockets either.
    fcntl = None  # type: ignore[assignment]  # mypy knows the module of this platform only

SOCKET = "lazulite.sock"
"""The file's name in a location."""
_DESCRIPTORS = Path("/proc/self/fd")
_MODE = 0o600
_WRITABLE_BY_OTHERS = 0o022
_LOCK_TRIES, _LOCK_SECONDS = 20, 0.05


@asynccontextmanager
async def listening(channel: Channel, path: Path) -> AsyncIterator[None]:
    """Have a channel take commands at a path inside the block.

    Raises:
        ControlError: there can be no socket. The text says why.
    """
    try:
        listener = await _bound(path)
    except OSError as error:
        raise ControlError("no-socket", f"{path}: {error.strerror or error}") from None
    made = _identity(path)
    server = await asyncio.start_unix_server(channel.connected, sock=listener, limit=REQUEST_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        if made is not None and _identity(path) == made:  # Another process may have its own there by now.
            with suppress(OSError):
                os.unlink(path)


def connected(path: Path, seconds: float) -> socket.socket:
    """Return a connection to the process that listens at a path, which times out after so many seconds.

    Raises:
        ControlError: `no-server`: no process listens there; `no-socket`: it cannot be connected to.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise ControlError("no-server", "this platform has no Unix sockets")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        with _short(path) as short:
            connection.connect(short)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        connection.close()
        raise ControlError("no-server", f"no server takes commands at {path}") from None
    except OSError as error:
        connection.close()
        raise ControlError("no-socket", f"cannot connect to {path}: {error.strerror or error}") from None
    return connection


async def _bound(path: Path) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: there can be none.
        ControlError: another process has it, or other users could replace it.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise ControlError("no-socket", "this platform has no Unix sockets")
    mode = os.stat(path.parent).st_mode
    if mode & _WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
        raise ControlError("no-socket", f"other users may write to {path.parent}: choose a directory of your own")
    with _short(path) as short:
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            await _lock(descriptor)
            _remove_stale(path, short)
            return _listener(short)
        finally:
            os.close(descriptor)


async def _lock(descriptor: int) -> None:
    """Lock a directory against other processes that bind there, until its descriptor is closed.

    A process holds it for microseconds. Any user may lock a directory, and it must not hold up the start.
    """
    for _ in range(_LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        await asyncio.sleep(_LOCK_SECONDS)
    raise ControlError("no-socket", "another process keeps its directory locked")


def _remove_stale(path: Path, short: str) -> None:
    """Remove the socket of a process that is gone.

    Raises:
        ControlError: the file is no socket, or a process listens there.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(short).st_mode):
            raise ControlError("no-socket", f"{path} is no socket, so it is not replaced")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(short)
            except ConnectionRefusedError:
                os.unlink(short)
                return
            except BlockingIOError:  # Its backlog is full, so it listens.
                pass
        raise ControlError("no-socket", f"another process takes commands at {path}")


def _listener(short: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(OSError):
            os.fchmod(listener.fileno(), _MODE)  # Linux makes the file with the mode of its socket.
        listener.bind(short)
        os.chmod(short, _MODE)  # The others need this.
        listener.listen(CONNECTIONS_MAX)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from any other that takes its name; None if it is missing."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a path of a socket, on Linux one that fits whatever the length of its directory is."""
    if not _DESCRIPTORS.is_dir():
        yield str(path)
        return
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_DESCRIPTORS / str(descriptor) / path.name)
    finally:
        os.close(descriptor)
