"""Servers that return damaged bytes, or whose backups miss contents."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from lazulite.app import stores
from lazulite.engine.content import linked_file
from lazulite.engine.content.backup import link_files
from lazulite.engine.content.content_file import SealedFile
from lazulite.engine.content.contract import ContentId
from lazulite.engine.postgres.contents import statements
from lazulite.engine.postgres.contents.windows import ContentWindows


def unchecked_files() -> None:
    """Return what a file has, without a look at its checksums."""

    def check(self: SealedFile, number: int, data: bytes | bytearray) -> None:
        return

    SealedFile._check = check  # type: ignore[method-assign]


def unclaimed_files() -> None:
    """Take a file for the content of its name, without a look at its owner and length."""
    vars(linked_file)["_check"] = lambda *_: None


def unchecked_rows() -> None:
    """Return what the windows in a database have, likewise."""

    async def fetch(self: ContentWindows, content: ContentId, batch: tuple[int, int]) -> Sequence[bytes]:
        rows = await self._pool.fetch_bulk(statements.WINDOWS, *content, *batch, reads=True)
        return [window for _, window in rows]

    ContentWindows._fetch = fetch  # type: ignore[method-assign]


def unheld_deletions() -> None:
    """Let deletions go on between the checkpoint of a backup and the links to its files."""

    @asynccontextmanager
    async def held(_: Path) -> AsyncIterator[None]:
        yield

    def link_late(directory: Path, target: Path) -> None:
        time.sleep(1)
        link_files(directory, target)

    vars(stores).update(deletions_held=held, link_files=link_late)


MUTATIONS: dict[str, Callable[[], None]] = {
    f"blob-{each.__name__.replace('_', '-')}": each
    for each in (unchecked_files, unclaimed_files, unchecked_rows, unheld_deletions)
}
