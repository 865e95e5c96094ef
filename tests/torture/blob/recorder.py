"""What was done to a blob and seen of it. An ETag stands for one write, whatever happens in between."""

from random import Random

from tests.torture.linearizability.checker import check

from .model import Event, Kind, State

BLOBS = 3
UNANSWERED_MAX = 6
"""After so many changes without a response a blob is only read: each more may double the orders, too."""
RUNNING_MAX = 5
"""So many operations run at once on a blob, or fewer: each more may double the orders to be tried."""


class Recorder:
    """One blob: its history since the last verdict, and the states that it may have been in before.

    Args:
        name: of the blob.
        kind: of the blob.
    """

    def __init__(self, name: str, kind: Kind = Kind.BLOCK) -> None:
        self.name = name
        self.kind = kind
        self.running = 0
        """How many operations on it are under way."""
        self.history: list[Event] = []
        self.unanswered = 0
        """How many changes of the history have no response."""
        self.blocks: list[int] = []
        """Those that were put last."""
        self.writer: int | None = None
        """The last write that was seen, if the blob is there and a response had its ETag."""
        self.lease: int | None = None
        """The id of the lease that was seen last, unless it was broken or released."""
        self.etags: dict[int, str] = {}
        """Of each write that was answered with one."""
        self.problems: list[str] = []
        self._writers: dict[str, int] = {}
        self._states = frozenset({State()})

    def see(self, writer: int, etag: str) -> None:
        """Note the ETag that a write was answered with."""
        self.writer = writer
        before, owner = self.etags.setdefault(writer, etag), self._writers.setdefault(etag, writer)
        if (before, owner) != (etag, writer):
            self.problems.append(
                f"{self.name}: write {writer} has ETag {etag}; before, it had {before}, and write {owner} had that"
            )

    def writer_of(self, etag: str) -> int | None:
        """Return the write that was answered with an ETag; None: none was so far."""
        return self._writers.get(etag)

    def judge(self) -> list[str]:
        """Check the history, of which nothing is still running, and begin a new one; return what is wrong."""
        verdict = check((state.later() for state in self._states), self.history)
        problems, self.problems = self.problems, []
        if verdict.culprit is not None:
            some = "; ".join(str(state) for state in list(verdict.before)[:3])
            problems.append(f"{self.name}: no order explains {self.history[verdict.culprit]}; before it, one of {some}")
        self._states, self.history, self.unanswered = verdict.states, [], 0
        return problems


class Recorders:
    """A few blobs of different ages, one of each kind."""

    def __init__(self) -> None:
        self.begun = 0
        self._recorders: list[Recorder] = []
        self.renew(BLOBS)

    def choose(self, random: Random) -> Recorder:
        """Return any blob that is not too busy."""
        return random.choice([each for each in self._recorders if each.running < RUNNING_MAX])

    def judge(self) -> list[str]:
        """Check what was recorded since the last time; return what is wrong."""
        return [problem for recorder in self._recorders for problem in recorder.judge()]

    def renew(self, number: int) -> None:
        """Put new blobs in the place of the oldest ones."""
        self._recorders = self._recorders[number:]
        while len(self._recorders) < BLOBS:
            self.begun += 1
            self._recorders.append(Recorder(f"blob{self.begun}", list(Kind)[self.begun % len(Kind)]))
