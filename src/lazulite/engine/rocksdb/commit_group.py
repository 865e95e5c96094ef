"""The changes between two starts of a flush, kept in memory until theirs begins."""

import asyncio
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    TOKEN = auto()


UNCHANGED: Final = Unchanged.TOKEN
"""Says that a generation has nothing about a key: look further down."""

Change = tuple[bytes, bytes | None, bytes | None]
"""A key, what it was and what it becomes; None: it is not there."""


class Generation:
    """Changes that become durable together.

    Attributes:
        changes: what the keys become, in the end; None is a deletion.
        undo: what they were before the generation.
        dropped: spaces dropped, after every change of one of their keys.
        size_bytes: of the changes, as they go to the log.
        waiters: who is to be told.
    """

    __slots__ = ("changes", "dropped", "size_bytes", "undo", "waiters")

    def __init__(self) -> None:
        self.changes: dict[bytes, bytes | None] = {}
        self.undo: dict[bytes, bytes | None] = {}
        self.dropped: set[int] = set()
        self.size_bytes = 0
        self.waiters: list[asyncio.Future[None]] = []

    def change(self, changed: Iterable[Change]) -> None:
        """Note what keys were and what they become."""
        undo, changes = self.undo, self.changes
        size_bytes = self.size_bytes
        for key, before, after in changed:
            undo.setdefault(key, before)
            changes[key] = after
            size_bytes += len(key) + (0 if after is None else len(after))
        self.size_bytes = size_bytes

    def touches(self, keys: Iterable[bytes], space: int) -> bool:
        """Say whether the generation changed one of these keys of a space."""
        return space in self.dropped or any(key in self.changes for key in keys)

    def answer(self) -> None:
        """Tell the waiters that all of it is durable."""
        for waiter in self.waiters:
            if not waiter.done():  # A waiter is done already when its task was cancelled.
                waiter.set_result(None)
