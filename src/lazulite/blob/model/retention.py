"""The past of blobs that an account keeps: versions, and deleted blobs for some days.

Each state that is kept refers to its bytes as before. The bytes of a state that goes are released.
"""

from dataclasses import replace
from typing import NamedTuple

from lazulite.blob.model.blob import Blob
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.rows import snapshot_row, version_row
from lazulite.protocol.clock import TICKS_PER_DAY


class Retention(NamedTuple):
    """What is kept."""

    versioning: bool = False
    """Whether each state of a blob becomes a version."""
    days: int = 0
    """How long deleted blobs are kept; 0: not at all."""
    allows_permanent_delete: bool = False
    """Whether a deleted snapshot or version may be deleted for ever before its days are over."""

    def expiry(self, now: int) -> int:
        """Return when what is deleted now goes for ever, in ticks."""
        return now + self.days * TICKS_PER_DAY


def replace_blob(draft: Draft, successor: Blob, retention: Retention) -> Blob:
    """Write the successor of the current blob. Uncommitted blocks become invalid.

    The successor must not use bytes of its predecessor, unless the caller has counted them (`Ledger.share`).

    Returns:
        The successor as it is written: with the id of its version, if versions are kept.
    """
    if retention.versioning:
        successor = replace(successor, version=successor.modified)
    deleted = _retire(draft, retention)
    if deleted is not None:
        time = deleted.modified
        while draft.value(snapshot_row(time)) is not None:
            time += 1
        draft.put(snapshot_row(time), deleted.to_bytes())
    draft.put_blob(successor)
    return successor


def delete_current(draft: Draft, retention: Retention) -> None:
    """Delete the current blob. Uncommitted blocks become invalid."""
    draft.put_blob(_retire(draft, retention))


def keep_version(draft: Draft, blob: Blob) -> None:
    """Keep a state of the current blob as a past version. One that has no id yet gets that of its last change."""
    time = blob.version or blob.modified
    draft.put(version_row(time), replace(blob, lease=None, version=time).to_bytes())


def remove_row(draft: Draft, row: str, blob: Blob) -> None:
    """Remove a snapshot or version for ever."""
    draft.put(row, None)
    draft.ledger = draft.ledger.release(blob.holding)


def _retire(draft: Draft, retention: Retention) -> Blob | None:
    """Keep the current blob as a version, or return it if it is kept as a deleted one; else release its bytes."""
    draft.ledger = draft.ledger.end_upload()
    found = draft.found
    if found is None or found.deleted:
        return found
    if retention.versioning:
        keep_version(draft, found)
    elif retention.days:
        return replace(found, lease=None, deleted=draft.now, expires=retention.expiry(draft.now))
    else:
        draft.ledger = draft.ledger.release(found.holding)
    return None
