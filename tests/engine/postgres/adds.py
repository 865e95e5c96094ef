"""A decision that must see its row."""

from collections.abc import Mapping, Sequence

from lazulite.engine.precondition import ConditionalWrite, Expect, Precondition


class RejectedError(Exception):
    """The row has the word."""


class Adds(ConditionalWrite):
    """Adds a word to a row's; each value begins with its stamp. Rejects a row that has the word."""

    def __init__(self, word: bytes, row: str = "r") -> None:
        self.word = word
        self.row = row

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        seen = self.conditional_on(current[0])
        if seen is None:
            raise RejectedError
        return {self.row: seen.value(stamp)}

    def precondition(self) -> None:
        return None

    def value(self, stamp: int) -> bytes:
        raise AssertionError("it has to see the row")

    def conditional_on(self, current: bytes | None) -> "Added | None":
        if current is None:
            return Added(Precondition(Expect.ABSENT), [self.word])
        stamp, *words = current.split()
        return (
            None
            if self.word in words
            else Added(Precondition(Expect.PRESENT, timestamp=int(stamp)), [*words, self.word])
        )


class Added(ConditionalWrite):
    """What comes of it."""

    def __init__(self, expected: Precondition, words: Sequence[bytes]) -> None:
        self.expected = expected
        self.words = words

    def precondition(self) -> Precondition:
        return self.expected

    def value(self, stamp: int) -> bytes:
        return b" ".join([b"%d" % stamp, *self.words])
