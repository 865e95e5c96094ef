"""What is known of a name: the blob and its snapshots, and what the request in flight would make of them.

In an account that keeps what was overwritten or deleted, all such states are known, too. They are compared once the
blob was undeleted, as only then each of them can be read.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from random import Random
from typing import NamedTuple

Piece = tuple[int, int]
"""The number and the length of some bytes, which follow from them."""


class Content(NamedTuple):
    """The content of a blob."""

    pieces: tuple[Piece, ...]
    appends: bool = False
    """Whether it is an append blob."""
    by_blocks: bool = False
    """Whether each piece is a block, whose id follows from its number."""

    @property
    def kind(self) -> str:
        """The type of the blob."""
        return "AppendBlob" if self.appends else "BlockBlob"

    def read(self) -> bytes:
        """Return the bytes."""
        return b"".join(bytes_of(*piece) for piece in self.pieces)


class PageWrite(NamedTuple):
    """A change of a page blob."""

    at: int
    piece: Piece
    """What is written; the number 0 clears so many bytes."""
    resizes: bool = False
    """Whether `at` is the new size instead."""


class Pages(NamedTuple):
    """The content of a page blob."""

    size: int
    """When it was created."""
    writes: tuple[PageWrite, ...] = ()

    @property
    def kind(self) -> str:
        """The type of the blob."""
        return "PageBlob"

    def read(self) -> bytes:
        """Return the bytes."""
        found = bytearray(self.size)
        for at, (number, length), resizes in self.writes:
            if resizes:
                found = found[:at] + bytes(max(0, at - len(found)))
            else:
                found[at : at + length] = bytes_of(number, length) if number else bytes(length)
        return bytes(found)

    @property
    def size_now(self) -> int:
        """The size after all writes."""
        return next((write.at for write in reversed(self.writes) if write.resizes), self.size)


class Stored(NamedTuple):
    """What a read finds."""

    kind: str
    """The type of the blob: empty blobs differ in nothing else."""
    content: bytes


def stored(content: Content | Pages) -> Stored:
    """Return what a read of this content finds."""
    return Stored(content.kind, content.read())


@lru_cache(200)
def bytes_of(number: int, length: int) -> bytes:
    """Return the bytes of a piece: no others have them."""
    return Random(number).randbytes(length)


class Keeps(Enum):
    """What becomes of the blob that is overwritten or deleted."""

    NOTHING = auto()
    DELETED = auto()
    """It is kept as a deleted snapshot or a deleted blob."""
    VERSIONS = auto()
    """It is kept as a version. A version that is deleted is kept, too."""


class Past(NamedTuple):
    """A version, or a snapshot, that is kept."""

    content: Content | Pages
    deleted: bool = False
    """Whether it goes forever once its days are over."""


class Facts(NamedTuple):
    """A state of a name."""

    content: Content | Pages | None = None
    snapshots: Mapping[str, Content | Pages] = {}
    """By their times."""
    kept: tuple[Past, ...] = ()
    """The versions, or the deleted and other snapshots, of an account that keeps such."""
    restorable: bool = False
    """Whether the last one that is kept is the deleted blob, which becomes the blob again when it is undeleted."""

    def replaced(self, content: Content | Pages | None, keeps: Keeps) -> "Facts":
        """Return what there is after a blob took the place of this one, or none did and the snapshots went, too."""
        if keeps is Keeps.NOTHING:
            return Facts() if content is None else Facts(content, self.snapshots)
        goes = keeps is Keeps.DELETED
        kept = self.kept if self.content is None else (*self.kept, Past(self.content, goes))
        if content is None and goes:  # Its snapshots go with it.
            kept = tuple(Past(each.content, deleted=True) for each in kept)
        return Facts(content, {}, kept, restorable=content is None and goes)

    def undeleted(self) -> "Facts":
        """Return what there is after Undelete Blob."""
        kept = tuple(Past(each.content) for each in self.kept)
        return Facts(kept[-1].content, {}, kept[:-1]) if self.restorable else self._replace(kept=kept)

    def expired(self) -> "Facts":
        """Return what there is after the days of what is deleted are over."""
        return self._replace(kept=tuple(each for each in self.kept if not each.deleted), restorable=False)

    def has(self, blob: Stored | None, others: Mapping[str, Stored], keeps: Keeps) -> bool:
        """Tell whether this is what was read. `others` are the snapshots and versions by their times."""
        if (None if self.content is None else stored(self.content)) != blob:
            return False
        if keeps is Keeps.NOTHING:
            return {time: stored(each) for time, each in self.snapshots.items()} == others
        return Counter(stored(each.content) for each in self.kept) == Counter(others.values())

    @property
    def has_blocks(self) -> bool:
        """Whether a list may name the blocks of the blob."""
        return isinstance(self.content, Content) and self.content.by_blocks


@dataclass
class Change:
    """A change that a client sent."""

    sent: int
    before: Facts
    after: Facts
    snapshot: bool
    acknowledged: Facts | None = None
    came: int | None = None
    """The moment of the response; None: there was none."""


class Account:
    """A name, which one client alone writes.

    Args:
        name: of the blob.
        now: the present moment.
        keeps: what the store keeps of it.
    """

    def __init__(self, name: str, now: Callable[[], int] = lambda: 0, keeps: Keeps = Keeps.NOTHING) -> None:
        self.name = name
        self.keeps = keeps
        self.known = Facts()
        self.changes: list[Change] = []
        """Since the store was last compared with what is known."""
        self._now = now
        self.after: Facts | None = None
        """What the request in flight makes of it, if it does."""
        self.snapshot = False
        """Whether it takes a snapshot."""
        self.pending = False
        """Whether the request in flight may be done at any time before the next start."""

    def intend(self, after: Facts) -> None:
        """Note that a request is sent."""
        self.after = after
        self.changes.append(Change(self._now(), self.known, after, self.snapshot))

    def acknowledge(self, snapshot: str = "") -> None:
        """Note that it was done; `snapshot` is the time of the one that was taken."""
        assert self.after is not None
        self.known = self.after
        if snapshot:
            assert self.known.content is not None
            self.known = self.known._replace(snapshots={**self.known.snapshots, snapshot: self.known.content})
        self.after, self.snapshot = None, False
        self.changes[-1].acknowledged, self.changes[-1].came = self.known, self._now()

    def expire(self) -> None:
        """Note that the days of what is deleted are over. A request in flight was done before, or is not done."""
        self.known, self.after = self.known.expired(), None if self.after is None else self.after.expired()

    def go_back(self, moment: int) -> None:
        """Forget what was sent, and what was answered, after a moment since the last comparison."""
        for change in reversed(self.changes):
            if change.sent > moment:
                self.known, self.after, self.snapshot = change.before, None, False
            elif change.came is None or change.came > moment:
                self.known, self.after, self.snapshot = change.before, change.after, change.snapshot

    @property
    def answered(self) -> int:
        """How many changes there were up to the last one that was answered."""
        return max((index + 1 for index, change in enumerate(self.changes) if change.came is not None), default=0)

    def as_of(self, began: int, ended: int, changes: int) -> "list[Account]":
        """Return what a copy may know that was made between two moments, and has so many changes at the least."""
        found: list[Account] = []
        for index, change in enumerate(self.changes):
            if change.sent > ended:
                break
            if change.came is not None and (change.came <= began or index < changes):
                found = [Account(self.name)]
                found[0].known = change.acknowledged or change.after
            else:
                found.append(Account(self.name))
                found[-1].known, found[-1].after, found[-1].snapshot = change.before, change.after, change.snapshot
        if not found:
            found = [Account(self.name)]
            found[0].known = self.changes[0].before if self.changes else self.known
        return found

    def judge(self, blob: Stored | None, others: Mapping[str, Stored]) -> str:
        """Compare what was read; note what it says of the request in flight, or return what is wrong.

        A blob without blocks is preferred, as a read does not tell of blocks.

        Args:
            blob: what a read of it found; None: there is none.
            others: likewise its snapshots and versions, by their times. What was deleted and kept was restored.
        """
        found = [facts for facts in self._possible(others) if facts.has(blob, others, self.keeps)]
        if found:
            self.known, self.after = min(found, key=lambda facts: facts.has_blocks), None
            self.snapshot = self.pending = False
            return ""
        size = None if blob is None else (blob.kind, len(blob.content))
        sizes = {time: (each.kind, len(each.content)) for time, each in others.items()}
        return f"{self.name}: has {size} and the others {sizes}; known is {self.known}, after it {self.after}"

    def _possible(self, found: Mapping[str, Stored]) -> Iterator[Facts]:
        """Yield the states that may be there. The time of a snapshot in flight is not known."""
        yield self.known.undeleted()
        if self.after is None:
            return
        yield self.after.undeleted()
        if self.snapshot and self.known.content is not None:
            for time in found:
                yield self.known._replace(snapshots={**self.known.snapshots, time: self.known.content})
