"""Reference §10.3: comparison semantics — absent properties, types, numbers, strings, dates, binary, guids."""

import json
from collections.abc import Iterator

import pytest

from .client import Client
from .tables import Table, entity, new_table

GUID = "6b3a2b2e-0aaf-4222-8333-4444555566ff"
ZERO = "00000000-0000-0000-0000-000000000000"
ROWS: dict[str, str] = {
    "none": "",
    "str": '"V":"b"',
    "empty": '"V":""',
    "digits": '"V":"123"',
    "int": '"V":5',
    "int123": '"V":123',
    "long": '"V@odata.type":"Edm.Int64","V":"123"',
    "big": '"V@odata.type":"Edm.Int64","V":"9007199254740993"',
    "minus": '"V@odata.type":"Edm.Int64","V":"-20"',
    "dbl": '"V":5.0',
    "half": '"V":5.5',
    "nan": '"V@odata.type":"Edm.Double","V":"NaN"',
    "true": '"V":true',
    "false": '"V":false',
    "date": '"V@odata.type":"Edm.DateTime","V":"2008-07-10T00:00:00Z"',
    "date7": '"V@odata.type":"Edm.DateTime","V":"2008-07-10T00:00:00.1234567Z"',
    "guid": f'"V@odata.type":"Edm.Guid","V":"{GUID}"',
    "guid0": f'"V@odata.type":"Edm.Guid","V":"{ZERO}"',
    "guidtext": f'"V":"{GUID}"',
    "bin": '"V@odata.type":"Edm.Binary","V":"Cgs="',
    "bin2": '"V@odata.type":"Edm.Binary","V":"/w=="',
    "dashed": '"V":"2008-07-10T00:00:00Z"',
}
LESS_THAN_EMPTY = {"dbl", "half", "nan", "date", "date7"}
STRINGS = {"str", "empty", "digits", "guidtext", "dashed"}
ALL = set(ROWS)


@pytest.fixture(scope="module")
def rows(client: Client) -> Iterator[Table]:
    """A table whose rows are named after the value of their property V."""
    for table in new_table(client):
        for name, member in ROWS.items():
            comma = "," if member else ""
            table.insert(f'{{"PartitionKey":"p","RowKey":"{name}"{comma}{member}}}').expect(201)
        yield table


