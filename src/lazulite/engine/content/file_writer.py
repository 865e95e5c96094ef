"""One content of a file store while it is written."""

import contextlib
from asyncio import Future, shield, wait
from functools import partial

from lazulite.engine.content.content_file import DraftFile
from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, Owner
from lazulite.engine.content.space_files import SpaceFiles
from lazulite.engine.content.worker import Worker


class FileWriter:
    """Implements `ContentWriter`. While one window is written, another one is collected.

    Args:
        files: of the space.
        owner: of the content.
        number: of the content.
        draft: its file.
        worker: runs what blocks.
    """

    def __init__(self, files: SpaceFiles, owner: Owner, number: int, draft: DraftFile, worker: Worker) -> None:
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


def _finish(draft: DraftFile, chunks: list[bytes], owner: str) -> None:
    draft.append(chunks)
    draft.finish(owner)
