"""The cost of logs is measured by turns of one server, and said as the share of its rate that is lost."""

from benchmarks.analytics_cost import Turn, measure, table


def test_measures_with_and_without_logs() -> None:
    ((name, (turn,)),) = measure(0.2, 1, "insert").items()
    assert name == "durable insert"
    assert turn.off > 0
    assert turn.on > 0


def test_the_median_of_the_turns_counts() -> None:
    found = [Turn(10.0, 20.0), Turn(10.0, 40.0), Turn(10.0, 12.5)]
    assert table({"point GET": found})[2:] == ["| point GET | 10.0 | 20.0 | 50% (20%\u201375%) | 35% |"]
