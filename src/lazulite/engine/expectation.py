"""Expecting commits: commits of several rows that tell which values they expect.

An engine whose rows are a round trip away can decide such a commit without reading its rows: with the value of one row
that it has kept since the partition's last commit, and with the expected beginnings. It sends the outcome together with
what it relied on. If that does not hold, the engine reads the rows and calls the commit function with their values. An
engine that reads rows without a round trip treats an expecting commit as any `CommitFunction`.
"""

from collections.abc import Mapping


class ExpectingCommit:
    """A `CommitFunction` of a commit of several rows.

    Invariant: its decision depends on the value of the kept row, and on whether each row of `beginnings` begins with
    the expected bytes. It depends on no other value.

    Args:
        kept: a row that most commits of the partition name.
        beginnings: by row, the first bytes that its value is expected to have.
    """

    __slots__ = ("beginnings", "kept")

    def __init__(self, kept: str, beginnings: Mapping[str, bytes]) -> None:
        self.kept = kept
        self.beginnings = beginnings
