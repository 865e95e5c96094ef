from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.engine.ordinal import ordinal
from lazulite.table.indexes.definition import Index, Scope, State
from lazulite.table.indexes.encoding import encode_value
from lazulite.table.indexes.planner import RANGES_MAX, Access, Reason, access_by, plan_indexes
from lazulite.table.model.edm import Value
from lazulite.table.query.filter import Node, parse
from tests.table.query.filter.trees import Row, evaluate, rows, trees

BY_A = Index("by_a", ("A",), Scope.TABLE, 2001, State.READY)
BY_AB = Index("by_ab", ("A", "B"), Scope.TABLE, 2002, State.READY)
BY_B = Index("by_b", ("B",), Scope.TABLE, 2003, State.READY)
IN_PARTITION = Index("in_partition", ("A",), Scope.PARTITION, 2004, State.READY)

indexes = st.sampled_from([BY_A, BY_AB, BY_B, IN_PARTITION])


def values(row: Row, index: Index) -> str | None:
    found: Sequence[Value | None] = [row.get(name) for name in index.on]
    return None if found[0] is None else "".join(map(encode_value, found))


def names(access: Access, encoded: str | None) -> bool:
    if encoded is None:
        return False
    return any(ordinal(each.lower) <= ordinal(encoded) < ordinal(each.upper) for each in access.ranges)


def access_of(text: str, index: Index) -> Access:
    found = access_by(parse(text), index)
    assert isinstance(found, Access)
    return found


@settings(max_examples=500)
@given(trees, rows, indexes)
def test_a_plan_misses_no_match(tree: Node, row: Row, index: Index) -> None:
    access = access_by(tree, index)
    if isinstance(access, Access) and evaluate(tree, row) is True:
        assert names(access, values(row, index))


@settings(max_examples=300)
@given(trees, st.lists(indexes, unique=True))
def test_ranges_are_ascending_and_disjoint(tree: Node, declared: list[Index]) -> None:
    plan = plan_indexes(tree, declared)
    for access in [] if plan is None else plan.accesses:
        ends = [ordinal(end) for each in access.ranges for end in (each.lower, each.upper)]
        assert ends == sorted(ends)
        assert all(each.lower < each.upper for each in access.ranges)


@pytest.mark.parametrize(
    ("text", "count", "ordered"),
    [
        ("A eq 'x'", 1, True),
        ("A eq 5", 1, True),
        ("A", 1, True),
        ("A eq 'x' or A eq 'y'", 2, True),
        ("A ge 'x' and A lt 'y'", 1, False),
        ("A ge 5 and B eq 1", 1, False),
        ("(A eq 1 or A eq 2) and A gt 1", 1, True),
        ("A eq 1 and A eq 2", 0, True),
        ("A eq 1 and A eq '1'", 0, True),
        ("A lt ''", 4, False),
        ("not (B eq 1) and A eq 1", 1, True),
        ("A eq 1 and B ne 1", 1, True),
        ("(A eq 1 and B eq 2) or (A eq 3 and B eq 4)", 2, True),
    ],
)
def test_what_an_index_of_one_property_reads(text: str, count: int, ordered: bool) -> None:
    access = access_of(text, BY_A)
    assert (len(access.ranges), access.is_ordered) == (count, ordered)


@pytest.mark.parametrize(
    ("text", "count", "ordered", "depth"),
    [
        ("A eq 'x'", 1, False, 1),
        ("A eq 'x' and B eq 5", 1, True, 2),
        ("A eq 'x' and B gt 5", 1, False, 2),
        ("(A eq 'x' or A eq 'y') and (B eq 5 or B eq 6)", 4, True, 2),
        ("A gt 'x' and B eq 5", 1, False, 1),
    ],
)
def test_what_an_index_of_two_properties_reads(text: str, count: int, ordered: bool, depth: int) -> None:
    access = access_of(text, BY_AB)
    assert (len(access.ranges), access.is_ordered, access.depth) == (count, ordered, depth)


@pytest.mark.parametrize(
    ("text", "index", "reason"),
    [
        ("A ne 1", BY_A, Reason.NO_PROPERTY),
        ("not (A eq 1)", BY_A, Reason.NO_PROPERTY),
        ("A eq 1 or B eq 1", BY_A, Reason.NO_PROPERTY),
        ("B eq 1", BY_A, Reason.NO_PROPERTY),
        ("B eq 1", BY_AB, Reason.NO_PROPERTY),
        ("A eq 1", IN_PARTITION, Reason.NO_PARTITION),
        ("PartitionKey ge 'p' and A eq 1", IN_PARTITION, Reason.NO_PARTITION),
        ("PartitionKey eq 'p' and RowKey eq 'r' and A eq 1", BY_A, Reason.POINT),
        ("A eq 1", Index("x", ("A",), Scope.TABLE, 1, State.BUILDING), Reason.NOT_READY),
        (" or ".join(f"A eq {2 * number}" for number in range(RANGES_MAX + 1)), BY_A, Reason.RANGES),
    ],
)
def test_why_an_index_does_not_serve(text: str, index: Index, reason: Reason) -> None:
    assert access_by(parse(text), index) is reason


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("A eq 1", ["by_a"]),
        ("A eq 1 and B eq 1", ["by_ab"]),
        ("A gt 1 and B eq 1", ["by_b"]),
        ("A gt 1", ["by_a"]),
        ("C eq 1", None),
    ],
)
def test_the_best_index_is_chosen(text: str, chosen: list[str] | None) -> None:
    plan = plan_indexes(parse(text), [BY_A, BY_AB, BY_B])
    assert (None if plan is None else [access.index.name for access in plan.accesses]) == chosen


def test_two_equalities_are_intersected() -> None:
    plan = plan_indexes(parse("A eq 1 and B eq 1"), [BY_A, BY_B])
    assert plan is not None
    assert [access.index.name for access in plan.accesses] == ["by_a", "by_b"]


def test_a_partition_of_the_filter_serves_an_index_of_partitions() -> None:
    access = access_of("PartitionKey eq 'p' and A eq 1", IN_PARTITION)
    assert access.is_ordered
