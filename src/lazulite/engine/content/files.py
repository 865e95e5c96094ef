"""Contents as files below one directory: `{space}/{generation}/{number}`.

Invariants: see `contract` and `generations`. The directory belongs to one process.
"""

import asyncio
import shutil
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection
from functools import partial
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.content_file import DraftFile, SealedFile
from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    ContentUnsealedError,
    Owner,
    References,
)
from lazulite.engine.content.file_writer import FileWriter
from lazulite.engine.content.space_files import SpaceFiles
from lazulite.engine.content.worker import Worker, unavailable

_DROPPED = ".dropped"
_READ_WINDOWS = 4
"""Read at once, while the ones before are sent."""


class ContentFiles:
    """Implements `ContentStore`.

    Args:
        directory: for the files; it is made when it is needed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._worker = Worker()
        self._spaces: dict[int, SpaceFiles] = {}

    async def sweep(self, references: References) -> int:
        """See `ContentStore`. Finish the drops of earlier processes, too."""
        removed = 0
        for space, path in await self._worker.run(self._found):
            if space is None:
                self._worker.begin(partial(shutil.rmtree, path, ignore_errors=True))
                continue
            for generation in await self._files(space).left_open():
                removed += await self._sweep(space, generation, references)
        return removed

    async def create(self, owner: Owner) -> FileWriter:
        """See `ContentStore`."""
        files = self._files(owner.space)
        try:
            number, path = await files.allot()
        except OSError as error:
            raise unavailable(error) from error
        return FileWriter(files, owner, number, DraftFile(path), self._worker)

    async def read(self, content: ContentId, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """See `ContentStore`."""
        if start >= stop:
            return
        try:
            file = await self._worker.run(partial(self._files(content.space).open_file, content.number))
        except OSError as error:
            raise unavailable(error) from error
        ahead: asyncio.Future[list[bytes]] | None = None
        try:
            if stop > file.length:
                raise ContentDamagedError("a content is shorter than its row says")
            first, last = start // WINDOW_BYTES, (stop - 1) // WINDOW_BYTES
            batches = [range(at, min(at + _READ_WINDOWS, last + 1)) for at in range(first, last + 1, _READ_WINDOWS)]
            ahead = self._worker.submit(partial(file.read, batches[0]))
            for index, batch in enumerate(batches):
                windows = await asyncio.shield(ahead)
                if index + 1 < len(batches):
                    ahead = self._worker.submit(partial(file.read, batches[index + 1]))
                for number, window in zip(batch, windows, strict=True):
                    base = number * WINDOW_BYTES
                    yield window[max(0, start - base) : stop - base]
        except OSError as error:
            raise unavailable(error) from error
        finally:
            _close_after(file, ahead)

    def keep(self, content: ContentId) -> None:
        """See `ContentStore`."""
        self._files(content.space).decide([content.number])

    async def delete(self, contents: Collection[ContentId]) -> None:
        """See `ContentStore`."""
        by_space: defaultdict[int, list[int]] = defaultdict(list)
        for space, number in contents:
            by_space[space].append(number)
        for space, numbers in by_space.items():
            files = self._files(space)
            try:
                await self._worker.run(partial(files.remove, numbers))
            except OSError as error:
                raise unavailable(error) from error
            files.decide(numbers)

    async def drop(self, space: int) -> None:
        """See `ContentStore`."""
        target = self._directory / f"{space}{_DROPPED}"
        try:
            await self._files(space).drop(target)
        except OSError as error:
            raise unavailable(error) from error
        self._worker.begin(partial(shutil.rmtree, target, ignore_errors=True))

    async def close(self) -> None:
        """See `ContentStore`."""
        for files in self._spaces.values():
            for path in files.settle_all():
                self._worker.begin(partial(generations.settle, path))
        await asyncio.to_thread(self._worker.close)

    def _files(self, space: int) -> SpaceFiles:
        files = self._spaces.get(space)
        if files is None:
            files = self._spaces[space] = SpaceFiles(self._directory / str(space), self._worker)
        return files

    def _found(self) -> list[tuple[int | None, Path]]:
        """Return the directories of spaces; None for one that was dropped."""
        if not self._directory.is_dir():
            return []
        found: list[tuple[int | None, Path]] = []
        for path in self._directory.iterdir():
            if path.suffix == _DROPPED:
                found.append((None, path))
            elif path.name.isdecimal():
                found.append((int(path.name), path))
        return found

    async def _sweep(self, space: int, generation: Path, references: References) -> int:
        """Delete the files of a generation to which no row refers, and settle it. Return how many were deleted."""
        owners: defaultdict[str, list[int]] = defaultdict(list)
        unwanted: list[int] = []
        for number, owner in await self._worker.run(partial(self._owners, space, generation)):
            if owner is None:
                unwanted.append(number)
            else:
                owners[owner].append(number)
        for owner, numbers in owners.items():
            used = await references(Owner(space, owner))
            unwanted += [number for number in numbers if ContentId(space, number) not in used]
        await self.delete([ContentId(space, number) for number in unwanted])
        await self._worker.run(partial(generations.settle, generation))
        return len(unwanted)

    def _owners(self, space: int, generation: Path) -> list[tuple[int, str | None]]:
        """Return the contents of a generation with their owners; None for a file that was never sealed."""
        found: list[tuple[int, str | None]] = []
        for number in generations.numbers_in(generation):
            try:
                file = self._files(space).open_file(number)
            except ContentUnsealedError:
                found.append((number, None))
            except (ContentMissingError, ContentDamagedError):
                continue  # A damaged one may have a row. `lazulite check` finds it.
            else:
                found.append((number, file.owner))
                file.close()
        return found


def _close_after(file: SealedFile, reading: "asyncio.Future[list[bytes]] | None") -> None:
    """Close a file, once a thread has ended its reading."""
    if reading is None or reading.done():
        file.close()
    else:
        reading.add_done_callback(partial(_close, file))


def _close(file: SealedFile, reading: "asyncio.Future[list[bytes]]") -> None:
    if not reading.cancelled():
        reading.exception()  # So that it counts as seen: its reader has left.
    file.close()
