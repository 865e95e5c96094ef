"""Contents as files below one directory: `{space}/{generation}/{number}`.

Invariants: see `contract` and `generations`. Several processes of one machine may use the directory: each writes files
of its own, and reads and deletes those of all. A process that finds a directory gone takes its space for dropped.
"""

import asyncio
import contextlib
import shutil
from asyncio import Future, shield, wait
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection
from functools import partial
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.content_file import SealedFile, UnsealedFile
from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentUnsealedError,
    Owner,
    References,
)
from lazulite.engine.content.footer import windows
from lazulite.engine.content.linked_file import read_owner, remove_file
from lazulite.engine.content.process_slots import ProcessSlots
from lazulite.engine.content.space_files import SpaceFiles
from lazulite.engine.content.worker import Remover, Worker, unavailable
from lazulite.engine.contract import EngineError

_DROPPED = ".dropped"


class FileWriter:
    """Implements `ContentWriter`. While one window is written, another one is collected.

    Args:
        files: of the space.
        owner: of the content.
        number: of the content.
        draft: its file.
        worker: runs what blocks.
    """

    def __init__(self, files: SpaceFiles, owner: Owner, number: int, draft: UnsealedFile, worker: Worker) -> None:
        self.length = 0
        self._files = files
        self._owner = owner
        self._number = number
        self._draft = draft
        self._worker = worker
        self._chunks: list[bytes] = []
        self._collected = 0
        self._writing: Future[None] | None = None
        self._sealed = False

    async def write(self, chunk: bytes) -> None:
        """See `ContentWriter`."""
        self._chunks.append(chunk)
        self._collected += len(chunk)
        self.length += len(chunk)
        if self._collected >= WINDOW_BYTES:
            await self._written()
            chunks, self._chunks, self._collected = self._chunks, [], 0
            self._writing = self._worker.submit(partial(self._draft.append, chunks))

    async def seal(self) -> ContentId:
        """See `ContentWriter`."""
        await self._written()
        chunks, self._chunks = self._chunks, []
        self._writing = self._worker.submit(partial(_finish, self._draft, chunks, self._owner.partition))
        await self._written()
        try:
            await self._files.sync_name(self._number)
        except OSError as error:
            raise self._files.failure(error) from error
        self._sealed = True
        return ContentId(self._owner.space, self._number)

    async def discard(self) -> None:
        """See `ContentWriter`."""
        if self._sealed:
            return
        if self._writing is not None:
            await wait([self._writing])
            self._writing.exception()  # So that it counts as seen.
        self._chunks = []
        with contextlib.suppress(OSError):
            await self._worker.run(self._draft.remove)
            self._files.decide([self._number])

    async def _written(self) -> None:
        if self._writing is not None:
            try:
                await shield(self._writing)
            except OSError as error:
                raise self._files.failure(error) from error


def _finish(draft: UnsealedFile, chunks: list[bytes], owner: str) -> None:
    draft.append(chunks)
    draft.finish(owner)


