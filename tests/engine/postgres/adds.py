"""A commit that must see its row."""

from lazulite.engine.commit import ABSENT, Commit, Decision, Expect, Precondition, Values


class RejectedError(Exception):
    """The row has the word."""


class Adds:
    """Adds a word to a row's; each value begins with its stamp. Rejects a row that has the word."""

    def __init__(self, word: bytes, row: str = "r") -> None:
        self.word = word
        self.row = row

    def commit(self) -> Commit[int]:
        return Commit([self.row], self._decide, self._expected)

    def _decide(self, current: Values, stamp: int) -> Decision[int]:
        words = (current[0] or b"").split()[1:]
        if self.word in words:
            raise RejectedError
        return Decision({self.row: b" ".join([b"%d" % stamp, *words, self.word])}, stamp)

    def _expected(self, current: Values | None) -> list[Precondition | None]:
        if current is None:
            return [None]
        value = current[0]
        if value is None:
            return [ABSENT]
        stamp, *words = value.split()
        return [None if self.word in words else Precondition(Expect.PRESENT, int(stamp), example=value)]
