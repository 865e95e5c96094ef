"""A backup of the files of contents, while processes write and delete some.

    hold off deletions; make a checkpoint of the rows; link the files; let deletions go on

Invariant: each content to which a row of the checkpoint refers is among the files. Others among them are in generations
that were open at the checkpoint or are newer, and none is settled meanwhile. So the next start searches them.

A process that deletes files, or renames a directory, has a shared lock on the directory of all contents. A backup has
the exclusive one. Windows has no such locks, and no backups while serving.
"""

import asyncio
import importlib.util
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from lazulite.engine.content.linked_file import NO_LINK
from lazulite.engine.durable_files import make_private

_LOCKS = importlib.util.find_spec("fcntl") is not None
if _LOCKS:
    import fcntl


@contextmanager
def deleting(directory: Path) -> Iterator[None]:
    """Delete files inside the block. It may block for as long as a backup links files.

    Raises:
        OSError: the directory cannot be locked.
    """
    with _locked(directory, exclusive=False):
        yield


@asynccontextmanager
async def deletions_held(directory: Path) -> AsyncIterator[None]:
    """Hold off deletions inside the block, in this process and in others.

    Raises:
        OSError: the directory cannot be locked.
    """
    loop, entered, left = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold() -> None:
        make_private(directory)
        with _locked(directory, exclusive=True):
            loop.call_soon_threadsafe(entered.set)
            left.wait()

    holding = asyncio.ensure_future(asyncio.to_thread(hold))
    entering = asyncio.ensure_future(entered.wait())
    try:
        await asyncio.wait([holding, entering], return_when=asyncio.FIRST_COMPLETED)
        if not holding.done():
            yield
    finally:
        left.set()
        entering.cancel()
        await asyncio.shield(holding)


def link_files(directory: Path, target: Path) -> None:
    """Give all files of contents a second name below a new directory, not durably. It blocks.

    Args:
        directory: of all contents; it may be missing.
        target: on the same file system; it must not exist.

    Raises:
        OSError: it cannot be done.
    """
    target.mkdir(mode=0o700)
    for space in _directories(directory):
        (target / space.name).mkdir(mode=0o700)
        for generation in _directories(space):
            (target / space.name / generation.name).mkdir(mode=0o700)
            with suppress(FileNotFoundError):  # An empty generation may go.
                for file in os.scandir(generation):
                    _link(Path(file.path), target / space.name / generation.name / file.name)


def _directories(path: Path) -> list[Path]:
    """Return the directories of spaces, or of generations; dropped spaces are passed over."""
    if not path.is_dir():
        return []
    return [Path(entry.path) for entry in os.scandir(path) if entry.is_dir() and not entry.name.endswith(".dropped")]


def _link(file: Path, target: Path) -> None:
    with suppress(FileNotFoundError):  # It was never sealed, and is discarded.
        try:
            os.link(file, target)
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            shutil.copyfile(file, target)


@contextmanager
def _locked(directory: Path, *, exclusive: bool) -> Iterator[None]:
    if not _LOCKS or not directory.is_dir():
        yield
        return
    lock = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)
