"""The reads of a commit that are too large for one step of the event loop.

A commit reads, decides and joins the open commit group in one step, so that no other commit comes between. A read-ahead
reads the values in several steps before that one. The group commit tells it of the commits that join meanwhile.
"""

from collections.abc import Iterable, Sequence

from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.commit_group import KeyChange
from lazulite.engine.rocksdb.errors import unavailable


class ReadAhead:
    """The latest values of the keys read so far."""

    __slots__ = ("_rejected", "_values")

    def __init__(self) -> None:
        self._values: dict[bytes, bytes | None] = {}
        self._rejected: EngineError | None = None

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add a key with its latest value."""
        self._values[key] = value

    def follow(self, changed: Iterable[KeyChange]) -> None:
        """Take in the changes of another commit."""
        for key, _, after in changed:
            if key in self._values:
                self._values[key] = after

    def reject(self, error: EngineError) -> None:
        """Take in that commits whose changes may be among the values were rejected."""
        self._rejected = error

    def values(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the latest values of keys that were added.

        Raises:
            EngineUnavailableError: they were rejected.
        """
        if self._rejected is not None:
            raise unavailable(self._rejected)
        return [self._values[key] for key in keys]
