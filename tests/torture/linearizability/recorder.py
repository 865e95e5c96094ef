"""What was done to a partition and seen of it, and what of that is contradictory by itself.

An ETag stands for one content of one row, whatever happens in between; a content's writer is known by its number, so
both are noted here, and the history needs numbers only.
"""

from collections.abc import Iterable
from typing import NamedTuple

from .checker import Verdict, check
from .model import EMPTY, ROWS, Get, Partition, Query, Write
from .wire import Seen


class Known(NamedTuple):
    """What a client can put into If-Match."""

    etag: str
    writer: int


class Recorder:
    """One partition: its history since the last verdict, and the states that it may have been in before."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = 0
        """How many operations on it are under way."""
        self.unanswered = 0
        """How many writes of the history had no answer: they may take place at any time."""
        self.known: list[Known | None] = [None] * ROWS
        """Of each row, what was seen of it last."""
        self.history: list[Get | Query | Write] = []
        self.problems: list[str] = []
        self._states: frozenset[Partition] = frozenset({EMPTY})
        self._etags: dict[tuple[int, int], str] = {}
        self._writers: dict[tuple[int, str], int] = {}

    def see(self, row: int, seen: Seen | None) -> None:
        """Note how a row was read."""
        if seen is None:
            self.known[row] = None
        else:
            self.learn(row, seen.etag, seen.entity.writer)

    def learn(self, row: int, etag: str, writer: int) -> None:
        """Note the ETag of what a write left in a row."""
        self.known[row] = Known(etag, writer)
        before = self._etags.setdefault((row, writer), etag)
        owner = self._writers.setdefault((row, etag), writer)
        if before != etag:
            self.problems.append(f"{self.name}/{row}: write {writer} had ETag {before}, and now has {etag}")
        if owner != writer:
            self.problems.append(f"{self.name}/{row}: the writes {owner} and {writer} have the same ETag {etag}")

    def judge(self) -> Verdict[Partition]:
        """Check the history, of which nothing is still running, and begin a new one."""
        verdict = check(self._states, self.history)
        if verdict.culprit is not None:
            self.problems.append(_story(self.name, verdict, self.history[verdict.culprit]))
        self._states = verdict.states
        self.history, self.unanswered = [], 0
        return verdict


def _story(name: str, verdict: Verdict[Partition], culprit: Get | Query | Write) -> str:
    return f"{name}: no order explains {culprit}; before it, one of {_some(verdict.before)}"


def _some(states: Iterable[Partition]) -> str:
    texts = [str(state) for state in states]
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} others" if len(texts) > 3 else "")
