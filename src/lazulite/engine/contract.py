"""The engine contract: an ordered row store of `(space, partition, row) -> bytes`.

Every engine must guarantee:

- A *space* is one table (or queue, or container), named by an integer that is never reused. Spaces need not be created:
  a new space and an empty one are the same. Dropping a space is instant whatever its size, and final.
- Rows are ordered by (partition, row), each compared ordinally by UTF-16 code unit, as .NET compares strings. Keys may
  hold any character except lone surrogates, U+0000 included, and may be empty. Different keys name different rows.
- `get` and one call of `scan` each see one consistent snapshot.
- `commit` is linearizable per partition and atomic. It returns, or raises a rejection, only when its writes and the
  values that it read are durable.
- No reader ever sees a write that a power cut could still take back.
- Each commit that writes gets a *commit timestamp*, greater than all earlier ones of that partition, whatever the clock
  does.

Source: Calder et al., "Windows Azure Storage", SOSP 2011, section 5 (object tables).
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeVar

from lazulite.engine.commit import Commit

T = TypeVar("T")

Key = tuple[str, str]
"""(partition, row), the address of a row inside its space."""

LISTED = 1 << 62
"""Is part of the number of a space whose keys are often listed without values. An engine may keep such keys apart."""

Clock = Callable[[], int]
"""The time now in ticks: units of 100 ns since 1601-01-01T00:00:00Z (a FILETIME). It may step back. A clock that knows
its time to be wrong may raise `EngineUnavailableError`, which rejects the commit."""


class KeyRange(NamedTuple):
    """The rows with `lower <= (partition, row) < upper`; no `upper` means to the end of the space.

    The smallest string after `s` is `s + "\\0"`, so half-open ranges express every bound.
    """

    lower: Key
    upper: Key | None


class JoinedKeys(NamedTuple):
    """Keys one behind the other: of each its head, its partition, 00, its row, FF.

    Partitions and rows are in CESU-8, and each 00 in a partition is 00 FF (see `key_encoding`).
    """

    keys: bytes
    head: int
    """The length of a head, which is the same for all."""


class Slice(Protocol):
    """Consecutive rows of a scan in ascending order."""

    @property
    def values(self) -> Sequence[bytes]:
        """The rows' values."""
        ...

    def key(self, index: int) -> Key:
        """Return the key of the row `values[index]`."""
        ...

    def columns(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the partitions, and the rows, of all keys."""
        ...

    def joined(self, start: int) -> JoinedKeys:
        """Return the keys from `start` on."""
        ...

    def find(self, key: Key, start: int) -> int:
        """Return the index of the first row from `start` on whose key is not before `key`; `len(values)` if none is.

        `start` is at most `len(values)`.
        """
        ...


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    TOKEN = auto()


UNKNOWN: Final = Unknown.TOKEN
"""Says that a value must be awaited: `Engine.get` tells it."""


class EngineError(Exception):
    """The store failed; nothing of the call was acknowledged. The base class of all engine errors."""


class EngineUnavailableError(EngineError):
    """The store cannot serve now (disk full, stalled, connection lost, closing). A later attempt may succeed."""


class DataDirectoryInUseError(EngineError):
    """Another process has the data directory open."""


class StoreUnusableError(EngineError):
    """The store cannot be opened: unreadable, damaged, or of a newer format. The text says which and what to do."""


class SpaceDroppedError(EngineError):
    """The space of a commit was dropped."""


class Waiter(Protocol):
    """Waits for a commit to become durable, as a future does. Neither method may raise."""

    def done(self) -> bool:
        """Return whether it waits no more."""
        ...

    def set_result(self, result: None, /) -> None:
        """Note that the commit is durable."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Note that it may not be."""
        ...


class Snapshot(Protocol):
    """A store as it was at one moment. Its calls come one after the other, and each is bounded by its caller."""

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """Return the first keys of a range, at most `limit`."""
        ...

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """Return the values of rows, in the order of their keys; None if there is no such row."""
        ...


class Engine(Protocol):
    """A row store. Every method except `get_now` and `commit_now` may raise `EngineUnavailableError`."""

    @property
    def reads_now(self) -> bool:
        """Return whether `get_now` may return a row, so that callers prepare for it."""
        ...

    @property
    def commits_now(self) -> bool:
        """Return whether `commit_now` may commit, likewise."""
        ...

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        """Return one row's value, or None if there is no such row."""
        ...

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        """Return what `get` would return, or `UNKNOWN` where `get` would wait or fail.

        Both see durable values only. An engine whose rows are a round trip away always returns `UNKNOWN`.
        """
        ...

    def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        """Yield the rows of `ranges` (ascending, disjoint) over one snapshot, at most `limit` rows in all.

        With `keys_only`, an engine may yield empty values, where that makes the scan cheaper (see `LISTED`).

        Producing a slice never holds the event loop for more than a few milliseconds, and the loop runs between two
        slices. A slice may be empty. The caller must close the generator.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Return a context with a snapshot of all spaces. On Citus, each node's part is of a moment of its own.

        Hold it for the time of a request only: the store keeps what is overwritten meanwhile.
        """
        ...

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        """Read rows of one partition, let the commit decide, and apply its changes durably as a whole.

        A rejection by the decision is raised only once every value that it was shown is durable.

        Returns:
            The result of the decision.

        Raises:
            SpaceDroppedError: the space was dropped.
        """
        ...

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        """Decide a commit in this step. Return its result, of which nothing may be told before `waiter` is resolved.

        Returns:
            `UNKNOWN`, where `commit` would wait first, or would fail; where the decision rejects, or writes nothing.
            Then nothing was changed, and the waiter is forgotten. An engine whose rows are a round trip away always
            returns it.
        """
        ...

    async def drop(self, space: int) -> None:
        """Empty a space forever, durably; its disk space is reclaimed in the background."""
        ...

    async def check_writable(self) -> None:
        """Make one durable write.

        Raises:
            EngineError: the write failed.
        """
        ...

    async def close(self) -> None:
        """Finish and flush all calls in flight, then release the store."""
        ...