class ContentFiles:
    """Implements `ContentStore`.

    Args:
        directory: for the files; it is made when it is needed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._worker = Worker()
        self._remover = Remover(directory)
        self._slots = ProcessSlots(directory)
        self._spaces: dict[int, SpaceFiles] = {}
        self._sweeping = asyncio.Lock()
        self._left: set[int] | None = None
        """The slots of dead processes that the latest sweep found; None before the first."""

    async def sweep(self, references: References) -> int:
        """See `ContentStore`. Finish the drops of earlier processes, too.

        The first sweep looks at what all dead processes left, the later ones only at what the sweep before has found
        left. A process may die while its commit is on the way: the caller sees that each commit that was sent before
        one sweep is durable, or failed, before the next.
        """
        async with self._sweeping:
            swept: Collection[int] = ()
            try:
                left = await self._worker.run(self._slots.left)
                due = left if self._left is None else left & self._left
                is_first, self._left = self._left is None, left
                removed = await self._sweep_spaces(references, due, is_first=is_first)
                swept = due
            except OSError as error:
                raise unavailable(error) from error
            finally:
                await asyncio.shield(self._worker.run(partial(self._slots.unlock_left, swept)))
            return removed

    async def _sweep_spaces(self, references: References, due: Collection[int], *, is_first: bool) -> int:
        removed = 0
        for space, path in await self._worker.run(self._found):
            if space is None:
                self._worker.begin(partial(shutil.rmtree, path, ignore_errors=True))
                continue
            for number, generation in await self._files(space).left_open():
                slot = generations.slot_of(number)
                # A restored backup has no slots: the first sweep asks for each.
                if slot in due or (is_first and await self._worker.run(partial(self._slots.lock_left, slot))):
                    removed += await self._sweep(space, generation, references)
        return removed

    async def create(self, owner: Owner, number: int | None = None) -> FileWriter:
        """See `ContentStore`."""
        files = self._files(owner.space)
        try:
            if number is None:
                number, path = await files.allot()
            else:
                path = await files.take(number)
        except OSError as error:
            raise unavailable(error) from error
        return FileWriter(files, owner, number, UnsealedFile(path), self._worker)

    async def length(self, content: ContentId, claim: Claim | None = None) -> int:
        """See `ContentStore`."""
        file = await self._open(content, claim)
        file.close()
        return file.length

    async def copy(self, content: ContentId, owner: Owner, claim: Claim | None = None) -> ContentId:
        """See `ContentStore`. Both contents share their bytes on the disk."""
        source, files = self._files(content.space), self._files(owner.space)
        try:
            number, path = await files.allot()
            try:
                await self._worker.run(partial(source.copy_file, content.number, path, owner.partition, claim))
                await files.sync_name(number)
            except (EngineError, OSError):
                await self._worker.run(partial(remove_file, path))
                files.decide([number])
                raise
        except OSError as error:
            raise files.failure(error) from error
        return ContentId(owner.space, number)

    async def read(
        self, content: ContentId, start: int, stop: int, claim: Claim | None = None
    ) -> AsyncGenerator[bytes | bytearray, None]:
        """See `ContentStore`. A thread reads what would block; no window is read before the caller asks for it."""
        if start >= stop:
            return
        file = await self._open(content, claim)
        reading: asyncio.Future[bytes] | None = None
        try:
            if stop > file.length:
                raise ContentDamagedError("a content is shorter than its row says")
            for number in range(start // WINDOW_BYTES, windows(stop)):
                window: bytes | bytearray | None = file.read_cached(number)
                if window is None:
                    reading = self._worker.submit(partial(file.read, number))
                    window = await asyncio.shield(reading)
                base = number * WINDOW_BYTES
                # A slice of a whole bytearray would be a copy.
                is_whole = start <= base and base + len(window) <= stop
                yield window if is_whole else window[max(0, start - base) : stop - base]
        except OSError as error:
            raise unavailable(error) from error
        finally:
            _close_after(file, reading)

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
                await self._remover.run(partial(files.remove, numbers))
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
                self._remover.begin(partial(generations.settle, path))
        for worker in (self._remover, self._worker):
            await asyncio.to_thread(worker.close)
        self._slots.release()

    async def _open(self, content: ContentId, claim: Claim | None) -> SealedFile:
        opening = self._worker.submit(partial(self._files(content.space).open_file, content.number, claim))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)
            raise
        except OSError as error:
            raise unavailable(error) from error

    def _files(self, space: int) -> SpaceFiles:
        files = self._spaces.get(space)
        if files is None:
            files = self._spaces[space] = SpaceFiles(
                self._directory / str(space), self._slots, self._worker, self._remover
            )
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
        """Delete the files of a generation to which no row refers, and settle it. Return how many were deleted.

        Where files lie under each other's names, their owners do not tell which rows refer to them: all are kept, and
        `lazulite check` names them.
        """
        owners: defaultdict[str, list[int]] = defaultdict(list)
        unwanted: list[int] = []
        for number, owner in await self._worker.run(partial(_owners, generation)):
            if owner is None:
                unwanted.append(number)
            else:
                owners[owner].append(number)
        for owner, numbers in owners.items():
            used = await references(Owner(space, owner))
            unwanted += [number for number in numbers if ContentId(space, number) not in used]
            others = (number for name, each in owners.items() if name != owner for number in each)
            if used and any(ContentId(space, number) in used for number in others):
                return 0
        await self.delete([ContentId(space, number) for number in unwanted])
        await self._remover.run(partial(generations.settle, generation))
        return len(unwanted)


def _owners(generation: Path) -> list[tuple[int, str | None]]:
    """Return the contents of a generation with their owners; None for a file that was never sealed."""
    found: list[tuple[int, str | None]] = []
    for number in generations.numbers_in(generation):
        try:
            found.append((number, read_owner(generation / generations.file_name(number))))
        except ContentUnsealedError:
            found.append((number, None))
        except (FileNotFoundError, ContentDamagedError):
            continue  # A damaged one may have a row. `lazulite check` finds it.
    return found


def _close_after(file: SealedFile, reading: "asyncio.Future[bytes] | None") -> None:
    """Close a file, once a thread has ended its reading."""
    if reading is None or reading.done():
        file.close()
    else:
        reading.add_done_callback(partial(_close, file))


def _close_unused(opening: "asyncio.Future[SealedFile]") -> None:
    """Close a file whose reader left while a thread opened it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _close(file: SealedFile, reading: "asyncio.Future[bytes]") -> None:
    if not reading.cancelled():
        reading.exception()  # So that it counts as seen: its reader has left.
    file.close()
