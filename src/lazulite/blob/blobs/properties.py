"""Set Blob Properties, Set Blob Metadata. Source: reference §36.4."""

from collections.abc import Callable

from lazulite.blob.model.blob import Blob, require_not_archived
from lazulite.blob.model.retention import keep_version
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import read_content_headers, version_of, written
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import read_metadata

Changed = Callable[[Blob, Transaction], Blob]
"""Takes a blob, whose lease and Last-Modified are up to date, to what it becomes."""


async def change_blob(call: Call, changed: Changed, *rows: str) -> Blob:
    """Change the current blob, if its lease and the conditional headers allow it; return it as it is then.

    Args:
        call: the request.
        changed: may change other rows, too.
        rows: that `changed` is known to need.

    Raises:
        ServiceError: `BlobNotFound`, or 412.
    """

    def decide(transaction: Transaction) -> Blob:
        found = transaction.require_blob()
        lease = call.preconditions.allow_write(found, transaction.present)
        blob = changed(found._replace(lease=lease, modified=transaction.modified), transaction)
        transaction.put_blob(blob)
        return blob

    return await call.commit(await call.container(), decide, *rows)


async def set_properties(call: Call) -> Response:
    """Replace the stored headers of the content, and clear each one that the request lacks."""
    headers = read_content_headers(call.request.headers, stored_only=True)

    def change(blob: Blob, _: Transaction) -> Blob:
        require_not_archived(blob)
        return blob._replace(headers=headers, copy=None)

    return Response(200, version_of(await change_blob(call, change)))


async def set_metadata(call: Call) -> Response:
    """Replace the metadata."""
    metadata, retention = read_metadata(call.request.headers), await call.retention()

    def change(blob: Blob, transaction: Transaction) -> Blob:
        require_not_archived(blob)
        if retention.versioning:
            found = transaction.require_blob()
            keep_version(transaction, found)
            transaction.ledger = transaction.ledger.share(found.reference)
            blob = blob._replace(version=blob.modified)
        return blob._replace(metadata=metadata, copy=None)

    return Response(200, written(await change_blob(call, change)))
