"""The engine contract: an ordered row store of `(space, partition, row) -> bytes`.

What every engine must hold, whatever is behind it:

- A *space* is one table (or queue, or container), named by an integer that is never reused. Spaces need not be created;
  an empty one and a new one are the same thing. Dropping a space is instant whatever its size, and final.
- Rows are ordered by (partition, row), each compared ordinally by UTF-16 code unit, as .NET compares strings. Keys may
  hold any character but lone surrogates, U+0000 included, and may be empty. Two different keys never meet.
- `get` and one call of `scan` each see one consistent snapshot.
- `commit` is linearizable per partition, all or nothing, and returns (or refuses) only when what it wrote and what it
  read is durable.
- No reader ever sees a write that a power cut could still take back.
- Each commit that writes gets a stamp greater than all written before in that partition, whatever the clock does.

Source: Calder et al., "Windows Azure Storage", SOSP 2011, section 5 (object tables).
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

Key = tuple[str, str]
"""(partition, row), the address of a row inside its space."""

Clock = Callable[[], int]
"""The time now in ticks: units of 100 ns since 1601-01-01T00:00:00Z (a FILETIME). May step back; one that cannot be
believed may raise `EngineUnavailableError`, which refuses the commit."""

Decide = Callable[[Sequence[bytes | None], int], Mapping[str, bytes | None]]
"""Given the current values of the rows a commit named, in that order (None = absent), and the commit's stamp in ticks:
what to write, row -> new value (None = delete). Rows left out stay as they are; only named rows may be written.
Pure and quick; it may be called more than once. Raising refuses the commit with that very exception."""


class KeyRange(NamedTuple):
    """The rows with `lower <= (partition, row) < upper`; no `upper` means to the end of the space.

    As the smallest string after `s` is `s + "\\0"`, half-open ranges express every bound.
    """

    lower: Key
    upper: Key | None


class Slice(Protocol):
    """A run of rows in ascending order, read in one go."""

    @property
    def values(self) -> Sequence[bytes]:
        """The rows' values."""
        ...

    def key(self, index: int) -> Key:
        """Return the key of the row `values[index]`."""
        ...


class EngineError(Exception):
    """The store failed: nothing of the call was acknowledged. The root of all engine errors."""


class EngineUnavailableError(EngineError):
    """The store cannot serve now (disk full, stalled, connection lost, closing): trying again later may work."""


class LocationInUseError(EngineError):
    """Another process holds the location."""


class StoreUnusableError(EngineError):
    """The store cannot be opened: unreadable, damaged, or of a newer format. The text says which and what to do."""


class SpaceDroppedError(EngineError):
    """A commit came after the space was dropped."""


class Engine(Protocol):
    """A row store. Every method may raise `EngineUnavailableError`."""

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """Return one row's value, or None."""
        ...

    def scan(self, space: int, ranges: Sequence[KeyRange], limit: int | None = None) -> AsyncGenerator[Slice, None]:
        """Yield the rows of `ranges` (ascending, disjoint) over one snapshot, at most `limit` rows in all.

        Slices are small enough that producing one never holds the event loop for more than a few milliseconds, and
        the loop gets a turn between two of them. A slice may be empty. Close the generator when done with it.
        """
        ...

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: Decide) -> int:
        """Read the named rows of one partition, let `decide` choose, apply all of it durably; return the stamp.

        A refusal by `decide` surfaces only once everything that it was shown is durable.

        Raises:
            SpaceDroppedError: the space was dropped.
        """
        ...

    async def drop(self, space: int) -> None:
        """Make a space empty for good, durably; its disk room comes back in the background."""
        ...

    async def check_writable(self) -> None:
        """Make one durable write; raises if that fails."""
        ...

    async def close(self) -> None:
        """Finish and flush what is in flight, then let go of the location."""
        ...
