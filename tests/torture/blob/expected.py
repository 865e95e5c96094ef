"""What is known of a name: the blob and its snapshots, and what the request in flight would make of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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


@lru_cache(200)
def bytes_of(number: int, length: int) -> bytes:
    """Return the bytes of a piece: no others have them."""
    return Random(number).randbytes(length)


class Facts(NamedTuple):
    """A state of a name."""

    content: Content | Pages | None = None
    snapshots: Mapping[str, Content | Pages] = {}
    """By their times."""


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
    """

    def __init__(self, name: str, now: Callable[[], int] = lambda: 0) -> None:
        self.name = name
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

    def judge(self, blob: bytes | None, snapshots: Mapping[str, bytes]) -> str:
        """Compare what was read; note what it says of the request in flight, or return what is wrong."""
        for facts in self._possible(snapshots):
            content = None if facts.content is None else facts.content.read()
            if (content, {time: each.read() for time, each in facts.snapshots.items()}) == (blob, snapshots):
                self.known, self.after, self.snapshot, self.pending = facts, None, False, False
                return ""
        size = None if blob is None else len(blob)
        sizes = {time: len(each) for time, each in snapshots.items()}
        return f"{self.name}: has {size} bytes and the snapshots {sizes}; known is {self.known}, after it {self.after}"

    def _possible(self, found: Mapping[str, bytes]) -> Iterator[Facts]:
        """Yield the states that may be there. The time of a snapshot in flight is not known."""
        yield self.known
        if self.after is None:
            return
        yield self.after
        if self.snapshot and self.known.content is not None:
            for time in found:
                yield self.known._replace(snapshots={**self.known.snapshots, time: self.known.content})
