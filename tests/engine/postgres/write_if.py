"""A commit of one row with a precondition, for tests."""

from lazulite.engine.commit import Commit, Decision, Expect, Precondition, Values


class RejectedError(Exception):
    """The row does not meet the precondition."""


class WriteIf:
    """Writes `value` to `row` if it is as expected, else rejects."""

    def __init__(self, row: str, value: bytes | None, expects: Expect, stamp: int | None = None) -> None:
        self.row = row
        self.new = value
        present = b"x" if stamp is None else b"%d" % stamp
        example = present if expects is Expect.PRESENT else None
        self.expected = Precondition(expects, stamp, example=example, deletes=value is None)
        self.asked = 0

    def commit(self) -> Commit[int]:
        return Commit([self.row], self._decide, lambda _: [self.expected])

    def _decide(self, current: Values, stamp: int) -> Decision[int]:
        self.asked += current[0] is not self.expected.example
        if self.expected.expects is (Expect.PRESENT if current[0] is None else Expect.ABSENT):
            raise RejectedError
        if self.expected.timestamp is not None and current[0] != b"%d" % self.expected.timestamp:
            raise RejectedError
        return Decision({self.row: self.value(stamp)}, stamp)

    def value(self, stamp: int) -> bytes | None:
        return b"%d" % stamp if self.new == b"stamp" else self.new
