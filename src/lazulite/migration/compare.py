"""The second pass of a copy: both stores are read, and what they hold is compared part by part.

The *checksum* of a part is a SHA-256 over the keys and values of its rows in their order; that of a store, over its
service properties, its list of tables and its tables. Keys and framing are those of `lazulite check`, whose checksum of
the same contents is the same.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from lazulite.engine.contract import Engine
from lazulite.engine.key_encoding import encode_key
from lazulite.migration.parts import Part, Row, parts_of, rows_of
from lazulite.migration.progress import Tally
from lazulite.records.spaces import COUNTERS

EVERYTHING = Part(0, "everything", is_table=False)
_LENGTH_BYTES = 4

T = TypeVar("T")


class Facts(NamedTuple):
    """What identifies the rows of a part, or of a store."""

    rows: int
    size_bytes: int
    """Of keys and values."""
    checksum: str


class Comparison(NamedTuple):
    """A part as it is at either end; a table that one of them lacks has no rows there."""

    part: Part
    source: Facts
    target: Facts

    @property
    def equal(self) -> bool:
        """Whether both hold the same."""
        return self.source == self.target


class _Digest:
    """Gathers facts."""

    def __init__(self) -> None:
        self.rows = 0
        self._size_bytes = 0
        self._sha256 = hashlib.sha256()

    def add(self, framed: bytes, rows: int) -> None:
        self.rows += rows
        self._size_bytes += len(framed) - 2 * _LENGTH_BYTES * rows
        self._sha256.update(framed)

    def facts(self) -> Facts:
        return Facts(self.rows, self._size_bytes, self._sha256.hexdigest())


class _Reading:
    """One store's pass: facts of each part, and of everything."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._total = _Digest()

    async def read(self, part: Part, count: Callable[[int], None]) -> Facts:
        """Read a part; `count` is told of rows of tables as they pass."""
        digest = _Digest()
        async with aclosing(rows_of(self._engine, part)) as runs:
            async for run in runs:
                framed = b"".join([_framed(part.space, row) for row in run])
                digest.add(framed, len(run))
                if part.space != COUNTERS:
                    self._total.add(framed, len(run))
                if part.is_table:
                    count(len(run))
        return digest.facts()

    def total(self) -> Facts:
        """Return the facts of all parts read so far, but for the counter."""
        return self._total.facts()


def _framed(space: int, row: Row) -> bytes:
    key = encode_key(space, row.partition, row.row)
    return b"".join((len(key).to_bytes(_LENGTH_BYTES), key, len(row.value).to_bytes(_LENGTH_BYTES), row.value))


class Comparing:
    """Compares two stores."""

    def __init__(self, source: Engine, target: Engine, report: Callable[[Tally], None]) -> None:
        """`report` is told of progress, often; the tally is always the same one."""
        self._engines = source, target
        self._source, self._target = _Reading(source), _Reading(target)
        self._report = report

    async def run(self, entities: int | None) -> AsyncGenerator[Comparison, None]:
        """Yield a comparison for each part that either store has; `entities` is how many are expected.

        Raises:
            TransferError: a list of tables is damaged.
        """
        parts = sorted({part for engine in self._engines for part in await parts_of(engine)})
        tally = Tally("compared", entities_total=entities, tables=sum(part.is_table for part in parts))

        def count(rows: int) -> None:
            tally.entities += rows
            self._report(tally)

        for part in parts:
            source, target = await _both(self._source.read(part, count), self._target.read(part, lambda _: None))
            tally.tables_done += part.is_table
            self._report(tally)
            yield Comparison(part, source, target)

    def totals(self) -> Comparison:
        """Return the comparison of everything, once all parts were read."""
        return Comparison(EVERYTHING, self._source.total(), self._target.total())


async def _both(first: Coroutine[object, object, T], second: Coroutine[object, object, T]) -> list[T]:
    """Return what both return; where one fails, the other is broken off."""
    tasks = [asyncio.create_task(each) for each in (first, second)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
