"""Delete Blob and Undelete Blob: the current blob, a snapshot, a version. Source: reference §42."""

from collections.abc import Sequence

from lazulite.blob.auth.requirements import is_permanent
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.retention import Retention, delete_current, remove_row
from lazulite.blob.model.rows import CURRENT, SNAPSHOT, VERSION
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Response

_SNAPSHOTS = "x-ms-delete-snapshots"
_INCLUDE, _ONLY = "include", "only"
_PERMANENT = "x-ms-delete-type-permanent"


async def delete_blob(call: Call) -> Response:
    """Delete the current blob, perhaps with its snapshots, or one snapshot or version."""
    headers, row = call.request.headers, call.row
    if row == CURRENT and is_permanent(call.parameters):
        raise ServiceError("InvalidOperation", status=409)  # *Unverified*: the code; documented is 409.
    mode = headers.get(_SNAPSHOTS, "").lower()
    if mode not in ("", _INCLUDE, _ONLY):
        raise invalid_header(_SNAPSHOTS, mode)
    if row != CURRENT:
        return await _delete_row(call, row, mode)
    return await _delete_current(call, mode)


async def _delete_current(call: Call, mode: str) -> Response:
    retention, container = await call.retention(), await call.container()

    async def attempt(rows: Sequence[str]) -> None:
        def decide(transaction: Transaction) -> None:
            found = transaction.require_blob()
            call.preconditions.allow_write(found, transaction.present)
            if transaction.ledger.snapshots and not mode:
                raise ServiceError("SnapshotsPresent")
            if mode:
                _delete_snapshots(transaction, rows, retention)
            if mode != _ONLY:
                delete_current(transaction, retention)

        await call.commit(container, decide, *rows)

    partitions = call.context.partitions
    while True:
        rows = await partitions.kept_rows(container.space, call.resource.blob, SNAPSHOT) if mode else []
        try:
            await attempt(rows)
        except _SnapshotsChangedError:
            continue
        kept = retention.days or retention.versioning
        return Response(202, [(_PERMANENT, "false" if kept else "true")])


async def undelete_blob(call: Call) -> Response:
    """Restore the current blob and its snapshots and versions, as far as they were deleted and kept."""
    container = await call.container()
    rows = await call.context.partitions.kept_rows(container.space, call.resource.blob, SNAPSHOT, VERSION)

    def decide(transaction: Transaction) -> None:
        deleted = [(row, blob) for row in rows if (blob := transaction.blob(row)) is not None and blob.deleted]
        found = transaction.found
        if found is None and not deleted:
            raise ServiceError("BlobNotFound")
        restored = sum(row.startswith(SNAPSHOT) for row, _ in deleted)
        for row, blob in deleted:
            transaction.put(row, blob._replace(deleted=0, expires=0).to_bytes())
        transaction.ledger = transaction.ledger._replace(snapshots=transaction.ledger.snapshots + restored)
        if found is not None and found.deleted:
            transaction.put_blob(found._replace(deleted=0, expires=0))

    await call.commit(container, decide, *rows)
    return Response(200)


async def _delete_row(call: Call, row: str, mode: str) -> Response:
    """Delete a snapshot or version; one that was deleted and kept goes forever if the request says so."""
    if mode:
        name = "snapshot" if row.startswith(SNAPSHOT) else "versionid"
        reason = "This operation is only allowed on the root blob. Version id should not be provided."
        details = [("QueryParameterName", name), ("QueryParameterValue", call.parameters[name]), ("Reason", reason)]
        raise ServiceError("InvalidQueryParameterValue", details=details)
    retention = await call.retention()
    permanently = is_permanent(call.parameters)

    def decide(transaction: Transaction) -> bool:
        blob, found = transaction.blob(row), transaction.found
        if found is not None and found.is_version(row):
            raise ServiceError("OperationNotAllowedOnRootBlob")
        if blob is None or (blob.deleted and not permanently):
            raise ServiceError("BlobNotFound")
        call.preconditions.check_conditions(blob)
        if permanently and not (blob.deleted and retention.allows_permanent_delete):
            raise ServiceError("InvalidOperation", status=409)  # *Unverified*: the code; documented is 409.
        kept = bool(retention.days) and not permanently
        _delete_one(transaction, row, blob, retention if kept else Retention())
        return kept

    kept = await call.commit(await call.container(), decide, row)
    return Response(202, [(_PERMANENT, "false" if kept else "true")])


def _delete_snapshots(transaction: Transaction, rows: Sequence[str], retention: Retention) -> None:
    for row in rows:
        blob = transaction.blob(row)
        if blob is not None and not blob.deleted:
            _delete_one(transaction, row, blob, retention)
    if transaction.ledger.snapshots:
        raise _SnapshotsChangedError


def _delete_one(transaction: Transaction, row: str, blob: Blob, retention: Retention) -> None:
    if row.startswith(SNAPSHOT) and not blob.deleted:
        transaction.ledger = transaction.ledger._replace(snapshots=transaction.ledger.snapshots - 1)
    if retention.days:
        transaction.put(
            row, blob._replace(deleted=transaction.now, expires=retention.expiry(transaction.now)).to_bytes()
        )
    else:
        remove_row(transaction, row, blob)


class _SnapshotsChangedError(Exception):
    """A snapshot was taken after they were looked up."""
