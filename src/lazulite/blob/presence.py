"""The states of a blob that operations require: it is there, and its bytes can be read."""

from lazulite.blob.model.blob import ARCHIVE, Blob
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.rows import CURRENT
from lazulite.protocol.errors import ServiceError


def present(draft: Draft, row: str = CURRENT) -> Blob:
    """Return the current blob, or the snapshot or version of a row. Raises `BlobNotFound`."""
    found = draft.blob(row)
    if found is None or found.deleted:
        raise ServiceError("BlobNotFound")
    return found


def online(blob: Blob) -> None:
    """Reject what an archived blob does not permit. Raises `BlobArchived`, `BlobBeingRehydrated`."""
    if blob.tier == ARCHIVE:
        raise ServiceError("BlobArchived" if blob.archive is None else "BlobBeingRehydrated")
