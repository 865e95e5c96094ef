"""Servers that lose blobs, or keep what has no blob, when they are killed or the disk is full."""

from collections.abc import Callable, Collection

from lazulite.blob.blobs import delete_blob
from lazulite.blob.content import sources
from lazulite.blob.model import retention
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.ledger import Ledger
from lazulite.blob.model.retention import Retention
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests import call
from lazulite.blob.storage.garbage import Garbage
from lazulite.blob.storage.readers import Partition
from lazulite.engine.content.contract import ContentId, References
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.content.process_slots import ProcessSlots
from lazulite.protocol.clock import TICKS_PER_DAY


def kept_garbage() -> None:
    """Delete no content that has lost its row."""

    async def delete(_: Garbage, partition: Partition) -> None:
        """Delete nothing."""

    Garbage.delete = delete  # type: ignore[method-assign, assignment]


def kept_orphans() -> None:
    """Keep what a kill left."""

    async def sweep(_: ContentFiles, references: References) -> int:
        return 0

    ContentFiles.sweep = sweep  # type: ignore[method-assign, assignment]


def swept_all() -> None:
    """Delete, after a kill, contents that have a row, too."""
    sweep = ContentFiles.sweep

    async def sweep_all(files: ContentFiles, _: References) -> int:
        async def nothing(_: object) -> Collection[ContentId]:
            return ()

        return await sweep(files, nothing)

    ContentFiles.sweep = sweep_all  # type: ignore[method-assign, assignment]


def shared_garbage() -> None:
    """Delete contents that a snapshot still has."""

    def release(ledger: Ledger, reference: str) -> Ledger:
        return ledger.discard(reference) if reference else ledger

    Ledger.release = release  # type: ignore[method-assign, assignment]


def unkept_copies() -> None:
    """Give a copy the content of its source."""

    async def copy(_: ContentFiles, content: ContentId, owner: object, claim: object = None) -> ContentId:
        return content

    ContentFiles.copy = copy  # type: ignore[method-assign, assignment]


def released_versions() -> None:
    """Delete contents that a past version still has."""
    keep = retention.keep_version

    def keep_and_release(transaction: Transaction, blob: Blob) -> None:
        keep(transaction, blob)
        transaction.ledger = transaction.ledger.release(blob.reference)

    vars(retention)["keep_version"] = keep_and_release


def released_deleted() -> None:
    """Delete contents of blobs that were deleted and are kept."""
    retire = retention._retire

    def retire_and_release(transaction: Transaction, retention: Retention) -> Blob | None:
        found = transaction.found
        kept = retire(transaction, retention)
        if kept is not None and kept is not found:
            transaction.ledger = transaction.ledger.release(kept.reference)
        return kept

    vars(retention)["_retire"] = retire_and_release


def kept_contents_of_versions() -> None:
    """Keep the contents of snapshots and versions that are deleted forever."""

    def remove(transaction: Transaction, row: str, _: Blob) -> None:
        transaction.put(row, None)

    vars(delete_blob)["remove_row"] = remove


def swept_living() -> None:
    """Delete what other processes are about to use, as if they were dead."""

    def left(self: ProcessSlots) -> set[int]:
        own = self.own()
        return {int(path.stem) for path in self._directory.glob("*.process") if path.stem.isdecimal()} - {own}

    ProcessSlots.left = left  # type: ignore[method-assign]


def purged_early() -> None:
    """Keep what is deleted for a day less."""
    expiry = Retention.expiry
    Retention.expiry = lambda self, now: expiry(self, now) - TICKS_PER_DAY  # type: ignore[method-assign]


def kept_for_ever() -> None:
    """Remove nothing whose days are over."""

    async def remove(*_: object) -> None:
        """Remove nothing."""

    vars(call)["remove_expired"] = remove


def copied_private() -> None:
    """Let Copy Blob open each blob, of any account."""
    vars(sources)["_is_opened"] = lambda call, _: call.grant.kind == "shared-key"


MUTATIONS: dict[str, Callable[[], None]] = {
    f"blob-{each.__name__.replace('_', '-')}": each
    for each in (
        *(kept_garbage, kept_orphans, swept_all, shared_garbage, unkept_copies),
        *(released_versions, released_deleted, kept_contents_of_versions),
        *(swept_living, purged_early, kept_for_ever, copied_private),
    )
}
