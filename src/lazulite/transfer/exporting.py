"""Entities of a table to a file."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from lazulite.transfer.table_client import Query, TableClient
from lazulite.transfer.values import Entity

_MEBIBYTE = 1 << 20


@dataclass(slots=True)
class TransferProgress:
    """Rows that were written or stored."""

    verb: str
    """`exported` or `imported`."""
    done: int = 0
    """Rows that were stored or written."""
    failed: int = 0
    """Rows that are no entities, or that a service rejected."""
    size_bytes: int = 0
    """Bytes of the file, read or written."""
    total_bytes: int | None = None
    """None: unknown."""

    @property
    def of_total(self) -> tuple[int, int] | None:
        """How much of the file is read; None while its length is unknown."""
        return None if self.total_bytes is None else (self.size_bytes, self.total_bytes)

    @property
    def counts(self) -> dict[str, int | None]:
        """What machines are told."""
        return {
            "rows": self.done,
            "failed": self.failed,
            "bytes": self.size_bytes,
            "bytes_total": self.total_bytes,
        }

    def describe(self, rate: float) -> str:
        """Return the progress in words. `rate` is in rows a second."""
        of = "" if self.total_bytes is None else f" of {self.total_bytes / _MEBIBYTE:,.1f}"
        failed = f", {self.failed:,} failed" if self.failed else ""
        size_rate = rate * self.size_bytes / max(self.done, 1) / _MEBIBYTE
        return (
            f"{self.verb} {self.done:,} rows{failed}, {self.size_bytes / _MEBIBYTE:,.1f}{of} MiB "
            f"({rate:,.0f}/s, {size_rate:,.1f} MiB/s)"
        )


class EntityWriter(Protocol):
    """Writes entities to a file."""

    @property
    def size_bytes(self) -> int:
        """How much was written."""
        ...

    def write(self, entities: Sequence[Entity]) -> None:
        """Write entities."""
        ...

    def finish(self) -> None:
        """Write what is left. The file is complete then; it stays open."""
        ...


async def export(
    client: TableClient,
    table: str,
    query: Query,
    writer: EntityWriter,
    report: Callable[[TransferProgress], None],
) -> TransferProgress:
    """Write the entities that a query finds, in the order of their keys.

    Args:
        client: where the table is.
        table: its name.
        query: what is exported.
        writer: the file.
        report: called for each page, each time with the same object.

    Raises:
        TransferError: the query is rejected, or no server responds.
        OSError: the file cannot be written.
    """
    progress = TransferProgress("exported")
    async with aclosing(client.pages(table, query)) as pages:
        async for entities in pages:
            writer.write(entities)
            progress.done += len(entities)
            progress.size_bytes = writer.size_bytes
            report(progress)
    writer.finish()
    progress.size_bytes = writer.size_bytes
    return progress
