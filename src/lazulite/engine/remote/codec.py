"""What two processes of one program send each other as plain values: commits and rejections."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from lazulite.engine.commit import COMMIT_PROCEDURES, CommitProcedure, Plain

T = TypeVar("T")


class Encoding(NamedTuple, Generic[T]):
    """How the values of a type are sent."""

    type: type[T]
    encode: Callable[[T], Plain]
    """Returns a value as plain values."""
    decode: Callable[[Plain], T]
    """Returns the value that was encoded."""


class Codec:
    """Encodes rejections, and knows the procedures of commits. Both ends have the same.

    Args:
        commits: the procedures of commits that workers send, beside those that are no service's.
        rejections: all rejections that the primary sends. A type is its number among them.
    """

    def __init__(
        self, commits: Sequence[CommitProcedure[Any]] = (), rejections: Sequence[Encoding[Plain]] = ()
    ) -> None:
        self.commits = {each.name: each for each in (*COMMIT_PROCEDURES, *commits)}
        """By name."""
        self._rejections = rejections

    def encode_rejection(self, rejection: Exception) -> Plain:
        """Return a rejection as plain values; raise any other exception again, as a defect."""
        for number, encoding in enumerate(self._rejections):
            if isinstance(rejection, encoding.type):
                return number, encoding.encode(rejection)
        raise rejection

    def decode_rejection(self, payload: Plain) -> Exception:
        """Return the rejection that was encoded."""
        number, encoded = payload
        decoded: Exception = self._rejections[number].decode(encoded)
        return decoded
