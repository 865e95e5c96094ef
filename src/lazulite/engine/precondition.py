"""Decisions that can be told in advance: what a commit of one row would write if the row is as it expects.

An engine whose rows are a round trip away writes that on condition, in one; or in two, if the decision must have seen
the row. Where the condition does not hold, the decision is asked as any other. An engine that has its rows at hand need
not know of this.
"""

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import NamedTuple


class Expect(Enum):
    """What a row should be."""

    ABSENT = auto()
    PRESENT = auto()
    ANYTHING = auto()


class Foreseen(NamedTuple):
    """What can be told of a decision."""

    expects: Expect
    deletes: bool = False
    """Whether the row goes, if it is as expected."""
    stamp: int | None = None
    """Of the commit that wrote the row last; None: any."""


class Foreseeing(ABC):
    """A `Decide` of a commit of one row.

    What it tells must be enough: of a row that is as expected, the decision would make the same.
    """

    __slots__ = ()

    @abstractmethod
    def foresee(self) -> Foreseen | None:
        """Return what the row should be; None if the decision must see it."""

    def seen(self, current: bytes | None) -> "Foreseeing | None":  # noqa: ARG002 - for those who override it
        """Return a decision that need not see the row any more, having seen what it is.

        None if there is no such decision: the row is not what it has to be, or the decision always must see it.
        """
        return None

    @abstractmethod
    def value(self, stamp: int) -> bytes | None:
        """Return what the row becomes if it is as expected, at a commit's stamp; None if it goes."""
