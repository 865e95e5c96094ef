"""The processor time of primary and workers is measured for each workload, and compared by turns."""

from benchmarks.processes import ROOT
from benchmarks.worker_cpu import Cost, costs, table


def test_measures_a_workload_on_workers() -> None:
    found = costs(ROOT, 0.2, "point")
    assert found.keys() == {"point GET"}
    assert found["point GET"].workers > found["point GET"].primary >= 0


def test_the_median_of_the_turns_counts() -> None:
    turns = [{"page": Cost(primary, 2.0)} for primary in (5.0, 1.0, 3.0)]
    assert table({"this": turns, "other": turns[:1]})[2:] == [
        "| page | this | 3.0 | 2.0 |",
        "| page | other | 5.0 | 2.0 |",
    ]
