"""What is known of a name: the blob and its snapshots, and what the request in flight would make of them."""

from collections.abc import Iterator, Mapping
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

    def read(self) -> bytes:
        """Return the bytes."""
        return b"".join(bytes_of(*piece) for piece in self.pieces)


@lru_cache(200)
def bytes_of(number: int, length: int) -> bytes:
    """Return the bytes of a piece: no others have them."""
    return Random(number).randbytes(length)


class Facts(NamedTuple):
    """A state of a name."""

    content: Content | None = None
    snapshots: Mapping[str, Content] = {}
    """By their times."""


class Account:
    """A name, which one client alone writes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = Facts()
        self.after: Facts | None = None
        """What the request in flight makes of it, if it does."""
        self.snapshot = False
        """Whether it takes a snapshot."""

    def intend(self, after: Facts) -> None:
        """Note that a request is sent."""
        self.after = after

    def acknowledge(self, snapshot: str = "") -> None:
        """Note that it was done; `snapshot` is the time of the one that was taken."""
        assert self.after is not None
        self.known = self.after
        if snapshot:
            assert self.known.content is not None
            self.known = self.known._replace(snapshots={**self.known.snapshots, snapshot: self.known.content})
        self.after, self.snapshot = None, False

    def judge(self, blob: bytes | None, snapshots: Mapping[str, bytes]) -> str:
        """Compare what was read; note what it says of the request in flight, or return what is wrong."""
        for facts in self._possible(snapshots):
            content = None if facts.content is None else facts.content.read()
            if (content, {time: each.read() for time, each in facts.snapshots.items()}) == (blob, snapshots):
                self.known, self.after, self.snapshot = facts, None, False
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
