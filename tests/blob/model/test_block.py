"""Stored blocks are read as they were written."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.block import Block, BlockRange, read_blocks, write_blocks

_INLINE = st.binary(max_size=30).map(lambda data: Block("", len(data), None, data))
_CONTENT = st.builds(Block, st.text(max_size=10), st.integers(0, 2**40), st.integers(0, 2**62), st.just(b""))


@given(st.integers(0, 2**50), st.lists(_INLINE | _CONTENT, max_size=10))
def test_stored_blocks_are_read_as_they_were(start: int, blocks: list[Block]) -> None:
    assert read_blocks(write_blocks(start, blocks)) == BlockRange(start, blocks)


def test_a_stretch_ends_behind_its_last_block() -> None:
    assert BlockRange(100, [Block("a", 5), Block("b", 7)]).end == 112
