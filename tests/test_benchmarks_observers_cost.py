"""The cost of observers is measured by turns of servers in one process, and said as the median of ratios."""

import asyncio

from benchmarks.observers_cost import Turn, measure, table, time_calls_when_off


def test_all_servers_take_turns() -> None:
    (turn,) = asyncio.run(measure("insert", 1, 2))
    assert min(turn) > 0


def test_calls_that_are_off_are_timed() -> None:
    assert time_calls_when_off("point GET") > 0
    assert time_calls_when_off("insert") > 0


def test_the_median_of_the_turns_counts() -> None:
    found = [Turn(10.0, 2.0, 1.5), Turn(20.0, 1.0, 0.5), Turn(10.0, 1.1, 1.0)]
    assert table({"point GET": (0.1, found)})[2:] == [
        "| point GET | off | 10.0 | 1.010 of none | 1.01 |",
        "| point GET | meter | 11.0 | 1.100 (1.000–2.000) | 1.05 |",
        "| point GET | recorder | 10.0 | 1.000 (0.500–1.500) | 1.05 |",
    ]
