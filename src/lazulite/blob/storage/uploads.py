"""The days on which partitions are looked at for uploads that were given up, and for lists that were never finished.

The space `UPLOADS` has a row for each partition and day: partition = day and shard, row = space and name. A request
writes the row before it writes what may be given up. So nothing is forgotten, but a row may be there for nothing.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple
from zlib import crc32

from lazulite.blob.storage.readers import Partition
from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.protocol.clock import TICKS_PER_DAY
from lazulite.records.spaces import UPLOADS, Space

_SHARDS = 16
"""So many partitions has a day: a database writes to them side by side."""


class ScheduledCheck(NamedTuple):
    """A row of the space."""

    key: Key
    partition: Partition
    """To be looked at."""


class Uploads:
    """The scheduled checks of all partitions.

    Args:
        engine: holds the rows.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def schedule(self, day: int, partition: Partition) -> None:
        """Note durably that a partition is to be looked at on a day. Raises `EngineError`."""
        space, name = partition
        row = f"{space}/{name}"
        await self._engine.commit(UPLOADS, f"{_beginning(day)}{_shard(row)}", put_rows({row: b""}))

    async def due(self, day: int) -> AsyncGenerator[ScheduledCheck, None]:
        """Yield the scheduled checks up to a day. Raises `EngineError`."""
        ranges = [KeyRange(("", ""), (_beginning(day + 1), ""))]
        async with aclosing(self._engine.scan(UPLOADS, ranges)) as parts:
            async for part in parts:
                for index in range(len(part.values)):
                    key = part.key(index)
                    yield ScheduledCheck(key, _partition_of(key[1]))

    async def delete(self, check: ScheduledCheck) -> None:
        """Delete a scheduled check. Raises `EngineError`."""
        partition, row = check.key
        await self._engine.commit(UPLOADS, partition, put_rows({row: None}))


def day_of(ticks: int) -> int:
    """Return a time in days since 1601."""
    return ticks // TICKS_PER_DAY


def _beginning(day: int) -> str:
    """Return what the partitions of a day begin with."""
    return f"{day:07}/"


def _shard(row: str) -> str:
    return f"{crc32(row.encode(errors='surrogatepass')) % _SHARDS:x}"


def _partition_of(row: str) -> Partition:
    space, _, name = row.partition("/")
    return int(space), name


def _verify(key: Key, value: bytes) -> None:
    partition, row = key
    _partition_of(row)
    if not partition[:7].isdecimal() or partition[7:] != f"/{_shard(row)}" or value:
        raise ValueError("no scheduled check")


UPLOADS_SPACE = Space(number=UPLOADS, owner="blob", title="the days to look at uploads", verify=_verify)
