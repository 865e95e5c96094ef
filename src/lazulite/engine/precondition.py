"""Conditional writes: commits of one row that state which precondition the row must meet, and the value it then gets.

An engine whose rows are a round trip away sends such a write together with its precondition, in one round trip. If the
write depends on the row's value, the engine reads the row first: two round trips. If the precondition does not hold,
the engine calls the write as an ordinary `CommitFunction`. An engine that reads rows without a round trip may treat
every conditional write as a `CommitFunction`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple


class Expect(Enum):
    """Whether the row must exist."""

    ABSENT = auto()
    PRESENT = auto()
    ANYTHING = auto()


class Precondition(NamedTuple):
    """The state of a row on which a conditional write depends, and the kind of the write."""

    expects: Expect
    deletes: bool = False
    """Whether the write deletes the row."""
    timestamp: int | None = None
    """The commit timestamp of the row's last write, in ticks; None accepts every one."""


class ConditionalWrite(ABC):
    """A `CommitFunction` of a commit of one row, with a precondition.

    Invariant: for every row that meets the precondition, the commit function returns the write that `value` returns.
    """

    __slots__ = ()

    @abstractmethod
    def precondition(self) -> Precondition | None:
        """Return the precondition; None if the write depends on the row's value."""

    def conditional_on(self, current: bytes | None) -> "ConditionalWrite | None":  # noqa: ARG002 - for overrides
        """Return this write with a precondition, given the row's current value (None: absent).

        Returns:
            None if the write would be rejected, or depends on the row's value whatever it is.
        """
        return None

    @abstractmethod
    def value(self, timestamp: int) -> bytes | None:
        """Return the row's new value for a commit timestamp in ticks; None deletes the row."""


class ConditionalCommit(ABC):
    """A `CommitFunction` of a commit of several rows, with a precondition of each.

    Invariant: whenever all rows meet their preconditions, the commit function returns the same writes.
    """

    __slots__ = ()

    @abstractmethod
    def preconditions(self) -> Sequence[Precondition] | None:
        """Return the precondition of each row, in their order; None if a write depends on its row's value."""
