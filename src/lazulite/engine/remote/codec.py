"""A `Codec` as a table: the commit functions and rejections, each with the functions that encode and decode it."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from lazulite.engine.compare_and_swap import CompareAndSwap, CompareAndSwapRows, RowChangedError
from lazulite.engine.contract import CommitFunction
from lazulite.engine.remote.channel import Plain

T = TypeVar("T")


class Encoding(NamedTuple, Generic[T]):
    """How the values of a type are sent."""

    type: type[T]
    encode: Callable[[T], Plain]
    """Returns a value as plain values."""
    decode: Callable[[Plain], T]
    """Returns the value that was encoded."""


class EncodingTable:
    """Implements `Codec`. Both ends have the same table, so that a type is its number in it.

    Args:
        commits: all commit functions that workers send.
        rejections: all rejections that the primary sends.
    """

    def __init__(self, commits: Sequence[Encoding[Plain]], rejections: Sequence[Encoding[Plain]]) -> None:
        self._commits = commits
        self._numbers = {encoding.type: number for number, encoding in enumerate(commits)}
        self._rejections = rejections

    def encode_commit(self, decide: CommitFunction) -> Plain:
        """See `Codec`."""
        number = self._numbers[type(decide)]
        return number, self._commits[number].encode(decide)

    def decode_commit(self, payload: Plain) -> CommitFunction:
        """See `Codec`."""
        number, encoded = payload
        decoded: CommitFunction = self._commits[number].decode(encoded)
        return decoded

    def encode_rejection(self, rejection: Exception) -> Plain:
        """See `Codec`."""
        for number, encoding in enumerate(self._rejections):
            if isinstance(rejection, encoding.type):
                return number, encoding.encode(rejection)
        raise rejection

    def decode_rejection(self, payload: Plain) -> Exception:
        """See `Codec`."""
        number, encoded = payload
        decoded: Exception = self._rejections[number].decode(encoded)
        return decoded


def _decode_swap(payload: Plain) -> CompareAndSwap:
    expected, changes = payload
    return CompareAndSwap(expected, changes)


def _decode_swap_of_rows(payload: Plain) -> CompareAndSwapRows:
    expected, changes = payload
    return CompareAndSwapRows(expected, changes)


ENGINE_COMMITS = (
    Encoding(CompareAndSwap, lambda swap: (swap.expected, dict(swap.changes)), _decode_swap),
    Encoding(CompareAndSwapRows, lambda swap: (list(swap.expected), dict(swap.changes)), _decode_swap_of_rows),
)
"""The commit functions that are no service's."""
ENGINE_REJECTIONS = (Encoding(RowChangedError, lambda _: None, lambda _: RowChangedError()),)
"""The rejections that are no service's."""
