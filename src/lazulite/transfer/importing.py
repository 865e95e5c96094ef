"""Rows of a file to a table.

Rows are grouped by partition, in entity group transactions of up to 100, and several partitions are sent at once. Of
two rows with equal keys, the later one is sent when the earlier one is stored.

Invariants:

- A row is stored, or reported with a reason. Neither is said of a row before the service answered.
- A checkpoint is behind rows that are all stored or reported. So after a kill, rows are sent again and none is missed.
- At most `WAITING_ROWS_MAX` rows and `WAITING_BYTES_MAX` bytes wait to be sent.
"""

import asyncio
import json
import os
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from lazulite.table.model.edm import Json
from lazulite.transfer.exporting import TransferProgress
from lazulite.transfer.http_client import TransferError
from lazulite.transfer.inputs import ChangedInputError, Position, Row, RowReader
from lazulite.transfer.table_client import (
    BATCH_BYTES_MAX,
    BATCH_ROWS_MAX,
    FATAL,
    Mode,
    PreparedRow,
    RejectedError,
    TableClient,
)
from lazulite.transfer.values import KEYS, TIMESTAMP, Entity, RowError, canonical, check_keys

WAITING_ROWS_MAX = 20_000
WAITING_BYTES_MAX = 64 << 20
CONNECTIONS = 4
"""The partitions that are sent at once."""
_PART_BYTES = 1024
"""More than the head of a row in a transaction, but for its keys."""
_SINGLY_AFTER = 3
"""A transaction that had so many bad rows is sent row by row."""
_MARK_ROWS = 500
"""The number of rows between two positions that are kept for checkpoints."""
_VERSION = 1
_ENCODE = json.JSONEncoder(allow_nan=False).encode


class RowKeys(NamedTuple):
    """How rows with a blank RowKey, or without one, get one; it is the same if the row is read again."""

    kind: str = ""
    """`number`: the number of the row; `uuid`: a UUID made of its content and its number; "": they get none."""

    def fill(self, row: int, entity: Entity) -> None:
        """Set the RowKey of a row if it is blank."""
        if self.kind and not entity.get("RowKey"):
            if self.kind == "number":
                entity["RowKey"] = f"{row:010}"
            else:
                content = json.dumps([row, entity], sort_keys=True).encode()
                entity["RowKey"] = str(uuid.UUID(bytes=blake2b(content, digest_size=16).digest(), version=5))


class FailedRow(NamedTuple):
    """A row that was not stored."""

    number: int
    keys: tuple[str, str] | None
    reason: str

    def line(self) -> str:
        """Return the row as a line of JSON, with its end."""
        named = {} if self.keys is None else dict(zip(KEYS, self.keys, strict=True))
        return json.dumps({"row": self.number, **named, "reason": self.reason}, ensure_ascii=False) + "\n"


