"""A decision that must see its row."""

from collections.abc import Mapping, Sequence

from lazulite.engine.precondition import Expect, Foreseeing, Foreseen


class RefusedError(Exception):
    """The row has the word."""


class Adds(Foreseeing):
    """Adds a word to a row's; each value begins with its stamp. Refuses a row that has the word."""

    def __init__(self, word: bytes, row: str = "r") -> None:
        self.word = word
        self.row = row

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        seen = self.seen(current[0])
        if seen is None:
            raise RefusedError
        return {self.row: seen.value(stamp)}

    def foresee(self) -> None:
        return None

    def value(self, stamp: int) -> bytes:
        raise AssertionError("it has to see the row")

    def seen(self, current: bytes | None) -> "Added | None":
        if current is None:
            return Added(Foreseen(Expect.ABSENT), [self.word])
        stamp, *words = current.split()
        return None if self.word in words else Added(Foreseen(Expect.PRESENT, stamp=int(stamp)), [*words, self.word])


class Added(Foreseeing):
    """What comes of it."""

    def __init__(self, foreseen: Foreseen, words: Sequence[bytes]) -> None:
        self.foreseen = foreseen
        self.words = words

    def foresee(self) -> Foreseen:
        return self.foreseen

    def value(self, stamp: int) -> bytes:
        return b" ".join([b"%d" % stamp, *self.words])
