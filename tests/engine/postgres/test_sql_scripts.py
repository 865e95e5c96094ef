"""Scripts: whatever is written, their text is words of ours, digits and hexadecimal digits."""

import re

from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.commit import Expect, Precondition
from lazulite.engine.postgres.sql_scripts import (
    PartitionAddress,
    RowChange,
    RowPrefix,
    RowWrite,
    apply_script,
    write_script,
)

_LITERAL = re.compile(r"E'\\\\x(?:[0-9a-f]{2})*'|'{[0-9,]*}'|'{(?:(?:\"(?:[0-9a-f]{2})*\"|NULL),?)*}'")
_PLAIN = re.compile(r"[A-Za-z0-9_ ,;()\n]*")

stamps = st.integers(0, 2**63 - 1)
places = st.builds(PartitionAddress, stamps, st.binary(), st.none() | st.binary())
changes = st.builds(RowChange, st.binary(), st.none() | st.binary(), stamps, st.none() | st.binary())
many = st.lists(changes, max_size=40)
"""Few rows are written by a statement each, and many by one."""


def is_ours(script: str) -> bool:
    return bool(_PLAIN.fullmatch(_LITERAL.sub("", script)))


beginnings = st.builds(RowPrefix, st.binary(), st.binary())


@given(places, stamps, stamps, many, st.lists(beginnings))
def test_no_text_of_a_caller_stands_in_a_batch(
    place: PartitionAddress, before: int, after: int, rows: list[RowChange], expected: list[RowPrefix]
) -> None:
    assert is_ours(apply_script(place, before, after, rows, expected))


writes = st.builds(
    RowWrite, places, changes, st.builds(Precondition, st.sampled_from(Expect), st.booleans(), st.none() | stamps)
)


def _of_one_partition(place: PartitionAddress, rows: list[RowChange]) -> list[list[RowWrite]]:
    return [[RowWrite(place, row, Precondition(Expect.ABSENT)) for row in rows]]


@given(st.lists(st.lists(writes, min_size=1)) | st.builds(_of_one_partition, places, many), stamps)
def test_no_text_of_a_caller_stands_in_writes_of_rows(shards: list[list[RowWrite]], base: int) -> None:
    script = write_script(shards, base)
    assert is_ours(script)
    assert script.count("'") == 2 * len(_LITERAL.findall(script))