class Checkpoint:
    """The file that says how far an import is, beside its input.

    Args:
        path: of the file; None keeps none.
        identity: what must be the same when the import goes on, such as the table.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Json]) -> None:
        self._path = path
        self._identity = {"version": _VERSION, **identity}

    def load(self) -> Mapping[str, Json] | None:
        """Return what was saved; None if there is nothing.

        Raises:
            ChangedInputError: it is of another import, or damaged.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            saved = json.loads(self._path.read_bytes())
            if not isinstance(saved["rows"], int) or not isinstance(saved["position"], dict):
                raise TypeError
        except (ValueError, TypeError, LookupError):
            raise ChangedInputError(f"{self._path} is no checkpoint") from None
        if {name: saved.get(name) for name in self._identity} != self._identity:
            raise ChangedInputError(f"{self._path} is of another import")
        assert isinstance(saved, dict)
        return saved

    def save(self, rows: int, position: Position) -> None:
        """Replace the file, durably."""
        if self._path is None:
            return
        text = json.dumps({**self._identity, "rows": rows, "position": position})
        beside = self._path.with_name(f"{self._path.name}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


@dataclass(slots=True, eq=False)
class _Batch:
    """Rows of one partition."""

    first: int
    """The number of the first row."""
    rows: list[PreparedRow] = field(default_factory=list)
    row_keys: set[str] = field(default_factory=set)
    size_bytes: int = 0

    def add(self, row: PreparedRow) -> None:
        self.rows.append(row)
        self.row_keys.add(row.row_key)
        self.size_bytes += _size(row)

    def has_room_for(self, row: PreparedRow) -> bool:
        return len(self.rows) < BATCH_ROWS_MAX and self.size_bytes + _size(row) <= BATCH_BYTES_MAX


def _size(row: PreparedRow) -> int:
    return len(row.body) + 12 * (len(row.partition_key) + len(row.row_key)) + _PART_BYTES


class Importer:
    """One import. `run` it once.

    Args:
        client: where the table is.
        table: its name.
        mode: what is done to entities that exist.
        row_keys: what rows without a RowKey get.
        checkpoint: where the import goes on after a kill.
        fail: called with each row that is not stored.
        report: called often, each time with the same object.
        timer: returns seconds.
    """

    def __init__(
        self,
        client: TableClient,
        table: str,
        mode: Mode,
        *,
        row_keys: RowKeys,
        checkpoint: Checkpoint,
        fail: Callable[[FailedRow], None],
        report: Callable[[TransferProgress], None],
        timer: Callable[[], float],
    ) -> None:
        self._client, self._table, self._mode = client, table, mode
        self._row_keys, self._checkpoint = row_keys, checkpoint
        self._fail, self._report, self._timer = fail, report, timer
        self.progress = TransferProgress("imported")
        self.resumed_after = 0
        """The number of rows that an earlier run has done."""
        self._filling: dict[str, _Batch] = {}
        self._sending: dict[asyncio.Task[None], tuple[str, _Batch]] = {}
        self._waiting_rows = self._waiting_bytes = 0
        self._marks: deque[tuple[int, Position]] = deque()
        self._saved_at = timer()

    async def run(self, reader: RowReader) -> TransferProgress:
        """Store the rows of a file, and return how many were stored and failed.

        Raises:
            ChangedInputError: the checkpoint does not fit the file.
            InputError: the file cannot be read as rows.
            TransferError: the service rejects what every row has, or does not respond. The same call goes on later.
            OSError: a file cannot be read or written.
        """
        saved = self._checkpoint.load()
        if saved is not None:
            self._resume(reader, saved)
        self.progress.total_bytes = reader.size_bytes
        try:
            for row in reader.rows():
                await self._take(row)
                if row.number % _MARK_ROWS == 0:
                    self._mark(reader, row.number)
                    await asyncio.sleep(0)
            for partition in list(self._filling):
                await self._send(partition)
            while self._sending:
                await self._wait()
            self.progress.size_bytes = reader.read_bytes
        except BaseException:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            self._save()
            raise
        self._checkpoint.remove()
        return self.progress

    def _resume(self, reader: RowReader, saved: Mapping[str, Json]) -> None:
        rows, position = saved["rows"], saved["position"]
        assert isinstance(rows, int)
        assert isinstance(position, dict)
        reader.resume(position, rows)
        self.resumed_after = rows
        self._marks.append((rows, position))

    async def _take(self, row: Row) -> None:
        """Put a row in the batch of its partition, and send what is full or has waited for long."""
        try:
            prepared = self._prepared(row)
        except RowError as error:
            self._failed(FailedRow(row.number, None, str(error)))
            return
        partition = prepared.partition_key
        batch = self._filling.get(partition)
        if batch is not None and (prepared.row_key in batch.row_keys or not batch.has_room_for(prepared)):
            await self._send(partition)
            batch = None
        while any(of == partition and prepared.row_key in sent.row_keys for of, sent in self._sending.values()):
            await self._wait()
        if batch is None:
            batch = self._filling[partition] = _Batch(prepared.number)
        batch.add(prepared)
        self._waiting_rows += 1
        self._waiting_bytes += _size(prepared)
        if len(batch.rows) == BATCH_ROWS_MAX:
            await self._send(partition)
        while self._has_too_much(row.number):
            await self._send(next(iter(self._filling)))

    def _has_too_much(self, row: int) -> bool:
        """Tell whether the oldest batch must be sent, so that memory and the rows behind a checkpoint stay bounded."""
        if not self._filling:
            return False
        oldest = next(iter(self._filling.values()))
        return (
            self._waiting_rows > WAITING_ROWS_MAX
            or self._waiting_bytes > WAITING_BYTES_MAX
            or row - oldest.first > 2 * WAITING_ROWS_MAX
        )

    def _prepared(self, row: Row) -> PreparedRow:
        if row.entity is None:
            raise RowError(row.problem)
        entity = row.entity
        self._row_keys.fill(row.number, entity)
        entity.pop(TIMESTAMP, None)
        entity.pop(f"{TIMESTAMP}@odata.type", None)
        keys = check_keys(entity)
        try:
            body = _ENCODE(entity)
        except ValueError:
            raise RowError("a number is out of range") from None
        return PreparedRow(row.number, *keys, body.encode("ascii"))

    async def _send(self, partition: str) -> None:
        """Send the batch of a partition, once there is a connection for it."""
        while len(self._sending) >= CONNECTIONS:
            await self._wait()
        batch = self._filling.pop(partition)
        self._waiting_rows -= len(batch.rows)
        self._waiting_bytes -= batch.size_bytes
        task = asyncio.create_task(self._store(batch))
        self._sending[task] = partition, batch
        await asyncio.sleep(0)  # It is sent before more is read.

    async def _wait(self) -> None:
        """Wait until a batch is stored. A batch that is not stays in `_sending`, for the checkpoint."""
        done, _ = await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
            del self._sending[task]

    async def _store(self, batch: _Batch) -> None:
        """Store the rows of a batch, without the ones that the service rejects."""
        rows = batch.rows
        rejections = 0
        while rows:
            part = rows if rejections < _SINGLY_AFTER else rows[:1]
            rejected = await self._commit(part)
            if rejected is None:
                self.progress.done += len(part)
                rows = rows[len(part) :]
                continue
            rejections += 1
            index = rejected.index if len(part) > 1 else 0
            if index is None or index >= len(part):  # It does not say which row.
                rejections = _SINGLY_AFTER
                continue
            bad = rows[index]
            rows = rows[:index] + rows[index + 1 :]
            if await self._is_stored(bad, rejected):
                self.progress.done += 1
            else:
                self._failed(FailedRow(bad.number, (bad.partition_key, bad.row_key), str(rejected)))

    async def _commit(self, rows: list[PreparedRow]) -> RejectedError | None:
        try:
            await self._client.commit(self._table, rows, self._mode)
        except RejectedError as error:
            if error.status in FATAL:
                raise TransferError(f"{self._client.endpoint} rejects the rows: {error}") from None
            return error
        return None

    async def _is_stored(self, row: PreparedRow, rejected: RejectedError) -> bool:
        """Tell whether a row exists because this import, or the run before it, stored it; the answer was lost then."""
        if rejected.code != "EntityAlreadyExists":
            return False
        if not (rejected.was_retried or self.resumed_after):
            return False
        found = await self._client.get(self._table, row)
        return found is not None and canonical(found) == canonical(json.loads(row.body))

    def _failed(self, row: FailedRow) -> None:
        self.progress.failed += 1
        self._fail(row)

    def _mark(self, reader: RowReader, row: int) -> None:
        """Note a position, report the progress, and save a checkpoint once a second."""
        position = reader.position()
        if position is not None:
            self._marks.append((row, position))
        self.progress.size_bytes = reader.read_bytes
        self._report(self.progress)
        if self._timer() - self._saved_at >= 1.0:
            self._save()

    def _save(self) -> None:
        """Save the last position before every row that is not done."""
        open_batches = [*self._filling.values(), *(batch for _, batch in self._sending.values())]
        first = min((batch.first for batch in open_batches), default=None)
        last: tuple[int, Position] | None = None
        while self._marks and (first is None or self._marks[0][0] < first):
            last = self._marks.popleft()
        if last is not None:
            self._checkpoint.save(*last)
            self._marks.appendleft(last)
        self._saved_at = self._timer()
