"""The contents of one space, as files in generations.

Invariant: the files of a dropped space are not reachable, and nothing is created there.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from lazulite.engine.content import generations
from lazulite.engine.content.content_file import SealedFile
from lazulite.engine.content.contract import ContentMissingError
from lazulite.engine.content.generations import FILES_MAX, Generation
from lazulite.engine.content.grouped_sync import GroupedSync
from lazulite.engine.content.worker import Worker
from lazulite.engine.contract import SpaceDroppedError
from lazulite.engine.durable_files import sync_directory


class SpaceFiles:
    """The directory of one space.

    Args:
        path: of the directory; it is made when it is needed.
        worker: runs what blocks.
    """

    def __init__(self, path: Path, worker: Worker) -> None:
        self.path = path
        self.is_dropped = False
        """Whether nothing may be created any more."""
        self._worker = worker
        self._turn = asyncio.Lock()
        self._current: Generation | None = None
        self._open: dict[int, Generation] = {}
        self._syncs: dict[int, GroupedSync] = {}

    async def left_open(self) -> list[Path]:
        """Return the directories of the generations that earlier processes left open."""
        async with self._turn:
            found = await self._worker.run(partial(generations.open_generations, self.path))
            filled = {generation.path for generation in self._open.values()}
        return [path for path in found if path not in filled]

    async def allot(self) -> tuple[int, Path]:
        """Return the number of a new content, and the path of its file.

        Raises:
            OSError: no directory can be made for it.
            SpaceDroppedError: the space was dropped.
        """
        async with self._turn:
            if self._current is None or self._current.is_full:
                self.check_not_dropped()
                self._current = current = await self._worker.run(partial(generations.begin, self.path))
                self._open[current.number] = current
                sync = partial(sync_directory, current.path)
                self._syncs[current.number] = GroupedSync(sync, self._worker.executor)
            self.check_not_dropped()
            number = self._current.allot()
            return number, self._current.path / generations.file_name(number)

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
            await self._worker.run(partial(_rename, self.path, target))
            self.settle_all()

    def check_not_dropped(self) -> None:
        """Raise `SpaceDroppedError` if the space was dropped."""
        if self.is_dropped:
            raise SpaceDroppedError("the space of the content was dropped")

    def settle_all(self) -> list[Path]:
        """Forget the open generations; return the directories of those whose contents are all decided."""
        decided = [generation.path for generation in self._open.values() if not generation.undecided]
        self._open.clear()
        self._syncs.clear()
        self._current = None
        return decided

    def open_file(self, number: int) -> SealedFile:
        """Open a content. It blocks.

        Raises:
            ContentMissingError: there is no such content.
            ContentDamagedError: its end is damaged.
            OSError: it cannot be read.
        """
        settled, still_open = generations.candidates(self.path, number)
        # Its directory may be renamed between two attempts, in this direction only.
        for path in (settled, still_open, settled):
            try:
                return SealedFile(path)
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
            settled, still_open = generations.candidates(self.path, number)
            for path in (settled, still_open, settled):
                path.unlink(missing_ok=True)
            touched.add(number // FILES_MAX)
        for generation in touched:
            generations.sync(self.path, generation)
            generations.remove_if_empty(self.path, generation)

    def _settle(self, generation: Generation) -> None:
        del self._open[generation.number], self._syncs[generation.number]
        if self._current is generation:
            self._current = None
        self._worker.begin(partial(generations.settle, generation.path))


def _rename(path: Path, target: Path) -> None:
    if path.is_dir():
        path.rename(target)
        sync_directory(path.parent)
