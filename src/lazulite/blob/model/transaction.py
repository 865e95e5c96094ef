"""A transaction on a blob's partition: the rows that a commit read, and its changes to them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from lazulite.blob.model.blob import Blob, read_blob
from lazulite.blob.model.ledger import Ledger, read_ledger
from lazulite.blob.model.rows import CURRENT, LEDGER
from lazulite.protocol.errors import ServiceError


class MissingRowError(Exception):
    """A transaction needs a row that its commit did not name. The commit is repeated with the row.

    Args:
        row: the row.
    """

    def __init__(self, row: str) -> None:
        super().__init__(row)
        self.row = row


class Transaction:
    """The stored rows of a partition, and the changes to them.

    Args:
        rows: the rows that the commit named; `LEDGER` and `CURRENT` are among them.
        values: their values.
        now: the time of the commit, in ticks.
        present: the time by which leases and rehydrations end, in ticks.
    """

    def __init__(self, rows: Sequence[str], values: Sequence[bytes | None], now: int, present: int) -> None:
        self._values = dict(zip(rows, values, strict=True))
        self._changes: dict[str, bytes | None] = {}
        stored = self._values[CURRENT]
        self.found = None if stored is None else read_blob(stored).at(present)
        """The current blob, as it is at present."""
        self._is_deleted = self.found is not None and bool(self.found.deleted)
        """Whether the current blob of the change is deleted but kept."""
        self.found_ledger = read_ledger(self._values[LEDGER])
        self.ledger: Ledger = self.found_ledger
        """The ledger as it was found, to be replaced by its new state."""
        self.now = now
        self.present = present

    @property
    def modified(self) -> int:
        """The Last-Modified of a change: greater than the present one, whatever the clock does."""
        return self.now if self.found is None else max(self.now, self.found.modified + 1)

    @property
    def new_garbage(self) -> bool:
        """Whether the change makes garbage."""
        return len(self.ledger.garbage) > len(self.found_ledger.garbage)

    def value(self, row: str) -> bytes | None:
        """Return the stored value of a row. Raises `MissingRowError`."""
        self._need(row)
        return self._values[row]

    def row_of(self, row: str) -> str:
        """Return the row that has what an address names: the id of the current version names the current blob (§44)."""
        return CURRENT if self.found is not None and self.found.is_version(row) else row

    def blob(self, row: str) -> Blob | None:
        """Return the blob, snapshot or version of a row, as it is at present. Raises `MissingRowError`."""
        if row == CURRENT:
            return self.found
        value = self.value(row)
        return None if value is None else read_blob(value).at(self.present)

    def require_blob(self, row: str = CURRENT) -> Blob:
        """Return the blob, snapshot or version of a row, unless it is deleted. Raises `BlobNotFound`, or as `blob`."""
        found = self.blob(row)
        if found is None or found.deleted:
            raise ServiceError("BlobNotFound")
        return found

    def put(self, row: str, value: bytes | None) -> None:
        """Write a row; None deletes it. Raises `MissingRowError`."""
        self._need(row)
        self._changes[row] = value

    def put_blob(self, blob: Blob | None) -> None:
        """Write the current blob; None deletes it. The caller accounts for what held its bytes."""
        self._changes[CURRENT] = None if blob is None else blob.to_bytes()
        self._is_deleted = blob is not None and bool(blob.deleted)

    def changes(self) -> Mapping[str, bytes | None]:
        """Return the rows to write."""
        if self.ledger.deleted != self._is_deleted:
            self.ledger = self.ledger._replace(deleted=self._is_deleted)
        if self.ledger is not self.found_ledger:
            self._changes[LEDGER] = None if self.ledger == Ledger() else self.ledger.to_bytes()
        return self._changes

    def _need(self, row: str) -> None:
        if row not in self._values:
            raise MissingRowError(row)


T = TypeVar("T")

Decide: TypeAlias = Callable[[Transaction], T]
"""Changes a transaction and returns its result, or rejects the commit by an exception. It is quick, changes nothing
else, and may run again."""
