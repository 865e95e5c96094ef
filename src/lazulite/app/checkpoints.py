"""Checkpoints that a server lends to a command: its location as of one moment, by hard links.

Invariant: the location has at most one checkpoint, and it is removed when its command ends, or at the next start.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lazulite.app.commands import CHECKPOINT
from lazulite.control.client import Client
from lazulite.control.command import ControlError, Json, NoArguments
from lazulite.control.socket_file import SOCKET

DIRECTORY = "checkpoint"
"""The directory of a checkpoint, in the location."""


class Checkpoints:
    """Lends checkpoints of a location, one at a time.

    Args:
        location: where they are made.
        make: makes one in the empty directory that it is given. May raise `EngineError` and `OSError`.
    """

    def __init__(self, location: Path, make: Callable[[Path], Awaitable[None]]) -> None:
        self._directory = location / DIRECTORY
        self._make = make
        self._one_at_a_time = asyncio.Lock()
        shutil.rmtree(self._directory, ignore_errors=True)  # What a killed process may have left.

    async def lend(self, _: NoArguments) -> AsyncGenerator[Json, None]:
        """Yield the name of a checkpoint's directory, and keep it until this is closed. See `CHECKPOINT`."""
        async with self._one_at_a_time:
            try:
                self._directory.mkdir(mode=0o700)
                await self._make(self._directory)
                yield self._directory.name
                await asyncio.Event().wait()
            finally:
                await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)


@contextmanager
def borrowed_checkpoint(location: Path) -> Iterator[Path | None]:
    """Yield the directory of a checkpoint that the server of a location made; None if no server takes commands there.

    Raises:
        ControlError: the server cannot make one.
    """
    with closing(Client.at(location / SOCKET).stream(CHECKPOINT, NoArguments())) as items:
        try:
            next(items, None)
        except ControlError as error:
            if error.code != "no-server":
                raise ControlError(error.code, f"the server made no checkpoint: {error}") from None
            yield None
        else:
            yield location / DIRECTORY
