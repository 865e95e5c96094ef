"""The client's side of the control channel: sends a command to a running server, and reads its items.

`Client` blocks, as the commands of `lazulite` and tests do. `ask` is its twin for an event loop: with it the primary
has its workers run a command.
"""

import asyncio
import socket
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from lazulite.control.channel import close, streams
from lazulite.control.command import Command, ControlError, Json
from lazulite.control.messages import RESPONSE_LINE_BYTES_MAX, check_hello, decode, is_item, request
from lazulite.control.socket_file import connected

A = TypeVar("A")

SECONDS_MAX = 300.0
"""How long a client waits for the next item: flushing memory to a slow disk for a backup takes a while."""


class Client:
    """Sends commands to one server; each command has a connection of its own.

    Args:
        connect: returns a blocking connection to the server. May raise `ControlError`.
    """

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect

    @classmethod
    def at(cls, path: Path) -> "Client":
        """Return a client of the server that listens at a path."""
        return cls(lambda: connected(path, SECONDS_MAX))

    def stream(self, command: Command[A], arguments: A) -> Generator[Json, None, None]:
        """Yield the items of a command. The server ends the command when this iterator is closed.

        Raises:
            ControlError: no server is there, or it rejected the command, or failed.
        """
        line = _request(command, arguments)
        with self._connect() as connection, connection.makefile("rb") as lines:
            try:
                with suppress(ConnectionError):  # It may have rejected the connection, and says so.
                    connection.sendall(line)
                check_hello(_whole(lines.readline(RESPONSE_LINE_BYTES_MAX)))
                while is_item(message := decode(_whole(lines.readline(RESPONSE_LINE_BYTES_MAX)))):
                    yield message["item"]
            except OSError as error:
                raise ControlError("cut", f"no response from the server: {error}") from error

    def ask(self, command: Command[A], arguments: A) -> Json:
        """Return the only item of a command.

        Raises:
            ControlError: as `stream`.
        """
        with closing(self.stream(command, arguments)) as items:
            return next(items, None)


class ProcessResult(NamedTuple):
    """What one process answered to a command."""

    process: str
    items: Sequence[Json]
    error: ControlError | None
    """Why there are no more items; None: these are all."""


async def ask(connection: socket.socket, command: Command[A], arguments: A) -> Sequence[Json]:
    """Return the items of a command that the process at the other end of a connection runs.

    Raises:
        ControlError: the process rejected the command, failed, or ended.
    """
    try:
        reader, writer = await streams(connection, RESPONSE_LINE_BYTES_MAX)
        try:
            writer.write(_request(command, arguments))
            check_hello(_whole(await reader.readline()))
            items = []
            while is_item(message := decode(_whole(await reader.readline()))):
                items.append(message["item"])
            return items
        finally:
            await close(writer)
    except (OSError, ValueError) as error:
        raise ControlError("cut", f"no response: {error}") from error


async def ask_each(
    connects: Mapping[str, Callable[[], socket.socket]], command: Command[A], arguments: A, seconds: float
) -> Sequence[ProcessResult]:
    """Have several processes run a command at the same time, and return what each answered, in their order.

    Args:
        connects: the name of each process -> what returns a connection to it; it may raise `OSError`.
        command: which each of them has.
        arguments: of the command.
        seconds: how long it waits for them.
    """

    async def ask_one(process: str, connect: Callable[[], socket.socket]) -> ProcessResult:
        try:
            async with asyncio.timeout(seconds):
                return ProcessResult(process, await ask(connect(), command, arguments), None)
        except TimeoutError:
            return ProcessResult(process, (), ControlError("timeout", f"no response in {seconds:g} seconds"))
        except OSError as error:
            return ProcessResult(process, (), ControlError("cut", str(error)))
        except ControlError as error:
            return ProcessResult(process, (), error)

    return await asyncio.gather(*(ask_one(*each) for each in connects.items()))


def _request(command: Command[A], arguments: A) -> bytes:
    assert is_dataclass(arguments)
    assert not isinstance(arguments, type)
    return request(command.name, asdict(arguments))


def _whole(line: bytes) -> bytes:
    """Return a line that has its end.

    Raises:
        ControlError: the connection ended before it, or the line is too long.
    """
    if not line.endswith(b"\n"):
        if len(line) == RESPONSE_LINE_BYTES_MAX:
            raise ControlError("bad-response", "the server sent a line that is too long")
        raise ControlError("cut", "the server ended the connection: it is stopping, or of an older version")
    return line
