"""The past of blobs that an account keeps: versions, and deleted blobs for some days.

Each state that is kept refers to its bytes as before. The bytes of a state that goes are released.
"""

from typing import NamedTuple

from lazulite.blob.model.blob import Blob
from lazulite.blob.model.rows import snapshot_row, version_row
from lazulite.blob.model.transaction import Transaction
from lazulite.protocol.clock import TICKS_PER_DAY


class Retention(NamedTuple):
    """What is kept."""

    versioning: bool = False
    """Whether each state of a blob becomes a version."""
    days: int = 0
    """How long deleted blobs are kept; 0: not at all."""
    allows_permanent_delete: bool = False
    """Whether a deleted snapshot or version may be deleted forever before its days are over."""

    def expiry(self, now: int) -> int:
        """Return when what is deleted now goes forever, in ticks."""
        return now + self.days * TICKS_PER_DAY


def replace_blob(transaction: Transaction, successor: Blob, retention: Retention) -> Blob:
    """Write the successor of the current blob. Uncommitted blocks become invalid.

    The successor must not use bytes of its predecessor, unless the caller has counted them (`Ledger.share`).

    Returns:
        The successor as it is written: with the id of its version, if versions are kept.
    """
    if retention.versioning:
        successor = successor._replace(version=successor.modified)
    deleted = _retire(transaction, retention)
    if deleted is not None:
        time = deleted.modified
        while transaction.value(snapshot_row(time)) is not None:
            time += 1
        transaction.put(snapshot_row(time), deleted.to_bytes())
    transaction.put_blob(successor)
    return successor


def delete_current(transaction: Transaction, retention: Retention) -> None:
    """Delete the current blob. Uncommitted blocks become invalid."""
    transaction.put_blob(_retire(transaction, retention))


def keep_version(transaction: Transaction, blob: Blob) -> None:
    """Keep a state of the current blob as a past version. One that has no id yet gets that of its last change."""
    time = blob.version or blob.modified
    transaction.put(version_row(time), blob._replace(lease=None, version=time).to_bytes())


def remove_row(transaction: Transaction, row: str, blob: Blob) -> None:
    """Remove a snapshot or version forever."""
    transaction.put(row, None)
    transaction.ledger = transaction.ledger.release(blob.reference)


def _retire(transaction: Transaction, retention: Retention) -> Blob | None:
    """Keep the current blob as a version, or return it if it is kept as a deleted one; else release its bytes."""
    transaction.ledger = transaction.ledger.end_upload()
    found = transaction.found
    if found is None or found.deleted:
        return found
    if retention.versioning:
        keep_version(transaction, found)
    elif retention.days:
        return found._replace(lease=None, deleted=transaction.now, expires=retention.expiry(transaction.now))
    else:
        transaction.ledger = transaction.ledger.release(found.reference)
    return None
