"""The states of a blob that operations require: it is there, and its bytes can be read."""

from lazulite.blob.model.blob import Blob
from lazulite.blob.model.draft import Draft
from lazulite.protocol.errors import ServiceError


def present(draft: Draft) -> Blob:
    """Return the current blob. Raises `BlobNotFound`."""
    if draft.found is None or draft.found.deleted:
        raise ServiceError("BlobNotFound")
    return draft.found


def online(blob: Blob) -> None:
    """Reject what an archived blob does not permit. Raises `BlobArchived`."""
    if blob.tier == "Archive":
        raise ServiceError("BlobArchived")
