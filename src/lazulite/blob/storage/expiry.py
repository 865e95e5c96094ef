"""Removes deleted blobs forever once their days are over; gives up uploads and lists that were not finished."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial

from lazulite.blob.model.retention import remove_row
from lazulite.blob.model.rows import SNAPSHOT, VERSION
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.storage.garbage import Changes
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.uploads import Uploads
from lazulite.engine.contract import SpaceDroppedError


async def remove_expired(partitions: Partitions, uploads: Uploads, changes: Changes, today: int) -> None:
    """Look at each partition for which it is time.

    Args:
        partitions: of the blobs.
        uploads: the scheduled checks.
        changes: of the partitions.
        today: in days since 1601.

    Raises:
        EngineError: the rest remains for the next time.
    """
    async with aclosing(uploads.due(today)) as checks:
        async for check in checks:
            with suppress(SpaceDroppedError):
                rows = await partitions.kept_rows(*check.partition, SNAPSHOT, VERSION)
                await changes.commit(check.partition, partial(_expire, rows=rows, today=today), *rows)
            await uploads.delete(check)


def _expire(transaction: Transaction, rows: Sequence[str], today: int) -> None:
    transaction.ledger = transaction.ledger.expire(today)
    found = transaction.found
    if found is not None and found.deleted and found.expires <= transaction.now:
        transaction.ledger = transaction.ledger.release(found.reference)
        transaction.put_blob(None)
    for row in rows:
        blob = transaction.blob(row)
        if blob is not None and blob.deleted and blob.expires <= transaction.now:
            remove_row(transaction, row, blob)
