import math
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model import edm
from lazulite.table.query.filter import (
    DEPTH_MAX,
    TERMS_MAX,
    TEXT_MAX,
    And,
    BooleanProperty,
    Comparison,
    Constant,
    Node,
    Not,
    Or,
    compile_predicate,
    parse,
    plan,
)
from tests.table.query.filter.trees import Row, text_of, trees, with_types

A = Comparison("A", "eq", 1)
B = Comparison("B", "lt", 2)
C = BooleanProperty("C")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ("''", ""),
        ("'`%+ \n é 😀'", "`%+ \n é 😀"),
        ("''''", "'"),
        ("true", True),
        ("false", False),
        ("123", 123),
        ("-5", -5),
        ("007", 7),
        ("2147483648", 2_147_483_648),
        ("123L", 123),
        ("-9223372036854775808l", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        ("-3.1E-10", -3.1e-10),
        ("5.0", 5.0),
        ("5e3", 5000.0),
        ("5d", 5.0),
        ("1.5F", 1.5),
        ("2.25m", 2.25),
        ("INF", math.inf),
        ("-INF", -math.inf),
        ("datetime'2008-07-10T00:00:00Z'", edm.parse_datetime("2008-07-10T00:00:00Z")),
        ("datetime'2008-07-10T02:00:00.1234567+02:00'", edm.parse_datetime("2008-07-10T00:00:00.1234567Z")),
        ("DateTime'0001-01-01T00:00:00Z'", edm.parse_datetime("0001-01-01T00:00:00Z")),
        ("guid'C9DA6455-213D-42C9-9A79-3E9149A57833'", edm.Guid("c9da6455-213d-42c9-9a79-3e9149a57833")),
        ("X'0A0b'", b"\n\x0b"),
        ("x''", b""),
        ("binary'ff'", b"\xff"),
    ],
)
def test_literals(text: str, value: edm.Value) -> None:
    for filter_text in (f"A eq {text}", f"{text} eq A", f"({text}) eq (A)"):
        assert with_types(parse(filter_text)) == with_types(Comparison("A", "eq", value))


def test_nan() -> None:
    node = parse("A eq NaN")
    assert isinstance(node, Comparison)
    assert isinstance(node.value, float)
    assert math.isnan(node.value)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("A eq 1", A),
        ("  A\teq\n1  ", A),
        ("(a eq 1)and(b lt 2)", And((Comparison("a", "eq", 1), Comparison("b", "lt", 2)))),
        ("not(C)", Not(C)),
        ("not C", Not(C)),
        ("not A eq 1", Not(A)),
        ("not not A eq 1", Not(Not(A))),
        ("not A eq 1 and B lt 2", And((Not(A), B))),
        ("C", C),
        ("((C))", C),
        ("C and A eq 1", And((C, A))),
        ("true", Constant(True)),
        ("false", Constant(False)),
        ("not true", Not(Constant(True))),
        ("false or C", Or((Constant(False), C))),
        ("A eq 1 or B lt 2 and C", Or((A, And((B, C))))),
        ("(A eq 1 or B lt 2) and C", And((Or((A, B)), C))),
        ("A eq 1 and (B lt 2 and C)", And((A, B, C))),
        ("C or (A eq 1 or B lt 2)", Or((C, A, B))),
        ("23 eq INT32", Comparison("INT32", "eq", 23)),
        ("'2022-07-12' eq PartitionKey", Comparison("PartitionKey", "eq", "2022-07-12")),
        ("2 gt B", B),
        ("2 ge B", Comparison("B", "le", 2)),
        ("2 lt B", Comparison("B", "gt", 2)),
        ("2 le B", Comparison("B", "ge", 2)),
        ("2 ne B", Comparison("B", "ne", 2)),
        ("eq eq 1 and and", And((Comparison("eq", "eq", 1), BooleanProperty("and")))),
        ("Größe_1 eq 1", Comparison("Größe_1", "eq", 1)),
        ("partitionkey eq 'x'", Comparison("partitionkey", "eq", "x")),
        ("Timestamp ge datetime'1601-01-01T00:00:00Z'", Comparison("Timestamp", "ge", edm.DateTime(0))),
    ],
)
def test_grammar(text: str, node: Node) -> None:
    assert parse(text) == node


