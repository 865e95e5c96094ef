"""Which partition an operation gets."""

import random
from pathlib import Path

from .partitions import PARTITIONS, RUNNING_MAX, Partitions


def test_a_partition_with_many_unanswered_writes_gets_no_more(tmp_path: Path) -> None:
    """Or its verdict would take hours: each such write may double the orders to be tried."""
    partitions, dice = Partitions(tmp_path), random.Random(1)
    first, *others = partitions
    first.unanswered, first.running = RUNNING_MAX - 1, 1
    assert all(partitions.choose(dice) is not first for _ in range(100))
    for each in others:
        each.unanswered = RUNNING_MAX
    assert partitions.choose(dice) not in {first, *others}
    assert partitions.begun == PARTITIONS + 1
    partitions.judge()
    assert first.unanswered == 0
