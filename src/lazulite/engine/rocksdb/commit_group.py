"""A commit group: the changes between two flushes, kept in memory until the next flush writes them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.errors import unavailable


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    TOKEN = auto()


UNCHANGED: Final = Unchanged.TOKEN
"""Says that a commit group does not change a key, so that its value is found further down."""

KeyChange = tuple[bytes, bytes | None, bytes | None]
"""A key, its old value and its new one; None: absent."""


class Outcome(NamedTuple):
    """The outcome of a commit, and the future of the moment when the caller may learn it (None: now)."""

    timestamp: int
    rejection: Exception | None
    durable: asyncio.Future[None] | None


class CommitGroup:
    """Changes that become durable together.

    Attributes:
        changes: the last new value of each key; None is a deletion.
        undo: the value of each key before the group.
        dropped: spaces dropped, after all changes of their keys.
        size_bytes: size of the keys and values of all changes.
        waiters: futures to resolve once the group is durable.
    """

    __slots__ = ("changes", "dropped", "size_bytes", "undo", "waiters")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.undo: dict[bytes, bytes | None] = {}
        self.dropped: set[int] = set()
        self.size_bytes = 0
        self.waiters: list[asyncio.Future[None]] = []

    def join(self, changed: Iterable[KeyChange]) -> None:
        """Add the changes of a commit."""
        undo, changes = self.undo, self.changes
        size_bytes = self.size_bytes
        for key, before, after in changed:
            undo.setdefault(key, before)
            changes[key] = after
            size_bytes += len(key) + (0 if after is None else len(after))
        self.size_bytes = size_bytes

    def touches(self, keys: Iterable[bytes], space: int) -> bool:
        """Return whether the group changes one of these keys of a space, or drops the space."""
        return space in self.dropped or any(key in self.changes for key in keys)

    def acknowledge(self) -> None:
        """Resolve the waiters: the whole group is durable."""
        for waiter in self.waiters:
            if not waiter.done():  # The task of a waiter may have been cancelled.
                waiter.set_result(None)

    def reject(self, error: EngineError) -> None:
        """Fail the waiters, each with an error of its own."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(unavailable(error))


def changes_by_key(
    rows: Sequence[str], keys: Sequence[bytes], current: Sequence[bytes | None], changes: Mapping[str, bytes | None]
) -> list[KeyChange]:
    """Return a commit's changes by key. Raises KeyError for a row that the commit did not name."""
    if len(rows) == 1 and len(changes) == 1:  # The common case, without a dictionary.
        return [(keys[0], current[0], changes[rows[0]])]
    found = dict(zip(rows, zip(keys, current, strict=True), strict=True))
    return [(*found[row], value) for row, value in changes.items()]
