from collections.abc import Callable, Sequence
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.protocol.steps import finish
from lazulite.table.model import edm
from lazulite.table.query.filter import Comparison, Node, compile_predicate, parse, plan
from lazulite.table.query.filter import key_ranges as ranges_module
from lazulite.table.query.filter.ast import conjoin
from tests.table.query.filter.trees import KEY_TEXTS, Row, evaluate, key_comparisons, key_trees, operators, rows, trees


def key_ranges(node: Node) -> tuple[KeyRange, ...]:
    return finish(plan(node))[0]


def residual(node: Node) -> Node | None:
    return finish(plan(node))[1]


EVERYTHING = (KeyRange(("", ""), None),)


def read(name: str) -> Callable[[Row], edm.Value | None]:
    return lambda row: row.get(name)


def sort_key(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


def inside(ranges: Sequence[KeyRange], row: Row) -> bool:
    key = sort_key((str(row["PartitionKey"]), str(row["RowKey"])))
    return any(sort_key(lower) <= key and (upper is None or key < sort_key(upper)) for lower, upper in ranges)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("PartitionKey eq 'p' and RowKey eq 'r'", [KeyRange(("p", "r"), ("p", "r\0"))]),
        ("'r' eq RowKey and 'p' eq PartitionKey", [KeyRange(("p", "r"), ("p", "r\0"))]),
        ("PartitionKey eq '' and RowKey eq ''", [KeyRange(("", ""), ("", "\0"))]),
        ("PartitionKey eq 'p'", [KeyRange(("p", ""), ("p\0", ""))]),
        ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", [KeyRange(("p", "a"), ("p", "b"))]),
        ("PartitionKey eq 'p' and RowKey gt 'a' and RowKey le 'b'", [KeyRange(("p", "a\0"), ("p", "b\0"))]),
        ("PartitionKey eq 'p' and RowKey lt 'b'", [KeyRange(("p", ""), ("p", "b"))]),
        ("PartitionKey eq 'p' and 'b' le RowKey", [KeyRange(("p", "b"), ("p\0", ""))]),
        (
            "PartitionKey eq 'p' and RowKey ne 'r'",
            [KeyRange(("p", ""), ("p", "r")), KeyRange(("p", "r\0"), ("p\0", ""))],
        ),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", [KeyRange(("a", ""), ("b", ""))]),
        ("PartitionKey gt 'a' and PartitionKey le 'b'", [KeyRange(("a\0", ""), ("b\0", ""))]),
        ("PartitionKey ge 'a' and PartitionKey lt 'b' and RowKey eq 'r'", [KeyRange(("a", ""), ("b", ""))]),
        ("PartitionKey ge 'a' and PartitionKey le 'a' and RowKey eq 'r'", [KeyRange(("a", "r"), ("a", "r\0"))]),
        ("PartitionKey ge 'a'", [KeyRange(("a", ""), None)]),
        ("PartitionKey lt 'a'", [KeyRange(("", ""), ("a", ""))]),
        (
            "PartitionKey eq 'b' or PartitionKey eq 'a' or PartitionKey eq 'b'",
            [KeyRange(("a", ""), ("a\0", "")), KeyRange(("b", ""), ("b\0", ""))],
        ),
        (
            "PartitionKey eq 'p' and (RowKey eq 'b' or RowKey eq 'a' or RowKey eq 'a\0')",
            [KeyRange(("p", "a"), ("p", "a\0\0")), KeyRange(("p", "b"), ("p", "b\0"))],
        ),
        (
            "(PartitionKey eq 'p' and RowKey eq 'r') or (PartitionKey eq 'q' and RowKey gt 's')",
            [KeyRange(("p", "r"), ("p", "r\0")), KeyRange(("q", "s\0"), ("q\0", ""))],
        ),
        ("PartitionKey gt 'p' or (PartitionKey eq 'p' and RowKey gt 'r')", [KeyRange(("p", "r\0"), None)]),
        ("PartitionKey eq 'p' and A eq 1", [KeyRange(("p", ""), ("p\0", ""))]),
        ("PartitionKey eq 'p' and (RowKey eq 'r' or A eq 1)", [KeyRange(("p", ""), ("p\0", ""))]),
        ("PartitionKey eq 'p' or A eq 1", EVERYTHING),
        ("RowKey eq 'r'", EVERYTHING),
        ("A eq 1", EVERYTHING),
        ("not (A eq 1)", EVERYTHING),
        ("C", EVERYTHING),
        ("true", EVERYTHING),
        ("partitionkey eq 'p'", EVERYTHING),
        (
            "not (PartitionKey eq 'x')",
            [KeyRange(("", ""), ("x", "")), KeyRange(("x\0", ""), None)],
        ),
        ("not (PartitionKey lt 'a' or PartitionKey ge 'b')", [KeyRange(("a", ""), ("b", ""))]),
        ("not (PartitionKey ne 'p' or A eq 1)", [KeyRange(("p", ""), ("p\0", ""))]),
        ("not (PartitionKey eq 5)", EVERYTHING),
        ("PartitionKey eq 5", []),
        ("PartitionKey ne guid'00000000-0000-0000-0000-000000000000'", []),
        ("false", []),
        ("A eq 1 and false", []),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", []),
        ("PartitionKey gt 'b' and PartitionKey lt 'a' and A eq 1", []),
        ("PartitionKey lt ''", []),
        # by UTF-16 code unit, U+1F600 comes before U+FF5E
        ("PartitionKey gt '\uff5e' and PartitionKey lt '😀'", []),
        ("PartitionKey ge '😀' and PartitionKey lt '\uff5e'", [KeyRange(("😀", ""), ("\uff5e", ""))]),
    ],
)
def test_ranges(text: str, ranges: Sequence[KeyRange]) -> None:
    assert key_ranges(parse(text)) == tuple(ranges)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("PartitionKey eq 'p' and RowKey eq 'r'", None),
        ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", None),
        ("PartitionKey ge 'a' and PartitionKey lt 'b'", None),
        ("PartitionKey eq 'a' or PartitionKey eq 'b'", None),
        ("(PartitionKey eq 'p' and RowKey eq 'r') or (PartitionKey eq 'q' and RowKey gt 's')", None),
        ("not (PartitionKey eq 'x')", None),
        ("true", None),
        ("PartitionKey eq 'a' and PartitionKey eq 'b' and A eq 1", None),
        ("PartitionKey eq 'p' and A eq 1", "A eq 1"),
        ("A eq 1 and PartitionKey eq 'p' and C", "A eq 1 and C"),
        ("PartitionKey eq 'p' and (PartitionKey eq 'p' or A eq 1)", None),
        ("PartitionKey eq 'p' and (RowKey eq 'r' or A eq 1)", "RowKey eq 'r' or A eq 1"),
        ("PartitionKey ge 'a' and RowKey eq 'r'", "RowKey eq 'r'"),
        ("RowKey eq 'r'", "RowKey eq 'r'"),
        ("A eq 1", "A eq 1"),
        (" and ".join(f"PartitionKey ne '{n}'" for n in range(50)), None),
    ],
)
def test_residual(text: str, left: str | None) -> None:
    assert residual(parse(text)) == (None if left is None else parse(left))


