"""The server's side of the control channel: takes connections, runs commands, and streams their items.

Invariants: a connection carries one command. At most `CONNECTIONS_MAX` are served at a time. Each holds a request and
a line of a response, and lasts no longer than its command may. A handler ends before its connection is closed, and all
of them before `close` returns.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import TypeVar

from lazulite.control.command import Command, ControlError, Handler, Json
from lazulite.control.messages import END, REQUEST_BYTES_MAX, encode, failure, hello, requested
from lazulite.engine.contract import EngineError

A = TypeVar("A")

CONNECTIONS_MAX = 16
REQUEST_SECONDS_MAX = 5.0
"""How long a client may take to send its request."""
STALL_SECONDS_MAX = 30.0
"""How long a client may read nothing of its response."""

_BUSY = failure(ControlError("busy", f"the server runs {CONNECTIONS_MAX} commands already; try again"))


class _CommandHandler:
    """A command with its handler.

    Args:
        command: declares the arguments.
        handler: runs it.
    """

    def __init__(self, command: Command[A], handler: Handler[A]) -> None:
        self.seconds_max = command.seconds_max
        self.run: Callable[[Json], AsyncGenerator[Json, None]] = lambda given: handler(command.parse(given))


class Channel:
    """The commands that this process takes, and the connections that run them.

    Args:
        version: of the server, for clients.
    """

    def __init__(self, version: str) -> None:
        self._version = version
        self._hello = hello(version)
        self._commands: dict[str, _CommandHandler] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._handlers: set[asyncio.Task[None]] = set()
        """Those that run, and those that still clean up after a client that closed its connection."""

    def register(self, command: Command[A], handler: Handler[A]) -> None:
        """Take a command from now on; a second handler replaces the first."""
        self._commands[command.name] = _CommandHandler(command, handler)

    def attach(self, connection: socket.socket) -> None:
        """Take a command from a connected stream socket, in the running loop."""
        self._start(self._open(connection))

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a command from a new connection of a listening socket."""
        self._start(self._take(reader, writer))

    async def close(self) -> None:
        """Close all connections, and return when their handlers have ended."""
        for task in self._connections:
            task.cancel()
        while remaining := self._connections | self._handlers:
            await asyncio.wait(remaining)

    def _start(self, serving: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(serving)
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _open(self, connection: socket.socket) -> None:
        await self._take(*await streams(connection, REQUEST_BYTES_MAX))

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        try:
            writer.write(self._hello)
            with suppress(OSError):
                if len(self._connections) > CONNECTIONS_MAX:
                    await _send(writer, _BUSY)
                else:
                    await self._serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await close(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._respond(reader, writer)
        except ControlError as error:
            await _send(writer, failure(error))
        else:
            await _send(writer, END)

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Run the command of a connection, and send its items.

        Raises:
            ControlError: the request is malformed, or the command failed.
            OSError: the connection ended.
        """
        name, arguments = requested(await _request(reader))
        registered = self._commands.get(name)
        if registered is None:
            text = f"the server (version {self._version}) has no command {name[:64]!r}"
            raise ControlError("unknown-command", f"{text}; it has {', '.join(sorted(self._commands))}")
        handler = asyncio.ensure_future(_send_items(writer, registered.run(arguments)))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)
        closed = asyncio.ensure_future(reader.read(1))  # A client sends nothing more, so this is the end.
        both = [handler, closed]
        try:
            await asyncio.wait(both, timeout=registered.seconds_max, return_when=asyncio.FIRST_COMPLETED)
            is_late = not handler.done() and not closed.done()
        finally:
            handler.cancel()
            closed.cancel()
            await asyncio.wait(both)
        if is_late:
            raise ControlError("timeout", f"{name} took more than {registered.seconds_max:g} seconds")
        if closed.cancelled() or closed.exception() is None:
            await handler


async def streams(connection: socket.socket, line_bytes_max: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the streams of a connected socket, whose lines have a bound."""
    connection.setblocking(False)
    if hasattr(socket, "AF_UNIX") and connection.family == socket.AF_UNIX:
        return await asyncio.open_unix_connection(sock=connection, limit=line_bytes_max)
    return await asyncio.open_connection(sock=connection, limit=line_bytes_max)


async def close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; drop what the other side does not read in time."""
    writer.close()
    try:
        async with asyncio.timeout(STALL_SECONDS_MAX):
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """Return the line of a request.

    Raises:
        ControlError: the line is too long, or does not come in time.
        ConnectionError: the client closed the connection.
    """
    try:
        async with asyncio.timeout(REQUEST_SECONDS_MAX):
            line = await reader.readline()
    except TimeoutError:
        raise ControlError("timeout", f"no request came in {REQUEST_SECONDS_MAX:g} seconds") from None
    except ValueError:
        raise ControlError("too-long", f"the request has more than {REQUEST_BYTES_MAX} bytes") from None
    if not line.endswith(b"\n"):
        raise ConnectionAbortedError("the client closed the connection")
    return line


async def _send_items(writer: asyncio.StreamWriter, items: AsyncGenerator[Json, None]) -> None:
    """Send the items of a handler.

    Raises:
        ControlError: the handler failed.
        OSError: the connection ended.
    """
    async with aclosing(items):
        while True:
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            except (EngineError, OSError) as error:
                raise ControlError("failed", str(error)) from error
            await _send(writer, encode({"item": item}))


async def _send(writer: asyncio.StreamWriter, line: bytes) -> None:
    """Send a line.

    Raises:
        OSError: the client closed the connection, or reads nothing.
    """
    if writer.is_closing():  # Of which uvloop's transports make an error of their own.
        raise ConnectionResetError("the client closed the connection")
    writer.write(line)
    async with asyncio.timeout(STALL_SECONDS_MAX):
        await writer.drain()
