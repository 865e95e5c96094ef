"""The contents of one space, as files in generations, with one sync for all that wait for it.

Invariant: the files of a dropped space are not reachable, and nothing is created there.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.content_file import SealedFile
from lazulite.engine.content.contract import Claim, ContentMissingError
from lazulite.engine.content.generations import FILES_MAX, Generation
from lazulite.engine.content.linked_file import copy_file, open_claimed, remove_file
from lazulite.engine.content.process_slots import ProcessSlots
from lazulite.engine.content.worker import Remover, Worker, unavailable
from lazulite.engine.contract import EngineError, SpaceDroppedError
from lazulite.engine.durable_files import make_private, sync_directory

_DROPPED = "the space of the content was dropped"


class GroupedSync:
    """Runs a sync in a thread. Calls that come while it runs share the next one.

    Args:
        sync: makes all that was done before it began durable; may raise `OSError`.
        worker: runs it.
    """

    def __init__(self, sync: Callable[[], None], worker: Executor) -> None:
        self._sync = sync
        self._worker = worker
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Return when a sync that began after this call has ended. Raises as the sync does."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            # Its waiters may all have been cancelled: then there is no caller for its exception.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._next)

    async def _run(self) -> None:
        async with self._turn:
            # A call from here on comes too late for this sync.
            self._next = None
            await asyncio.get_running_loop().run_in_executor(self._worker, self._sync)


class SpaceFiles:
    """The directory of one space.

    Args:
        path: of the directory; it is made when it is needed.
        slots: of the processes that write there.
        worker: runs what blocks.
        remover: runs what deletes and renames.
    """

    def __init__(self, path: Path, slots: ProcessSlots, worker: Worker, remover: Remover) -> None:
        self.path = path
        self.is_dropped = False
        """Whether nothing may be created any more."""
        self._slots = slots
        self._worker = worker
        self._remover = remover
        self._turn = asyncio.Lock()
        self._current: Generation | None = None
        self._open: dict[int, Generation] = {}
        self._syncs: dict[int, GroupedSync] = {}

    async def left_open(self) -> list[tuple[int, Path]]:
        """Return the open generations of other processes, dead or alive: their numbers and their directories."""
        async with self._turn:
            found = await self._worker.run(partial(generations.open_generations, self.path))
            filled = {generation.path for generation in self._open.values()}
        return [(number, path) for number, path in found if path not in filled]

    async def allot(self) -> tuple[int, Path]:
        """Return the number of a new content, and the path of its file.

        Raises:
            OSError: no directory can be made for it.
            SpaceDroppedError: the space was dropped.
        """
        async with self._turn:
            if self._current is None or self._current.is_full:
                self.check_not_dropped()
                self._current = current = await self._worker.run(self._begin)
                self._open[current.number] = current
                sync = partial(sync_directory, current.path)
                self._syncs[current.number] = GroupedSync(sync, self._worker.executor)
            self.check_not_dropped()
            number = self._current.allot()
            return number, self._current.path / generations.file_name(number)

    async def take(self, number: int) -> Path:
        """Return the path of the file of a content that has a number already; what is there is deleted.

        Its generation counts as settled, as it is another store's.

        Raises:
            OSError: no directory can be made for it, or what is there cannot be deleted.
            SpaceDroppedError: the space was dropped.
        """
        self.check_not_dropped()
        generation = number // FILES_MAX
        directory = self.path / str(generation)
        await self._worker.run(partial(make_private, directory))
        await self._remover.run(partial(self.remove, [number]))
        sync = partial(sync_directory, directory)
        self._syncs.setdefault(generation, GroupedSync(sync, self._worker.executor))
        return directory / generations.file_name(number)

    async def sync_name(self, number: int) -> None:
        """Make the name of a new content's file durable.

        Raises:
            OSError: it cannot be.
            SpaceDroppedError: the space was dropped.
        """
        self.check_not_dropped()
        await self._syncs[number // FILES_MAX]()
        self.check_not_dropped()

    def decide(self, numbers: Iterable[int]) -> None:
        """Note that the fate of contents is known: they were kept, or their files are gone."""
        for number in numbers:
            generation = self._open.get(number // FILES_MAX)
            if generation is not None:
                generation.undecided.discard(number)
                if generation.is_full and not generation.undecided:
                    self._settle(generation)

    async def drop(self, target: Path) -> None:
        """Give the directory another name, durably; from now on nothing is created.

        Raises:
            OSError: it still has its name, or a power cut may give it back.
        """
        self.is_dropped = True
        async with self._turn:
            await self._remover.run(partial(_rename, self.path, target))
            self.settle_all()

    def check_not_dropped(self) -> None:
        """Raise `SpaceDroppedError` if the space was dropped."""
        if self.is_dropped:
            raise SpaceDroppedError(_DROPPED)

    def failure(self, error: OSError) -> EngineError:
        """Return what it means that a file cannot be written."""
        if isinstance(error, FileNotFoundError):
            self.is_dropped = True  # Another process gave the directory another name.
        return SpaceDroppedError(_DROPPED) if self.is_dropped else unavailable(error)

    def settle_all(self) -> list[Path]:
        """Forget the open generations; return the directories of those whose contents are all decided."""
        decided = [generation.path for generation in self._open.values() if not generation.undecided]
        self._open.clear()
        self._syncs.clear()
        self._current = None
        return decided

    def copy_file(self, number: int, target: Path, owner: str, claim: Claim | None = None) -> None:
        """Copy a content to a new file, whose name is not durable yet. It blocks.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: as `open_file`; or its bytes had to be copied, and are damaged.
            OSError: it cannot be copied.
        """
        copy_file(generations.candidates(self.path, number), target, owner, partial(self.open_file, number, claim))

    def open_file(self, number: int, claim: Claim | None = None) -> SealedFile:
        """Open a content. It blocks.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: its end is damaged, or it is not the one of the claim.
            OSError: it cannot be read.
        """
        for path in generations.candidates(self.path, number):
            try:
                return open_claimed(path, claim)
            except FileNotFoundError:
                continue
        raise ContentMissingError("there is no such content")

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete files, durably; it blocks.

        Raises:
            OSError: some are left, or a power cut may bring some back.
        """
        touched = set()
        for number in numbers:
            for path in generations.candidates(self.path, number):
                remove_file(path)
            touched.add(number // FILES_MAX)
        for generation in touched:
            generations.sync(self.path, generation)
            generations.remove_if_empty(self.path, generation)

    def _begin(self) -> Generation:
        return generations.begin(self.path, self._slots.own())

    def _settle(self, generation: Generation) -> None:
        del self._open[generation.number], self._syncs[generation.number]
        if self._current is generation:
            self._current = None
        self._remover.begin(partial(generations.settle, generation.path))


def _rename(path: Path, target: Path) -> None:
    if path.is_dir():
        path.rename(target)
        sync_directory(path.parent)