ABSENCE: list[tuple[str, set[str]]] = [
    ("V eq 'b'", {"str"}),
    ("V ne 'b'", STRINGS - {"str"}),
    ("V ne ''", (STRINGS - {"empty"}) | LESS_THAN_EMPTY),
    ("V gt ''", STRINGS - {"empty"}),
    ("V ge ''", STRINGS),
    ("V lt 'b'", STRINGS - {"str"}),
    ("not (V eq 'b')", ALL - {"str"}),
    ("not (V ne 'b')", ALL - (STRINGS - {"str"})),
    ("Missing eq 'x'", set()),
    ("Missing ne 'x'", set()),
    ("Missing eq 5", set()),
    ("Missing gt 5", set()),
    ("not (Missing eq 'x')", ALL),
    ("not (Missing ne 'x')", ALL),
    ("not (not (Missing eq 'x'))", set()),
    ("Missing eq 'x' or V eq 'b'", {"str"}),
    ("V eq 'b' or Missing eq 'x'", {"str"}),
    ("Missing eq 'x' and V eq 'b'", set()),
    ("not (Missing eq 'x' and V eq 'b')", ALL),
    ("not (Missing eq 'x' or V eq 'b')", ALL - {"str"}),
    ("not (Missing eq 'x') and V eq 'b'", {"str"}),
    ("Missing", set()),
    ("Missing or V eq 'b'", {"str"}),
    ("v eq 'b'", set()),
]
TYPES: list[tuple[str, set[str]]] = [
    ("V eq '123'", {"digits"}),
    ("V eq 123L", {"int123", "long"}),
    ("V eq '5'", set()),
    ("V eq true", {"true"}),
    ("V ne true", {"false"}),
    ("V eq false", {"false"}),
    ("V eq 'true'", set()),
    (f"V eq '{GUID}'", {"guidtext"}),
    (f"V eq guid'{GUID}'", {"guid"}),
    (f"V eq guid'{GUID.upper()}'", {"guid"}),
    (f"V ne guid'{GUID}'", {"guid0"}),
    (f"V eq guid'{ZERO}'", {"guid0"}),
    ("V eq '2008-07-10T00:00:00Z'", {"dashed"}),
    ("V eq datetime'2008-07-10T00:00:00Z'", {"date"}),
    ("V eq X'0a0b'", {"bin"}),
    ("V ne X'0a0b'", {"bin2"}),
    ("V eq 'Cgs='", set()),
    ("V", {"true"}),
]
EMPTY: list[tuple[str, set[str]]] = [
    ("V lt ''", LESS_THAN_EMPTY),
    ("V le ''", LESS_THAN_EMPTY | {"empty"}),
    ("V eq ''", {"empty"}),
    ("'' gt V", LESS_THAN_EMPTY),
    ("'' ge V", LESS_THAN_EMPTY | {"empty"}),
    ("'' ne V", (STRINGS - {"empty"}) | LESS_THAN_EMPTY),
    ("'' lt V", STRINGS - {"empty"}),
    ("'' le V", STRINGS),
    ("not (V lt '')", ALL - LESS_THAN_EMPTY),
    ("not (V ge '')", ALL - STRINGS),
    ("V lt '' and V gt 5.2", {"half"}),
    ("V lt '' and RowKey ge 'half'", {"half", "nan"}),
    ("PartitionKey eq 'p' and RowKey lt 'date7' and V ne ''", {"dashed", "date"}),
    ("V ne '' and (RowKey eq 'dbl' or RowKey eq 'int')", {"dbl"}),
    ("Timestamp lt ''", ALL),
    ("Timestamp ge '' or Timestamp eq ''", set()),
    ("V lt ' '", {"empty"}),
    ("V lt '' and V ne '' and V le '' and V ne 'b' and V le 'b'", set()),
]
"""A Double or a DateTime is less than the empty string, and unequal to it (§25)."""
NUMBERS: list[tuple[str, set[str]]] = [
    ("V eq 5.0", {"int", "dbl"}),
    ("V gt 5.25", {"half", "int123", "long", "big"}),
    ("V lt 0L", {"minus"}),
    ("V gt 100L", {"int123", "long", "big"}),
    ("V gt 9L and V lt 1000L", {"int123", "long"}),
    ("V eq 9007199254740993L", {"big"}),
    ("V eq 9007199254740992L", set()),
    ("V gt 9007199254740992L", {"big"}),
    ("V eq NaN", set()),
    ("V lt INF and V gt -INF", {"int", "int123", "long", "big", "minus", "dbl", "half"}),
]
PROMOTED: list[tuple[str, set[str]]] = [
    ("V eq 5", {"int", "dbl"}),
    ("V eq 5L", {"int", "dbl"}),
    ("V eq 123", {"int123", "long"}),
    ("V lt 6", {"int", "dbl", "half", "minus"}),
    ("V ge 5 and V le 5.5", {"int", "dbl", "half"}),
]
OTHERS: list[tuple[str, set[str]]] = [
    ("V gt datetime'2008-07-10T00:00:00Z'", {"date7"}),
    ("V ge datetime'2008-07-10T00:00:00Z'", {"date", "date7"}),
    ("V lt datetime'2008-07-10T00:00:00.1234567Z'", {"date"}),
    ("V le datetime'2008-07-10T00:00:00.1234567Z'", {"date", "date7"}),
    ("V gt datetime'2008-07-10T00:00:00.1234566Z'", {"date7"}),
    ("V eq datetime'2008-07-10T02:00:00.1234567+02:00'", {"date7"}),
    ("V eq datetime'2008-07-10T00:00:00.123456Z'", set()),
    ("V gt X'0a0b'", {"bin2"}),
    ("V ge X'0a0b'", {"bin", "bin2"}),
    ("V lt X'0a0b00'", {"bin"}),
    ("V le X'ff'", {"bin", "bin2"}),
    ("V gt X''", {"bin", "bin2"}),
]


