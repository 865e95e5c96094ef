"""Blocks: the rows of an upload, and those of a list.

A row of an upload is one block. A row of a list has the blocks of a stretch of the blob, in their order. A small block
has its bytes in the row.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple


class Block(NamedTuple):
    """One block of a block blob or append blob."""

    id: str
    """Base64; "" in an append blob."""
    length: int
    content: int | None = None
    """The number of its content; None: `inline` has its bytes."""
    inline: bytes = b""


class BlockRange(NamedTuple):
    """Consecutive blocks of a list."""

    start: int
    """The offset of the first one."""
    blocks: Sequence[Block]

    @property
    def end(self) -> int:
        """The offset behind the last one."""
        return self.start + sum(block.length for block in self.blocks)


def write_blocks(start: int, blocks: Sequence[Block]) -> bytes:
    """Return the stored form of blocks whose first one begins at an offset; of an upload, at 0."""
    head = [start, *([block.id, block.length, block.content] for block in blocks)]
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + b"".join(block.inline for block in blocks)


_read_json = json.JSONDecoder().raw_decode
"""Reads a line without white space at its beginning, as `write_blocks` makes it."""


class StoredBlock(NamedTuple):
    """A block as its row has it, without its bytes."""

    id: str
    length: int
    content: int | None
    at: int
    """The offset of its bytes in the value of the row, if it has no content."""


def read_heads(value: bytes) -> tuple[int, list[StoredBlock]]:
    """Return the offset of the first block of a row, and the blocks without their bytes. Raises as `read_blocks`."""
    at = value.index(b"\n") + 1
    (start, *heads), _ = _read_json(value[:at].decode())
    found = []
    for id_, length, content in heads:
        found.append(StoredBlock(id_, length, content, at))
        if content is None:
            at += length
    return start, found


def read_blocks(value: bytes) -> BlockRange:
    """Read the stored form.

    Raises:
        ValueError, TypeError: it is malformed.
    """
    start, heads = read_heads(value)
    return BlockRange(
        start,
        [
            Block(id_, length, content, b"" if content is not None else value[at : at + length])
            for id_, length, content, at in heads
        ],
    )
