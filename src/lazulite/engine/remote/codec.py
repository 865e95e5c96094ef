"""What two processes of one program send each other as plain values: commits and rejections."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from lazulite.engine.commit import COMMIT_PROCEDURES, CommitProcedure, Plain
from lazulite.engine.contract import EngineError
from lazulite.engine.remote.channel import Message
from lazulite.engine.remote.messages import ENGINE_ERRORS, FAILED, REJECTED

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

    def encode_failure(self, call: int, failure: Exception, report: Callable[[str], None]) -> Message:
        """Return the message that a call failed.

        Args:
            call: its number.
            failure: an error of an engine, a rejection, or a defect of this program, which fails this call only.
            report: takes a line for people about a defect.
        """
        for kind, error in enumerate(ENGINE_ERRORS):
            if isinstance(failure, error):
                return FAILED, call, kind, str(failure)
        try:
            return REJECTED, call, self.encode_rejection(failure)
        except Exception as defect:  # noqa: BLE001 - see above
            report(f"a call of a worker failed: {type(defect).__name__}")
            return FAILED, call, ENGINE_ERRORS.index(EngineError), type(defect).__name__

    def decode_failure(self, message: Message) -> Exception:
        """Return the exception that a message of `encode_failure` tells."""
        if message[0] == REJECTED:
            return self.decode_rejection(message[2])
        return ENGINE_ERRORS[message[2]](message[3])