@pytest.mark.parametrize(("text", "found"), ABSENCE + TYPES + EMPTY + NUMBERS + OTHERS)
def test_filter_finds_its_rows(rows: Table, text: str, found: set[str]) -> None:
    assert set(rows.row_keys(text)) == found


@pytest.mark.unverified
@pytest.mark.parametrize(("text", "found"), PROMOTED)
def test_numbers_are_promoted(rows: Table, text: str, found: set[str]) -> None:
    assert set(rows.row_keys(text)) == found


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["V lt true", f"V gt guid'{ZERO}'", "V ne NaN", "V ge false"])
def test_odd_orders_are_answered(rows: Table, text: str) -> None:
    assert rows.filter(text).status in {200, 400}


def test_int32_and_double_properties_meet_either_literal(table: Table) -> None:
    table.insert('{"PartitionKey":"p","RowKey":"r","D":5.0,"I":5}').expect(201)
    for text in ("D eq 5", "D eq 5.0", "I eq 5", "D ge 5 and D le 5", "D gt 4 and D lt 6"):
        assert table.row_keys(text) == ["r"], text


WORDS = ["", "A", "B", "a", "a b", "aa", "ab", "b", "{", "~", "é", "日", "\ue000", "\uff5e"]


@pytest.fixture(scope="module")
def words(client: Client) -> Iterator[Table]:
    """A table with one row a word, in V."""
    for table in new_table(client):
        for number, word in enumerate(WORDS):
            table.insert(json.dumps(entity("p", f"{number:02}", V=word))).expect(201)
        yield table


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("operator", ["lt", "le", "eq", "ne", "ge", "gt"])
def test_strings_compare_ordinally(words: Table, operator: str, word: str) -> None:
    expected = {
        "lt": [other for other in WORDS if other < word],
        "le": [other for other in WORDS if other <= word],
        "eq": [word],
        "ne": [other for other in WORDS if other != word],
        "ge": [other for other in WORDS if other >= word],
        "gt": [other for other in WORDS if other > word],
    }[operator]
    found = words.row_keys(f"V {operator} '{word}'")
    assert [WORDS[int(row)] for row in found] == expected


@pytest.mark.unverified
def test_astral_characters_sort_by_utf16(table: Table) -> None:
    """U+1F600 is D83D DE00 in UTF-16, which is before U+FF5E."""
    table.add(entity("p", "r", V="\uff5e"))
    assert table.row_keys("V gt '😀'") == ["r"]


def test_timestamp_filter(table: Table) -> None:
    table.add(entity("p", "1"))
    table.add(entity("p", "2"))
    first, second = (row["Timestamp"] for row in table.page().rows)
    assert table.row_keys(f"Timestamp eq datetime'{first}'") == ["1"]
    assert table.row_keys(f"Timestamp gt datetime'{first}'") == ["2"]
    assert table.row_keys(f"Timestamp ge datetime'{first}' and Timestamp lt datetime'{second}'") == ["1"]
    assert table.row_keys("Timestamp gt datetime'2010-01-01T00:00:00Z'") == ["1", "2"]
    assert table.row_keys("Timestamp lt datetime'2010-01-01T00:00:00Z'") == []


@pytest.fixture(scope="module")
def grid(client: Client) -> Iterator[Table]:
    """Partitions a to d with rows 1 to 4 each; V is the row number."""
    for table in new_table(client):
        table.add(*(entity(partition, f"{row}", V=row) for partition in "abcd" for row in range(1, 5)))
        yield table