TYPES = "A binary operator with incompatible types was detected. Found operand types {} for operator kind '{}'."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'."),
        ("A eq 1)", "Syntax error at position 7 in 'A eq 1)'."),
        ("A eq 1 B", "Syntax error at position 8 in 'A eq 1 B'."),
        ("A EQ 1", "Syntax error at position 4 in 'A EQ 1'."),
        ("A eq 12abc", "Syntax error at position 6 in 'A eq 12abc'."),
        ("A eq 5.", "Syntax error at position 6 in 'A eq 5.'."),
        ("(PartitionKey ) and (RowKey ge '000050')", TYPES.format("'Edm.String' and 'Edm.Boolean'", "And")),
        ("A eq 1 or 5", TYPES.format("'Edm.Boolean' and 'Edm.Int32'", "Or")),
        ("5000000000 and A eq 1", TYPES.format("'Edm.Int64' and 'Edm.Boolean'", "And")),
        ("Timestamp or 5L", TYPES.format("'Edm.DateTime' and 'Edm.Int64'", "Or")),
        (
            "not RowKey",
            "A unary operator with an incompatible type was detected. "
            "Found operand type 'Edm.String' for operator kind 'Not'.",
        ),
        ("PartitionKey", "The $filter expression must evaluate to a single boolean value."),
        ("'text'", "The $filter expression must evaluate to a single boolean value."),
        ("X eq null", "One of the request inputs is not valid."),
        ("null", "One of the request inputs is not valid."),
        ("1 eq 1", "One of the request inputs is not valid."),
        ("A eq B", "One of the request inputs is not valid."),
        ("A eq True", "One of the request inputs is not valid."),
        ("A eq 1 eq true", "One of the request inputs is not valid."),
        ("A eq '\ud800'", "One of the request inputs is not valid."),
        ("", "Expression expected at position 0 in ''."),
        ("()", "Expression expected at position 1 in '()'."),
        ("A eq", "Expression expected at position 4 in 'A eq'."),
        ("A eq 1 and", "Expression expected at position 10 in 'A eq 1 and'."),
        ("(A eq 1", "')' or operator expected at position 7 in '(A eq 1'."),
        ("A eq 'x", "There is an unterminated string literal at position 7 in 'A eq 'x'."),
        ("A eq 'x''", "There is an unterminated string literal at position 9 in 'A eq 'x'''."),
        ("A eq #", "Syntax error: character '#' is not valid at position 5 in 'A eq #'."),
        ("A eq -B", "Syntax error: character '-' is not valid at position 5 in 'A eq -B'."),
        ("A eq 1e400", "Unrecognized 'Edm.Double' literal '1e400' at '5' in 'A eq 1e400'."),
        ("A eq 1.5L", "Syntax error at position 6 in 'A eq 1.5L'."),
        ("A eq X'0'", "Unrecognized 'Edm.Binary' literal 'X'0'' at '5' in 'A eq X'0''."),
        ("A eq X'0a 1b'", "Unrecognized 'Edm.Binary' literal 'X'0a 1b'' at '5' in 'A eq X'0a 1b''."),
        ("A eq X'0é'", "Unrecognized 'Edm.Binary' literal 'X'0é'' at '5' in 'A eq X'0é''."),
        ("A eq guid'1'", "Unrecognized 'Edm.Guid' literal 'guid'1'' at '5' in 'A eq guid'1''."),
        ("A eq datetime'x'", "Unrecognized 'Edm.DateTime' literal 'datetime'x'' at '5' in 'A eq datetime'x''."),
        (
            "A eq 9223372036854775808",
            "Unrecognized 'Edm.Int64' literal '9223372036854775808' at '5' in 'A eq 9223372036854775808'.",
        ),
        (
            "A eq -9223372036854775809L",
            "Unrecognized 'Edm.Int64' literal '-9223372036854775809L' at '5' in 'A eq -9223372036854775809L'.",
        ),
    ],
)
def test_rejections(text: str, message: str) -> None:
    with pytest.raises(ServiceError) as rejection:
        parse(text)
    assert (rejection.value.code, rejection.value.message) == ("InvalidInput", message)


