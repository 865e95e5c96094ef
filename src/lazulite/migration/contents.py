"""The contents to which rows refer, copied to another store under the same names, and read for a comparison.

Invariant: a part's contents are durable in the target before its rows are. A copy that is repeated passes over those
that are there. Memory holds a few windows of some of them.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from lazulite.engine.content.contract import (
    WINDOW_BYTES,
    Claim,
    ContentDamagedError,
    ContentId,
    ContentMissingError,
    ContentStore,
    Owner,
)
from lazulite.engine.content.inspection import ContentSet
from lazulite.engine.contract import Engine, EngineError, Key
from lazulite.migration.endpoint import MigrationError
from lazulite.migration.in_flight import CommitWindow
from lazulite.migration.parts import StoredRow, StorePart, rows_of

_MEMORY_BYTES = 8 * WINDOW_BYTES
"""The memory of one content on its way: windows that were read ahead, and windows that wait to be written."""


async def references_of(engine: Engine, part: StorePart) -> AsyncGenerator[tuple[ContentId, Claim], None]:
    """Yield the contents to which the rows of a part refer, with what the rows say of them, each once.

    A table, whose rows refer to none, is not read for it.
    """
    if part.catalog is None or part.catalog.contents is None:
        return
    seen = ContentSet()
    async with aclosing(rows_of(engine, part)) as runs:
        async for run in runs:
            for row in run:
                for content, length in _contents(part, part.catalog.contents, row).items():
                    if seen.add(content):
                        yield content, Claim(row.partition, length)


def _contents(
    part: StorePart, of_row: Callable[[int, Key, bytes], Mapping[ContentId, int | None]], row: StoredRow
) -> Mapping[ContentId, int | None]:
    try:
        return of_row(part.space, (row.partition, row.row), row.value)
    except (ValueError, LookupError, TypeError):
        raise MigrationError(f"{part.name} is damaged at {(row.partition, row.row)!r}") from None


async def copy_contents(engine: Engine, part: StorePart, source: ContentStore, target: ContentStore) -> None:
    """Copy the contents to which the rows of a part refer.

    Raises:
        MigrationError: a row is malformed, or its content is missing or damaged.
        EngineError: a store failed.
    """
    async with CommitWindow[None](lambda _: None) as window, aclosing(references_of(engine, part)) as references:
        async for content, claim in references:
            await window.add(_copy(part, content, claim, source, target), _MEMORY_BYTES, None)


async def _copy(part: StorePart, content: ContentId, claim: Claim, source: ContentStore, target: ContentStore) -> None:
    try:
        length = await source.length(content, claim)
        if await _is_there(target, content, claim._replace(length=length)):
            return
        writer = await target.create(Owner(part.space, claim.partition), content.number)
        try:
            async with aclosing(source.read(content, 0, length, claim)) as pieces:
                async for piece in pieces:
                    await writer.write(bytes(piece))
            target.keep(await writer.seal())
        except EngineError:
            await writer.discard()
            raise
    except (ContentMissingError, ContentDamagedError) as error:
        raise MigrationError(f"{part.name}, {claim.partition!r}: {error}") from error


async def _is_there(store: ContentStore, content: ContentId, claim: Claim) -> bool:
    try:
        await store.length(content, claim)
    except (ContentMissingError, ContentDamagedError):
        return False
    return True


async def summary_of(engine: Engine, part: StorePart, store: ContentStore) -> tuple[int, str]:
    """Return the bytes of the contents to which the rows of a part refer, and their SHA-256 in the order of the rows.

    The SHA-256 is "" if there are none.

    What is missing counts as such, so that it differs from what is there.

    Raises:
        MigrationError: a row is malformed.
        EngineError: a store failed, or a content is damaged.
    """
    digest, is_any, size_bytes = hashlib.sha256(), False, 0
    async with aclosing(references_of(engine, part)) as references:
        async for content, claim in references:
            is_any = True
            try:
                length = await store.length(content, claim)
            except ContentMissingError:
                digest.update(b"missing")
                continue
            size_bytes += length
            digest.update(length.to_bytes(8, "big"))
            async with aclosing(store.read(content, 0, length, claim)) as pieces:
                async for piece in pieces:
                    digest.update(piece)
    return size_bytes, digest.hexdigest() if is_any else ""
