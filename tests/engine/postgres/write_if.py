"""A conditional write for tests."""

from collections.abc import Mapping, Sequence

from lazulite.engine.precondition import ConditionalWrite, Expect, Precondition


class RejectedError(Exception):
    """The row does not meet the precondition."""


class WriteIf(ConditionalWrite):
    """Writes `value` to `row` if it is as expected, else rejects."""

    def __init__(self, row: str, value: bytes | None, expects: Expect, stamp: int | None = None) -> None:
        self.row = row
        self.new = value
        self.expected = Precondition(expects, value is None, stamp)
        self.asked = 0

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        self.asked += 1
        absent = current[0] is None
        if self.expected.expects is (Expect.PRESENT if absent else Expect.ABSENT):
            raise RejectedError
        if self.expected.timestamp is not None and current[0] != b"%d" % self.expected.timestamp:
            raise RejectedError
        return {self.row: self.value(stamp)}

    def precondition(self) -> Precondition | None:
        return self.expected

    def value(self, stamp: int) -> bytes | None:
        return b"%d" % stamp if self.new == b"stamp" else self.new