def assert_equivalent(node: Node, row: Row) -> None:
    """The rows of the ranges that pass the residual are the rows that match."""
    rest = residual(node)
    kept = inside(key_ranges(node), row) and (rest is None or compile_predicate(rest, read)(row))
    assert kept is (evaluate(node, row) is True)


@settings(max_examples=200)
@given(st.one_of(trees, key_trees), rows)
def test_no_match_lies_outside_and_the_residual_tells_the_rest(node: Node, row: Row) -> None:
    assert_equivalent(node, row)


@given(key_trees, rows)
def test_widening_stays_sound(node: Node, row: Row) -> None:
    with patch.object(ranges_module, "PIECES_MAX", 3):
        assert_equivalent(node, row)


@given(st.lists(key_comparisons, min_size=1, max_size=5), st.sampled_from(KEY_TEXTS), rows)
def test_a_pure_key_conjunction_under_one_partition_is_exact(terms: list[Comparison], partition: str, row: Row) -> None:
    node: Node = Comparison("PartitionKey", "eq", partition)
    for term in terms:
        node = conjoin(node, term)
    assert inside(key_ranges(node), row) is (evaluate(node, row) is True)
    assert residual(node) is None


@given(operators, st.sampled_from(KEY_TEXTS), trees, rows)
def test_nothing_outside_a_partition_condition_is_scanned(operator: str, text: str, rest: Node, row: Row) -> None:
    condition = parse(f"PartitionKey {operator} '{text.replace(chr(39), chr(39) * 2)}'")
    if inside(key_ranges(conjoin(condition, rest)), row):
        assert evaluate(condition, row) is True


@given(st.one_of(trees, key_trees))
def test_ranges_ascend_and_never_touch(node: Node) -> None:
    ranges = key_ranges(node)
    for lower, upper in ranges:
        assert upper is None or sort_key(lower) < sort_key(upper)
    for before, after in pairwise(ranges):
        assert before.upper is not None
        assert sort_key(before.upper) < sort_key(after.lower)


def any_of(name: str, count: int) -> str:
    return "(" + " or ".join(f"{name} eq '{number:04}'" for number in range(count)) + ")"


def test_a_list_of_keys_stays_a_list_of_points() -> None:
    assert len(key_ranges(parse(f"PartitionKey eq 'p' and {any_of('RowKey', 299)}"))) == 299
    assert len(key_ranges(parse(any_of("PartitionKey", 300)))) == 300
    grid = parse(f"{any_of('PartitionKey', 20)} and {any_of('RowKey', 20)}")
    assert len(key_ranges(grid)) == 400
    assert residual(grid) is None


def test_only_so_many_levels_are_looked_into() -> None:
    text = "PartitionKey eq 'p'"
    for _ in range(8):
        text = f"(({text}) or PartitionKey eq 'p') and PartitionKey le 'p'"
    assert key_ranges(parse(text)) == (KeyRange(("p", ""), ("p\0", "")),)
    deeper = parse(f"(PartitionKey gt 'p' or {text}) and PartitionKey le 'p'")
    assert key_ranges(deeper) == (KeyRange(("", ""), ("p\0", "")),)
    assert residual(deeper) is not None


def test_too_fine_a_region_keeps_its_partitions_and_widens_their_rows() -> None:
    grid = parse(f"{any_of('PartitionKey', 140)} and {any_of('RowKey', 150)}")
    assert key_ranges(grid) == tuple(
        KeyRange((f"{number:04}", "0000"), (f"{number:04}", "0149\0")) for number in range(140)
    )
    assert residual(grid) is not None


def test_a_plan_pauses_between_its_halves() -> None:
    """Of 300 conditions on keys, the ranges take some milliseconds, and what is left of the filter as many."""
    node = parse(" and ".join(f"PartitionKey ne 'p{number}'" for number in range(300)))
    assert sum(1 for _ in plan(node)) == 3
