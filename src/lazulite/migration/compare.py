"""The second pass of a copy: read both stores and compare their contents part by part.

The *checksum* of a part is a SHA-256 over the keys and values of its rows, in key order. The checksum of a store is one
over the parts that are content: service properties, catalogs, and what these name. Keys and framing are those of
`lazulite check`. So both commands print the same numbers, sizes and checksum for the same contents.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import Engine
from lazulite.engine.key_encoding import encode_key
from lazulite.migration.contents import summary_of
from lazulite.migration.parts import StoredRow, StorePart, parts_of, rows_of
from lazulite.migration.progress import Progress
from lazulite.records.spaces import Spaces

WHOLE_STORE = StorePart(0, "everything")
_LENGTH_BYTES = 4

T = TypeVar("T")


class ContentSummary(NamedTuple):
    """The number, the size and the checksum of the rows of a part or of a store."""

    rows: int
    """Entities, messages or blobs in a part that a catalog names, else all rows."""
    size_bytes: int
    """The size of keys, values and contents."""
    checksum: str
    contents_checksum: str = ""
    """The checksum of the contents to which rows of the part refer; "" if there are none, and for a store."""


class PartComparison(NamedTuple):
    """The contents of a part in both stores. A table that a store lacks has no rows there."""

    part: StorePart
    source: ContentSummary
    target: ContentSummary

    @property
    def equal(self) -> bool:
        """Whether both stores have the same contents."""
        return self.source == self.target


class _SummaryBuilder:
    """Build a summary from rows."""

    def __init__(self) -> None:
        self.counted = 0
        self.size_bytes = 0
        self._sha256 = hashlib.sha256()

    def add(self, framed: bytes, rows: int, counted: int) -> None:
        self.counted += counted
        self.size_bytes += len(framed) - 2 * _LENGTH_BYTES * rows
        self._sha256.update(framed)

    def summary(self) -> ContentSummary:
        return ContentSummary(self.counted, self.size_bytes, self._sha256.hexdigest())


class _StoreReader:
    """Read one store and summarize each part and the whole."""

    def __init__(self, engine: Engine, contents: ContentStore) -> None:
        self._engine = engine
        self._contents = contents
        self._total = _SummaryBuilder()

    async def read(self, part: StorePart, count: Callable[[int], None]) -> ContentSummary:
        """Read a part and return its summary. Call `count` with the number of rows of a table as they are read."""
        digest = _SummaryBuilder()
        summaries = (digest, self._total) if part.is_content else (digest,)
        is_counted = None if part.catalog is None else part.catalog.counted
        async with aclosing(rows_of(self._engine, part)) as runs:
            async for run in runs:
                framed = b"".join([_framed(part.space, row) for row in run])
                counted = len(run) if is_counted is None else sum(is_counted((row.partition, row.row)) for row in run)
                for summary in summaries:
                    summary.add(framed, len(run), counted)
                if part.catalog is not None:
                    count(len(run))
        size_bytes, checksum = await summary_of(self._engine, part, self._contents)
        for summary in summaries:
            summary.size_bytes += size_bytes
        return digest.summary()._replace(contents_checksum=checksum)

    def total(self) -> ContentSummary:
        """Return the summary of all parts read so far that are content."""
        return self._total.summary()


def _framed(space: int, row: StoredRow) -> bytes:
    key = encode_key(space, row.partition, row.row)
    return b"".join((len(key).to_bytes(_LENGTH_BYTES), key, len(row.value).to_bytes(_LENGTH_BYTES), row.value))


def _order(part: StorePart) -> tuple[int, str]:
    return part.space, part.name


class ComparedStore(NamedTuple):
    """One of two stores: its rows and its contents."""

    engine: Engine
    contents: ContentStore


class StoreComparer:
    """Compare two stores."""

    def __init__(
        self, source: ComparedStore, target: ComparedStore, spaces: Spaces, report: Callable[[Progress], None]
    ) -> None:
        """`report` is called often, each time with the same `Progress`."""
        self._engines = source.engine, target.engine
        self._spaces = spaces
        self._source, self._target = _StoreReader(*source), _StoreReader(*target)
        self._report = report

    async def run(self, entities: int | None) -> AsyncGenerator[PartComparison, None]:
        """Yield a comparison for each part of either store. `entities` is the expected number, for the progress.

        Raises:
            MigrationError: a list of tables is damaged.
        """
        parts = sorted({part for engine in self._engines for part in await parts_of(engine, self._spaces)}, key=_order)
        progress = Progress("compared", rows_total=entities, parts=sum(part.catalog is not None for part in parts))

        def count(rows: int) -> None:
            progress.rows += rows
            self._report(progress)

        for part in parts:
            source, target = await _both(self._source.read(part, count), self._target.read(part, lambda _: None))
            progress.parts_done += part.catalog is not None
            self._report(progress)
            yield PartComparison(part, source, target)

    def totals(self) -> PartComparison:
        """Return the comparison of the whole stores, once all parts are read."""
        return PartComparison(WHOLE_STORE, self._source.total(), self._target.total())


async def _both(first: Coroutine[object, object, T], second: Coroutine[object, object, T]) -> list[T]:
    """Return both results. If one coroutine fails, cancel the other."""
    tasks = [asyncio.create_task(each) for each in (first, second)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
