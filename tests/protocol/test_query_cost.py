"""The cost of a query goes through `Server-Timing` and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.query_cost import QueryCost

COUNTS = st.integers(0, 10**9)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9-]{2,62}", fullmatch=True), max_size=3).map(tuple)


@given(st.sampled_from(["point", "row range", "table scan"]), COUNTS, COUNTS, st.integers(0, 10**7), NAMES, COUNTS)
def test_it_is_read_as_it_is_written(
    name: str, scanned: int, returned: int, us: int, indexes: tuple[str, ...], entries: int
) -> None:
    cost = QueryCost(name, scanned, returned, us / 1000, indexes, entries if indexes else 0)
    assert QueryCost.of(cost.field) == cost


def test_the_gate_may_stand_beside_it() -> None:
    point = 'query;desc="point";dur=0.004, scanned;desc="1", returned;desc="0"'
    assert QueryCost.of(f'gate;desc="account";dur=10.000, {point}') == QueryCost("point", 1, 0, 0.004)


@pytest.mark.parametrize(
    "text", ["", 'gate;desc="move"', 'query;desc="point";dur=1.2.3, scanned;desc="1", returned;desc="0"', "query, x"]
)
def test_other_values_tell_of_no_query(text: str) -> None:
    assert QueryCost.of(text) is None


def test_a_line_for_people() -> None:
    cost = QueryCost("partition scan", 1204, 12, 8.04)
    assert cost.line == "partition scan · 1,204 rows read · 12 returned · 8.0 ms · no index"
    assert cost.advice == "Compare RowKey, too: then only a range of the partition is read."
    cost = QueryCost("table scan", 1, 1, 0.5, ("by-color", "by-size"), 3)
    assert cost.line == "table scan · 1 row read · 1 returned · 0.5 ms · index by-color and by-size"
    assert cost.advice == ""
    assert QueryCost("point", 1, 1, 0.1).advice == ""
