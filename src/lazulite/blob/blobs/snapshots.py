"""Snapshot Blob. Source: reference §42.1."""

from lazulite.blob.model.blob import Blob, BlobType, require_not_archived
from lazulite.blob.model.retention import keep_version
from lazulite.blob.model.rows import snapshot_row
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import version_of
from lazulite.blob.times import write_time
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import read_metadata


async def snapshot_blob(call: Call) -> Response:
    """Keep the current blob as a snapshot. Metadata of the request are those of the snapshot alone.

    A lease does not stop it. Where versions are kept, the current blob gets a new one.
    """
    metadata, retention = read_metadata(call.request.headers), await call.retention()
    first = call.context.clock()

    def decide(transaction: Transaction) -> tuple[Blob, Blob, int]:
        found = transaction.require_blob()
        call.preconditions.allow_write(found, transaction.present)
        require_not_archived(found)
        time = first
        while transaction.value(snapshot_row(time)) is not None:
            time += 1
        snapshot = found._replace(lease=None, version=0)
        if metadata:
            snapshot = snapshot._replace(metadata=metadata, modified=transaction.modified)
        transaction.put(snapshot_row(time), snapshot.to_bytes())
        transaction.ledger = transaction.ledger.share(found.reference)._replace(
            snapshots=transaction.ledger.snapshots + 1
        )
        current = found._replace(epoch=found.epoch + 1) if found.type is BlobType.PAGE else found
        if retention.versioning:
            keep_version(transaction, found)
            transaction.ledger = transaction.ledger.share(found.reference)
            current = current._replace(version=max(transaction.now, found.version + 1))
        if current is not found:
            transaction.put_blob(current)
        return snapshot, current, time

    snapshot, current, time = await call.commit(await call.container(), decide)
    pairs = [*version_of(snapshot), ("x-ms-snapshot", write_time(time)), ("x-ms-request-server-encrypted", "false")]
    if current.version:
        pairs.append(("x-ms-version-id", write_time(current.version)))
    return Response(201, pairs)
