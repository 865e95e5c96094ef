"""The cost of observers is measured by turns of servers in one process, and said as the median of ratios."""

import asyncio

from benchmarks.observers_cost import Times, measure, table


def test_all_servers_take_turns() -> None:
    (times,) = asyncio.run(measure("insert", 1, 64))
    assert min(times) > 0


def test_the_median_of_the_turns_counts() -> None:
    found = [Times(10.0, 10.0, 20.0, 15.0), Times(10.0, 20.0, 20.0, 10.0), Times(10.0, 10.0, 11.0, 10.0)]
    assert table({"point GET": found})[2:] == [
        "| point GET | off | 10.0 | without calls | 1.000 (1.000–2.000) | 1.01 |",
        "| point GET | meter | 20.0 | off | 1.100 (1.000–2.000) | 1.05 |",
        "| point GET | recorder | 10.0 | off | 1.000 (0.500–1.500) | 1.05 |",
    ]
