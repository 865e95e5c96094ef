"""The accounts of a blob's partition: which contents and lists its rows share, and which are garbage.

The ledger is the row `a`. A partition without one has shared nothing and has no garbage.

Invariants: a content or list that a row of the partition refers to is not garbage. The commit that takes the last
reference away makes it garbage; no later commit refers to it again. Garbage leaves the ledger after it was deleted.
Numbers of lists and uploads are drawn at random, and none is used again, not even after the partition was empty.
A list that takes several commits to write is *pending* until the commit that makes it the blob's.
"""

import json
from collections.abc import Mapping
from random import Random
from typing import NamedTuple, Self

NUMBER_BITS = 60
UPLOAD_DAYS = 7
"""Whole days for which uncommitted blocks are kept after the last one was put."""
PENDING_DAYS = 1
"""Whole days for which a list may be pending."""


class Uncommitted(NamedTuple):
    """The blocks of the current upload."""

    blocks: int = 0
    """Their number."""
    replaced: int = 0
    """How often one of them took the place of another."""
    id: str = ""
    """The id of one of them; all have the length of this one."""
    day: int = 0
    """The day of the last Put Block, in days since 1601."""


NO_BLOCKS = Uncommitted()
_NO_NUMBERS: Mapping[str, int] = {}


class Ledger(NamedTuple):
    """The accounts of one partition."""

    upload: int = 0
    """The number of the current upload, to which uncommitted blocks belong; 0: there is none."""
    shared: Mapping[str, int] = _NO_NUMBERS
    """The number of rows that refer to a content (`c7`) or a list (`x7`), where it is more than one."""
    snapshots: int = 0
    """The snapshots that are not deleted."""
    garbage: tuple[str, ...] = ()
    """Contents (`c7`), lists (`x7`) and uploads (`w7`) to be deleted."""
    uncommitted: Uncommitted = NO_BLOCKS
    pending: Mapping[str, int] = _NO_NUMBERS
    """Lists (`x7`) that are being written, with the day when each was begun."""
    deleted: bool = False
    """Whether the current blob is deleted but kept. So a partition that begins with a blob shows it, whatever the blob
    is: a list of prefixes needs no values."""

    def share(self, reference: str) -> Self:
        """Return the ledger after one more row refers to a content or list; "" changes nothing."""
        if not reference:
            return self
        return self._replace(shared={**self.shared, reference: self.shared.get(reference, 1) + 1})

    def release(self, reference: str) -> Self:
        """Return the ledger after a row refers to a content or list no more; "" changes nothing."""
        if not reference:
            return self
        left = self.shared.get(reference, 1) - 1
        if left == 0:
            return self.discard(reference)
        shared = {**self.shared, reference: left}
        if left == 1:
            del shared[reference]
        return self._replace(shared=shared)

    def discard(self, reference: str) -> Self:
        """Return the ledger after a content or list, to which no row refers, became garbage."""
        return self._replace(garbage=(*self.garbage, reference))

    def end_upload(self) -> Self:
        """Return the ledger after the uncommitted blocks became invalid."""
        if not self.upload:
            return self
        return self.discard(f"w{self.upload}")._replace(upload=0, uncommitted=NO_BLOCKS)

    def put_block(self, upload: int, id_: str, day: int, *, is_new: bool) -> Self:
        """Return the ledger after a block was put.

        Args:
            upload: the current upload, or a new one if there is none.
            id_: of the block.
            day: the present one, in days since 1601.
            is_new: whether the upload had no block of this id.
        """
        blocks, replaced, _, _ = self.uncommitted
        return self._replace(upload=upload, uncommitted=Uncommitted(blocks + is_new, replaced + (not is_new), id_, day))

    def begin_list(self, reference: str, day: int) -> Self:
        """Return the ledger before a list is written in several commits."""
        return self._replace(pending={**self.pending, reference: day})

    def end_list(self, reference: str) -> Self:
        """Return the ledger after a list was written or given up, whether it was pending or not."""
        if reference not in self.pending:
            return self
        return self._replace(pending={name: day for name, day in self.pending.items() if name != reference})

    def expire(self, day: int) -> Self:
        """Return the ledger on a day, after uploads and lists that were given up became garbage."""
        ledger = self
        if self.upload and self.uncommitted.day + UPLOAD_DAYS < day:
            ledger = ledger.end_upload()
        for reference, begun in self.pending.items():
            if begun + PENDING_DAYS < day:
                ledger = ledger.end_list(reference).discard(reference)
        return ledger

    def swept(self, deleted: tuple[str, ...]) -> Self:
        """Return the ledger without garbage that was deleted."""
        gone = set(deleted)
        return self._replace(garbage=tuple(each for each in self.garbage if each not in gone))

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        fields = [self.upload, self.shared, self.snapshots, self.garbage, self.uncommitted, self.pending]
        return _write_json([*fields, True] if self.deleted else fields).encode()


def read_ledger(value: bytes | None) -> Ledger:
    """Return a ledger from its row; None: the partition has none.

    Raises:
        ValueError, TypeError: it is malformed.
    """
    if value is None:
        return _FIRST
    upload, shared, snapshots, garbage, uncommitted, pending, *deleted = json.loads(value)
    return Ledger(upload, shared, snapshots, tuple(garbage), Uncommitted(*uncommitted), pending, deleted == [True])


_FIRST = Ledger()
_write_json = json.JSONEncoder(separators=(",", ":")).encode


def new_number(random: Random) -> int:
    """Return the number of a new list or upload."""
    return random.getrandbits(NUMBER_BITS) or 1
