"""Reference §10.2: what a `$filter` may look like."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from .client import Client
from .tables import Table, new_table

NOT_VALID = "One of the request inputs is not valid."
GUID = "6b3a2b2e-0aaf-4222-8333-4444555566ff"
ROW = (
    '{"PartitionKey":"p","RowKey":"r","S":"it\'s","E":"","T":true,"F":false,"I":5,"M":-5,"L@odata.type":"Edm.Int64",'
    '"L":"12345678901","D":1.5,"N":-3.1E-10,"W":"2008-07-10T00:00:00Z","W@odata.type":"Edm.DateTime",'
    '"U":"2008-07-10T00:00:00.1234567Z","U@odata.type":"Edm.DateTime",'
    f'"G":"{GUID}","G@odata.type":"Edm.Guid","B":"Cgs=","B@odata.type":"Edm.Binary",'
    '"Z":"日😀`","Y":"a and b or (c)","Q":"\'","Inf":"Infinity","Inf@odata.type":"Edm.Double",'
    '"eqx":1,"notx":true,"X_1":"x","é":"e"}'
)
"""One row; a filter that says something true about it finds it."""


@pytest.fixture(scope="module")
def row(client: Client) -> Iterator[Table]:
    """A table of that one row."""
    for table in new_table(client):
        table.insert(ROW).expect(201)
        yield table


LITERALS = [
    "S eq 'it''s'",
    "Q eq ''''",
    "E eq ''",
    "Z eq '日😀`'",
    "Y eq 'a and b or (c)'",
    "T eq true",
    "F eq false",
    "T ne false",
    "I eq 5",
    "M eq -5",
    "L eq 12345678901L",
    "L eq 12345678901l",
    "D eq 1.5",
    "D eq 1.5d",
    "D eq 1.5D",
    "D eq 1.50",
    "N eq -3.1E-10",
    "N eq -3.1e-10",
    "D lt INF",
    "D gt -INF",
    "Inf eq INF",
    "W eq datetime'2008-07-10T00:00:00Z'",
    "W eq datetime'2008-07-10T00:00:00'",
    "W eq datetime'2008-07-10T00:00:00.0000000Z'",
    "W eq datetime'2008-07-10T00:00:00.000Z'",
    "W eq datetime'2008-07-10T02:00:00+02:00'",
    "U eq datetime'2008-07-10T00:00:00.1234567Z'",
    "W lt datetime'2008-07-10T00:00:00.1Z'",
    f"G eq guid'{GUID}'",
    f"G eq guid'{GUID.upper()}'",
    "B eq X'0A0b'",
    "B eq X'0a0B'",
    "B eq binary'0A0b'",
    "X_1 eq 'x'",
    "é eq 'e'",
    "eqx eq 1",
    "notx eq true",
]
COMPARISONS = [
    "I ne 4",
    "I gt 4",
    "I ge 5",
    "I ge 4",
    "I lt 6",
    "I le 5",
    "5 eq I",
    "4 lt I",
    "6 gt I",
    "5 ge I",
    "5 le I",
    "4 ne I",
    "'p' eq PartitionKey",
    "'it''s' eq S",
    "true eq T",
    "datetime'2008-07-10T00:00:00Z' eq W",
]
STRUCTURES = [
    "I eq 5 and D eq 1.5",
    "I eq 4 or D eq 1.5",
    "(I eq 5)",
    "((((I eq 5))))",
    "( I eq 5 )",
    "(I eq 5)and(D eq 1.5)",
    "(I eq 4)or(D eq 1.5)",
    "(I eq 5) and (D eq 1.5)",
    "I eq 5 and (D eq 2.5 or S eq 'it''s')",
    "not (I eq 4)",
    "not(I eq 4)",
    "not I eq 4",
    "not not (I eq 5)",
    "not (not (I eq 5))",
    "not (I eq 4) and not (I eq 6)",
    "not(I eq 4)and(I eq 5)",
    "I eq 5 and not (D eq 9.5)",
    "I eq 5 or I eq 4 and I eq 3",
    "(I eq 5 or I eq 4) and I eq 5",
    "I eq 4 and I eq 3 or I eq 5",
    "not (I eq 4 and I eq 5)",
    "  I   eq   5  ",
    "I eq 5 and  D eq 1.5",
    "true",
    "T",
    "not F",
    "T and I eq 5",
    "I eq 5 and T",
    "(T)",
    "F or T",
    "not (F)",
    "T and not F",
]
FALSE = [
    "false",
    "F",
    "not T",
    "not (T)",
    "T and F",
    "I eq 4",
    "I eq 5 and I eq 4",
    "(I eq 5 or I eq 4) and I eq 3",
    "not (I eq 5)",
    "not I eq 5",
    "S eq 'IT''S'",
    "s eq 'it''s'",
    "partitionkey eq 'p'",
    "PartitionKey eq 'P'",
    "D eq NaN",
]


@pytest.mark.parametrize("text", LITERALS + COMPARISONS + STRUCTURES)
def test_true_filters_find_the_row(row: Table, text: str) -> None:
    assert row.row_keys(text) == ["r"]


@pytest.mark.parametrize("text", FALSE)
def test_false_filters_find_nothing(row: Table, text: str) -> None:
    assert row.row_keys(text) == []


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("$filter=", 1),
        ("$filter=&$select=", 1),
        ("%24filter=I%20eq%205", 1),
        ("$filter=I+eq+5", 1),
        ("$filter=S%20eq%20%27it%27%27s%27", 1),
        ("$filter=S%20eq%20'it''s'", 1),
        ("$filter=(I%20eq%205)&$filterx=1", 1),
        ("$filter=I%20eq%204&timeout=30", 0),
    ],
)
def test_in_the_query_string(row: Table, raw: str, found: int) -> None:
    assert len(row.query(raw).expect(200).json()["value"]) == found


SYNTAX = [
    "aaa bbb ccc",
    "I eq",
    "eq 5",
    "I 5",
    "I eq 5 and",
    "and I eq 5",
    "(I eq 5",
    "I eq 5)",
    "()",
    "I == 5",
    "I = 5",
    "I eq 'x",
    "I eq 5 I eq 5",
    "I eq 5 xor I eq 5",
    "not",
    "I eq datetime'yesterday'",
    "I eq datetime'2008-13-10T00:00:00Z'",
    "I eq guid'nonsense'",
    "I eq X'0'",
    "I eq X'zz'",
    "I eq 5x",
    "I eq 5 # 6",
    "I eq @x",
    "I eq 1 eq 2",
    'I eq "5"',
    "I eq 99999999999999999999999L",
]


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax_errors_are_rejected(row: Table, text: str) -> None:
    assert row.filter(text).code == (400, "InvalidInput")


def test_the_recorded_syntax_error(row: Table) -> None:
    message = "Syntax error at position 7 in 'aaa bbb ccc'."
    assert row.filter("aaa bbb ccc").rejection == (400, "InvalidInput", message)


def test_a_string_where_a_boolean_belongs(row: Table) -> None:
    message = (
        "A binary operator with incompatible types was detected. Found operand types 'Edm.String' and 'Edm.Boolean' "
        "for operator kind 'And'."
    )
    rejection = row.filter("(PartitionKey ) and (RowKey ge '000050')").rejection
    assert rejection == (400, "InvalidInput", message)


@pytest.mark.parametrize(
    "text", ["PartitionKey", "RowKey", "Timestamp", "not PartitionKey", "RowKey or T", "(Timestamp)"]
)
def test_a_system_property_is_no_condition(row: Table, text: str) -> None:
    assert row.filter(text).code == (400, "InvalidInput")


@pytest.mark.parametrize("text", ["S eq null", "S ne null", "Missing eq null", "null eq S", "PartitionKey eq null"])
def test_null_is_no_literal(row: Table, text: str) -> None:
    assert row.filter(text).rejection == (400, "InvalidInput", NOT_VALID)


FUNCTIONS = [
    "startswith(S,'it')",
    "startswith(S,'it') eq true",
    "substringof('it',S)",
    "endswith(S,'s')",
    "length(S) eq 4",
    "tolower(S) eq 'x'",
    "year(W) eq 2008",
    "I add 1 eq 6",
    "I sub 1 eq 4",
    "I mul 2 eq 10",
    "I div 5 eq 1",
    "I mod 2 eq 1",
]


@pytest.mark.unverified
@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions_and_arithmetic_are_not_implemented(row: Table, text: str) -> None:
    answer = row.filter(text)
    assert answer.code in {(501, "NotImplemented"), (400, "InvalidInput")}


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["1 eq 1", "'a' eq 'a'", "S eq S", "I eq D", "1 eq 2"])
def test_conditions_without_a_property_and_a_constant(row: Table, text: str) -> None:
    assert row.filter(text).status in {200, 400, 501}


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["T EQ true", "I eq 5 AND T", "T eq True", "NOT (I eq 4)"])
def test_keywords_in_upper_case(row: Table, text: str) -> None:
    assert row.filter(text).status in {200, 400, 501}


@pytest.mark.unverified
@pytest.mark.parametrize("suffix", ["f", "m", "F", "M"])
def test_other_number_suffixes(row: Table, suffix: str) -> None:
    assert row.filter(f"D eq 1.5{suffix}").status in {200, 400}


def test_more_than_fifteen_comparisons(row: Table) -> None:
    assert row.row_keys(" or ".join(f"I eq {number}" for number in range(30))) == ["r"]
    assert row.row_keys(" and ".join(f"I ne {number}" for number in range(6, 36))) == ["r"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2_000 + "I eq 5" + ")" * 2_000,
        "not " * 2_000 + "T",
        "not(" * 2_000 + "T" + ")" * 2_000,
        " or ".join(["I eq 5"] * 3_000),
        "S eq '" + "x" * 60_000 + "'",
    ],
    ids=["parentheses", "nots", "not-parentheses", "ors", "literal"],
)
def test_monstrous_filters_are_answered(row: Table, text: str) -> None:
    answer = row.query(f"$filter={quote(text, safe='')}")
    assert answer.status in {200, 400, 413, 414, 431}
    assert row.row_keys("I eq 5") == ["r"]