@pytest.mark.parametrize(
    "text",
    [
        "startswith(A,'x')",
        "substringof('x', A) eq true",
        "length(A) gt 3",
        "A eq 1 and not endswith(A,'x')",
        "A add 1 eq 2",
        "(A mod 2) eq 0",
        "A eq 1 sub 1",
    ],
)
def test_functions_and_arithmetic_are_not_implemented(text: str) -> None:
    with pytest.raises(ServiceError) as rejection:
        parse(text)
    assert rejection.value.code == "NotImplemented"


def rejected(text: str) -> str:
    with pytest.raises(ServiceError) as rejection:
        parse(text)
    assert rejection.value.code == "InvalidInput"
    return rejection.value.message


def test_length_is_bounded() -> None:
    text = f"A eq '{'x' * (TEXT_MAX - 7)}'"
    assert parse(text) == Comparison("A", "eq", "x" * (TEXT_MAX - 7))
    assert "longer" in rejected(text + " ")


def test_number_of_terms_is_bounded_and_not_15() -> None:
    most = " or ".join(["C"] * TERMS_MAX)
    assert parse(most) == Or((C,) * TERMS_MAX)
    assert "terms" in rejected(most + " or C")


def read(name: str) -> Callable[[Row], edm.Value | None]:
    return lambda row: row.get(name)


def test_only_what_is_nested_counts_as_deep() -> None:
    assert parse(" or ".join(["not (C)"] * (DEPTH_MAX + 1))) == Or((Not(C),) * (DEPTH_MAX + 1))


NESTINGS: list[Callable[[str], str]] = [
    lambda inner: f"({inner})",
    lambda inner: f"not {inner}",
    lambda inner: f"C and ({inner} or A eq 1)",
    lambda inner: f"({inner} or RowKey gt 'x') and C",
]


@pytest.mark.parametrize("nest", NESTINGS)
def test_depth_is_bounded_far_from_the_recursion_limit(nest: Callable[[str], str]) -> None:
    text = "C"
    for _ in range(DEPTH_MAX):
        text = nest(text)
    frames, frame = 0, sys._getframe()
    while (outer := frame.f_back) is not None:
        frames, frame = frames + 1, outer
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + 650)
    try:
        node = parse(text)
        finish(plan(node))
        test = compile_predicate(node, read)
        assert test({"C": True}) is True
    finally:
        sys.setrecursionlimit(limit)
    assert rejected(nest(text)) == "Recursion depth exceeded allowed limit."


@given(trees)
def test_what_is_written_is_read(node: Node) -> None:
    assert with_types(parse(text_of(node))) == with_types(node)


words = st.sampled_from(
    [
        *("A", "eq", "ne", "and", "or", "not", "(", ")", "null", "true", "add", "PartitionKey", "é", "NaN", "-INF"),
        *("1", "1L", "-", ".5", "9" * 5000, "'x'", "'", "x'", "guid'", "X'0g'", "datetime'2020-01-01'"),
        *(",", "$", "\u00a0", "\ud800"),
    ]
)


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(words).map(" ".join), st.lists(words).map("".join)))
def test_any_text_is_a_filter_or_rejected(text: str) -> None:
    try:
        parse(text)
    except ServiceError as rejection:
        assert rejection.code in ("InvalidInput", "NotImplemented")
