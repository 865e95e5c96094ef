"""Removes deleted blobs for ever once their days are over; gives up uploads and lists that were not finished."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial

from lazulite.blob.model.draft import Draft
from lazulite.blob.model.retention import remove_row
from lazulite.blob.model.rows import SNAPSHOT, VERSION
from lazulite.blob.storage.changes import Changes
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.uploads import Uploads
from lazulite.engine.contract import SpaceDroppedError


async def remove_expired(partitions: Partitions, uploads: Uploads, changes: Changes, today: int) -> None:
    """Look at each partition for which it is time.

    Args:
        partitions: of the blobs.
        uploads: the appointments.
        changes: of the partitions.
        today: in days since 1601.

    Raises:
        EngineError: the rest remains for the next time.
    """
    async with aclosing(uploads.due(today)) as appointments:
        async for appointment in appointments:
            with suppress(SpaceDroppedError):
                rows = await partitions.kept_rows(*appointment.partition, SNAPSHOT, VERSION)
                await changes.commit(appointment.partition, partial(_expire, rows=rows, today=today), *rows)
            await uploads.strike_off(appointment)


def _expire(draft: Draft, rows: Sequence[str], today: int) -> None:
    draft.ledger = draft.ledger.expire(today)
    found = draft.found
    if found is not None and found.deleted and found.expires <= draft.now:
        draft.ledger = draft.ledger.release(found.holding)
        draft.put_blob(None)
    for row in rows:
        blob = draft.blob(row)
        if blob is not None and blob.deleted and blob.expires <= draft.now:
            remove_row(draft, row, blob)
