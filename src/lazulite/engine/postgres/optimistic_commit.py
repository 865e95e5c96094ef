"""Commits of one row whose decision can be told in advance: without reading it, or once it has been read.

Invariants: what is written is what the decision makes of the row as it is, since it is written on condition that the
row is what was foreseen, or seen. Of several that must see one row, one at a time goes this way, as the others would
meet a row that it has changed. Nothing goes this way to a partition that is being settled: its writes would wait until
somebody else's are done, and perhaps nobody comes.

Where writes go by scripts, each by itself, those that must see their row are settled with their partition: together.
"""

import asyncio

from lazulite.engine.postgres.keys import encode_text, form, whole_if_long
from lazulite.engine.postgres.partition_commit import Partitions
from lazulite.engine.postgres.point_reads import Reads
from lazulite.engine.postgres.single_writes import SingleWrite, SingleWrites
from lazulite.engine.postgres.sql_scripts import Place
from lazulite.engine.precondition import Expect, Foreseeing, Foreseen


class OneRow:
    """See above.

    Args:
        reads: how rows are read.
        writes: how they are written.
        partitions: where everything else is settled.
        scripts: whether writes go by scripts.
    """

    def __init__(self, reads: Reads, writes: SingleWrites, partitions: Partitions, *, scripts: bool) -> None:
        self._reads = reads
        self._writes = writes
        self._partitions = partitions
        self._scripts = scripts
        self._seen: set[tuple[Place, bytes]] = set()
        """The rows that are written because of what was seen of them."""

    async def commit(self, place: Place, row: str, decision: Foreseeing) -> int | None:
        """Return the stamp of the commit; None if it was not done, and has to be settled with its partition."""
        row_key = encode_text(row)
        foreseen = decision.foresee()
        if foreseen is not None:
            return await self._write(place, row_key, decision, foreseen)
        key = place, form(row_key)
        if self._scripts or key in self._seen or self._partitions.has(place):
            return None
        self._seen.add(key)
        try:
            seen = decision.seen(await self._reads.get(place.space, place.partition_key, key[1]))
            return None if seen is None else await self._write(place, row_key, seen, seen.foresee())
        finally:
            self._seen.discard(key)

    async def _write(self, place: Place, row_key: bytes, decision: Foreseeing, foreseen: Foreseen | None) -> int | None:
        if foreseen is None or (foreseen.deletes and foreseen.expects is not Expect.PRESENT):
            return None
        if self._partitions.has(place):
            return None
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        write = SingleWrite(place, form(row_key), whole_if_long(row_key), decision, foreseen, answer)
        return await self._writes.write(write)
