"""The socket at a location by which a command asks the service that runs there, which has the store.

A command connects, writes one line, and reads one line of JSON. The line `checkpoint` asks for a checkpoint of the
store: `{"checkpoint": "<name of a directory in the location>"}`. It is there until either side hangs up. Checkpoints
are made one after the other. Any other line is the name of a procedure and its argument: `{"result": …}`. If there is
an error, the answer is `{"error": "<text>"}`.

Only a user that may write the socket's file may connect: its mode is 0600. It is bound and connected to by way of the
location's descriptor, because the path of a socket has at most 107 bytes.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from lazulite.engine.contract import EngineError

SOCKET = "lazulite.sock"
CHECKPOINT = "checkpoint"
"""The directory of a checkpoint, in the location."""
_DESCRIPTORS = Path("/proc/self/fd")

ASK_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 300.0
"""How long a command waits for a checkpoint: flushing memory to a slow disk takes a while."""

_ASK = "checkpoint"
COUNT_RESOURCES, REMOVE_DATA = "account-resources", "account-remove-data"
"""The procedures, each of which takes the name of an account."""

Procedure: TypeAlias = Callable[[str], Awaitable[Mapping[str, int]]]
"""Takes the argument of a command, and returns numbers by their names. May raise `EngineError`."""
Procedures: TypeAlias = Mapping[str, Procedure]
"""By name."""


class ControlError(Exception):
    """The service could not do what it was asked, or ended meanwhile. The text is for people."""


class Control:
    """Lends checkpoints to the commands that connect, and runs procedures for them."""

    def __init__(self, location: Path, checkpoint: Callable[[Path], Awaitable[None]], procedures: Procedures) -> None:
        """`checkpoint` makes one in the empty directory that it is given."""
        self._directory = location / CHECKPOINT
        self._checkpoint = checkpoint
        self._procedures = procedures
        self._one_at_a_time = asyncio.Lock()
        self._visits: set[asyncio.Task[None]] = set()
        self._removal: asyncio.Future[None] | None = None
        """The removal of the latest checkpoint; it goes on in its thread when a visit is cancelled."""

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        try:
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                async with asyncio.timeout(ASK_SECONDS_MAX):
                    line = await reader.readline()
                asked, _, argument = line.decode().removesuffix("\n").partition(" ")
                if asked == _ASK:
                    async with self._one_at_a_time:
                        await self._lend(reader, writer)
                elif asked in self._procedures:
                    writer.write(json.dumps(await self._result(asked, argument)).encode() + b"\n")
                    await writer.drain()
        finally:
            self._visits.discard(task)
            writer.close()

    async def _lend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(json.dumps(await self._made()).encode() + b"\n")
            await writer.drain()
            while await reader.read(1024):
                pass
        finally:
            remove = asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
            self._removal = asyncio.ensure_future(remove)
            await asyncio.shield(self._removal)

    async def _result(self, procedure: str, argument: str) -> Mapping[str, object]:
        try:
            return {"result": await self._procedures[procedure](argument)}
        except EngineError as error:
            return {"error": str(error)}

    async def _made(self) -> dict[str, str]:
        try:
            self._directory.mkdir(mode=0o700)
            await self._checkpoint(self._directory)
        except (EngineError, OSError) as error:
            return {"error": str(error)}
        return {"checkpoint": CHECKPOINT}

    async def close(self) -> None:
        """Close all connections, and return when their checkpoints are removed."""
        visits = list(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        if self._removal is not None:
            await self._removal


@asynccontextmanager
async def control(
    location: Path | None,
    checkpoint: Callable[[Path], Awaitable[None]],
    report: Callable[[str], None],
    procedures: Procedures = MappingProxyType({}),
) -> AsyncIterator[None]:
    """Take requests at a location whose store this process has open; at None there is nothing to ask for.

    Args:
        location: where the socket goes.
        checkpoint: see `Control`.
        report: gets a line if there can be no socket, which does not prevent serving.
        procedures: that commands can run, by name; more may be added later.
    """
    if location is None:
        yield
        return
    if not hasattr(socket, "AF_UNIX"):
        report("no backups while serving: this platform has no Unix sockets; stop the service for a backup")
        yield
        return
    shutil.rmtree(location / CHECKPOINT, ignore_errors=True)  # What a killed process may have left.
    try:
        listener = _listen(location)
    except OSError as error:
        report(f"no backups while serving: {location / SOCKET}: {error.strerror}")
        yield
        return
    desk = Control(location, checkpoint, procedures)
    server = await asyncio.start_unix_server(desk.visit, sock=listener)
    try:
        yield
    finally:
        server.close()
        await desk.close()
        (location / SOCKET).unlink(missing_ok=True)


def _listen(location: Path) -> socket.socket:
    (location / SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(location) as path:
            listener.bind(path)
            os.chmod(path, 0o600)  # A connection is possible only once the socket listens.
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


@contextmanager
def _short(location: Path) -> Iterator[str]:
    """Yield a path of the socket, on Linux one that fits whatever the location's length is."""
    if not _DESCRIPTORS.is_dir():
        yield str(location / SOCKET)
        return
    descriptor = os.open(location, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_DESCRIPTORS / str(descriptor) / SOCKET)
    finally:
        os.close(descriptor)


@contextmanager
def _connected(location: Path) -> Iterator[socket.socket | None]:
    """Yield a connection to the service at a location; None if none takes requests there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS_MAX)
        try:
            with _short(location) as path:
                connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            yield None
            return
        yield connection


def _answer(connection: socket.socket, line: str) -> dict[str, Any]:
    """Send a line and return the answer, empty if the service ended. Raises `OSError`."""
    connection.sendall(f"{line}\n".encode())
    with connection.makefile("rb") as answers:
        answer: dict[str, Any] = json.loads(answers.readline() or b"{}")
    return answer


def ask(location: Path, procedure: str, argument: str) -> Mapping[str, int] | None:
    """Have the service at a location run a procedure, and return its result; None if no service takes requests there.

    Raises:
        ControlError: the service cannot do it.
    """
    with _connected(location) as connection:
        if connection is None:
            return None
        try:
            answer = _answer(connection, f"{procedure} {argument}")
        except OSError as error:
            raise ControlError(f"no response from the server at {location}: {error}") from error
    if "result" not in answer:
        reason = answer.get("error", "it is stopping, or of an older version")
        raise ControlError(f"the server at {location} does not do that: {reason}")
    result: Mapping[str, int] = answer["result"]
    return result


@contextmanager
def borrowed_checkpoint(location: Path) -> Iterator[Path | None]:
    """Yield the directory of a checkpoint that the service at a location made; None if no service takes requests there.

    Raises:
        ControlError: the service cannot make one.
    """
    with _connected(location) as connection:
        if connection is None:
            yield None
            return
        try:
            answer = _answer(connection, _ASK)
        except OSError as error:
            raise ControlError(f"the server at {location} made no checkpoint: {error}") from error
        if "checkpoint" not in answer:
            raise ControlError(f"the server made no checkpoint: {answer.get('error', 'it is stopping')}")
        yield location / answer["checkpoint"]