GRID = [
    ("PartitionKey eq 'b'", "b1 b2 b3 b4"),
    ("PartitionKey eq 'b' and RowKey eq '2'", "b2"),
    ("RowKey eq '2' and PartitionKey eq 'b'", "b2"),
    ("'2' eq RowKey and 'b' eq PartitionKey", "b2"),
    ("PartitionKey eq 'b' and RowKey ge '2' and RowKey lt '4'", "b2 b3"),
    ("PartitionKey eq 'b' and RowKey gt '2'", "b3 b4"),
    ("PartitionKey ge 'b' and PartitionKey lt 'd'", "b1 b2 b3 b4 c1 c2 c3 c4"),
    ("PartitionKey gt 'b'", "c1 c2 c3 c4 d1 d2 d3 d4"),
    ("PartitionKey lt 'b'", "a1 a2 a3 a4"),
    ("PartitionKey le 'a' or PartitionKey ge 'd'", "a1 a2 a3 a4 d1 d2 d3 d4"),
    ("PartitionKey ne 'b' and PartitionKey ne 'c'", "a1 a2 a3 a4 d1 d2 d3 d4"),
    ("RowKey eq '3'", "a3 b3 c3 d3"),
    ("RowKey gt '3'", "a4 b4 c4 d4"),
    ("PartitionKey eq 'a' or PartitionKey eq 'c'", "a1 a2 a3 a4 c1 c2 c3 c4"),
    ("PartitionKey eq 'c' or PartitionKey eq 'a'", "a1 a2 a3 a4 c1 c2 c3 c4"),
    ("PartitionKey eq 'a' or PartitionKey eq 'a'", "a1 a2 a3 a4"),
    ("(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'd' and RowKey eq '4')", "a1 d4"),
    ("(PartitionKey eq 'a' and RowKey le '2') or (PartitionKey eq 'a' and RowKey ge '2')", "a1 a2 a3 a4"),
    ("PartitionKey eq 'a' and (RowKey eq '1' or RowKey eq '3')", "a1 a3"),
    ("PartitionKey eq 'a' and (RowKey eq '3' or V eq 1)", "a1 a3"),
    ("PartitionKey eq 'a' or V eq 4", "a1 a2 a3 a4 b4 c4 d4"),
    ("PartitionKey eq 'a' and V ge 3", "a3 a4"),
    ("V eq 2", "a2 b2 c2 d2"),
    ("PartitionKey eq 'a' and PartitionKey eq 'b'", ""),
    ("PartitionKey gt 'b' and PartitionKey lt 'b'", ""),
    ("PartitionKey eq 'b' and RowKey gt '3' and RowKey lt '2'", ""),
    ("PartitionKey eq 'zz'", ""),
    ("not (PartitionKey eq 'b')", "a1 a2 a3 a4 c1 c2 c3 c4 d1 d2 d3 d4"),
    ("not (PartitionKey eq 'b' and RowKey eq '2') and PartitionKey eq 'b'", "b1 b3 b4"),
    ("not (PartitionKey lt 'd' or RowKey lt '3')", "d3 d4"),
    ("not (PartitionKey ge 'b')", "a1 a2 a3 a4"),
    ("PartitionKey eq 'b' and Missing eq 1", ""),
    ("PartitionKey eq 'b' and not (Missing eq 1)", "b1 b2 b3 b4"),
    ("PartitionKey eq 'b' or Missing eq 1", "b1 b2 b3 b4"),
    ("PartitionKey eq 'b' and true", "b1 b2 b3 b4"),
    ("PartitionKey eq 'b' and false", ""),
    ("PartitionKey eq 'b' or false", "b1 b2 b3 b4"),
]


@pytest.mark.parametrize(("text", "found"), GRID)
def test_key_filter(grid: Table, text: str, found: str) -> None:
    rows = grid.filter(text).expect(200).json()["value"]
    assert " ".join(row["PartitionKey"] + row["RowKey"] for row in rows) == found


@pytest.mark.unverified
@pytest.mark.parametrize("text", ["PartitionKey eq 5", "RowKey eq true", "Timestamp eq 'x'", "PartitionKey gt 5L"])
def test_a_system_property_against_another_type_finds_nothing_or_is_rejected(grid: Table, text: str) -> None:
    answer = grid.filter(text)
    assert answer.status in {200, 400}
    if answer.status == 200:
        assert answer.json()["value"] == []
