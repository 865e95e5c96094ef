"""Reference §5.3, §23: each Edm type in every JSON spelling, in and out, at each metadata level."""

import base64
import json
from typing import NamedTuple

import pytest

from .client import FULL, MINIMAL, NONE
from .tables import Table


class Spelling(NamedTuple):
    """A declared type (or none), a JSON literal in, the JSON literal out, and whether the type comes out with it."""

    declared: str | None
    given: str
    out: str
    emitted: str | None = None


def same(declared: str | None, *literals: str, emitted: bool = False) -> list[Spelling]:
    """Literals that come out as they went in."""
    return [Spelling(declared, literal, literal, declared if emitted else None) for literal in literals]


def to(declared: str | None, out: str, *literals: str, emitted: str | None = None) -> list[Spelling]:
    """Literals that all come out alike."""
    return [Spelling(declared, literal, out, emitted) for literal in literals]


def instant(out: str, *literals: str) -> list[Spelling]:
    """Dates in, one date out."""
    return to("Edm.DateTime", json.dumps(out), *map(json.dumps, literals), emitted="Edm.DateTime")


GUID = "6b3a2b2e-0aaf-4222-8333-4444555566ff"
LONG = base64.b64encode(bytes(range(256))).decode()
SPELLINGS = [
    *same(None, '"text"', '""', '" a "', '"\\n"', '"2020-01-01T00:00:00Z"', f'"{GUID}"', '"NaN"', '"5"', '"true"'),
    *same("Edm.String", '"text"', '"5"', '""'),
    *same(None, "true", "false"),
    *same("Edm.Boolean", "true", "false"),
    *to("Edm.Boolean", "false", '"False"', '"false"'),
    *to("Edm.Boolean", "true", '"True"', '"true"'),
    *same(None, "0", "5", "-1", "2147483647", "-2147483648"),
    *same("Edm.Int32", "0", "2147483647", "-2147483648"),
    *to("Edm.Int32", "12345", '"12345"', "12345"),
    *same("Edm.Int64", '"0"', '"-1"', '"12345"', emitted=True),
    *same("Edm.Int64", '"9223372036854775807"', '"-9223372036854775808"', emitted=True),
    *to("Edm.Int64", '"5"', "5", '"5"', emitted="Edm.Int64"),
    *to("Edm.Int64", '"9007199254740993"', "9007199254740993", emitted="Edm.Int64"),
    *same(None, "1.5", "-2.25", "123456789012345.12", "4.94065645841247E-324", "1.7976931348623157E+308"),
    *to(None, "3.0", "3.0", "3e0", "30e-1", "0.3E1"),
    *to(None, "0.0", "0.0"),
    *to("Edm.Double", "4.0", "4", "4.0", '"4"', '"4.0"'),
    *to("Edm.Double", "10.0", "10", "1e1"),
    *to("Edm.Double", "3.14", '"3.14"', "3.14"),
    *to("Edm.Double", "4.94065645841247E-324", "5e-324", "4.94065645841247E-324"),
    *to("Edm.Double", "1.7976931348623157E+308", "1.7976931348623157e308"),
    *same("Edm.Double", '"NaN"', '"Infinity"', '"-Infinity"', emitted=True),
    *instant("2008-07-10T00:00:00Z", "2008-07-10T00:00:00Z", "2008-07-10T00:00:00", "2008-07-10T02:00:00+02:00"),
    *instant("2008-07-10T00:00:00Z", "2008-07-09T19:30:00-04:30", "2008-07-10T00:00:00.0000000Z"),
    *instant("2014-05-07T08:20:53Z", "2014-05-07T08:20:53.000Z"),
    *instant("2014-05-07T08:20:53.2Z", "2014-05-07T08:20:53.200Z", "2014-05-07T08:20:53.2Z"),
    *instant("2014-05-07T08:20:53.1234567Z", "2014-05-07T08:20:53.1234567Z"),
    *instant("2014-05-07T08:20:53.12Z", "2014-05-07T08:20:53.12Z", "2014-05-07T08:20:53.120000Z"),
    *instant("2014-05-07T08:20:53.0000001Z", "2014-05-07T08:20:53.0000001Z"),
    *instant("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
    *instant("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    *instant("2016-02-29T12:34:56Z", "2016-02-29T12:34:56Z"),
    *to("Edm.Guid", f'"{GUID}"', f'"{GUID}"', f'"{GUID.upper()}"', emitted="Edm.Guid"),
    *same("Edm.Guid", '"00000000-0000-0000-0000-000000000000"', emitted=True),
    *same("Edm.Binary", '""', '"AA=="', '"AAE="', '"AAEC"', '"+/+/"', f'"{LONG}"', emitted=True),
]


def literal(body: bytes, name: str) -> str:
    """The literal after a member's name, as it stands in the body; it is the last member."""
    text = body.decode("ascii")
    start = text.index(f'"{name}":') + len(name) + 3
    return text[start : text.rindex("}")]


def content(declared: str | None, given: str) -> str:
    """An entity whose last property V has a declared type."""
    annotation = f'"V@odata.type":"{declared}",' if declared else ""
    return f'{{"PartitionKey":"p","RowKey":"r",{annotation}"V":{given}}}'


@pytest.mark.parametrize("case", SPELLINGS, ids=lambda case: f"{case.declared}: {case.given[:40]}")
def test_value_spellings_are_accepted(shared_table: Table, case: Spelling) -> None:
    shared_table.write("PUT", shared_table.at("p", "r"), content(case.declared, case.given)).expect(204)
    for level in (NONE, MINIMAL, FULL):
        body = shared_table.get("p", "r", accept=level).expect(200).body
        assert literal(body, "V") == case.out
        emitted = None if level == NONE else case.emitted
        assert json.loads(body).get("V@odata.type") == emitted
        if emitted:
            assert f'"V@odata.type":"{emitted}","V":'.encode() in body


@pytest.mark.parametrize("case", SPELLINGS[::3], ids=lambda case: f"{case.declared}: {case.given[:40]}")
def test_the_insert_echo_says_the_same(table: Table, case: Spelling) -> None:
    echo = table.insert(content(case.declared, case.given)).expect(201)
    assert echo.body == table.get("p", "r").expect(200).body


SIGNS = [("P", 1), ("M", -1)]
DOUBLES = [0.1, 1 / 3, 1e15, 1e16, 1e21, 1e22, 1e-5, 1e-7, 123456789.125, 2.0**53, 2.0**53 + 2, 2.0**63, 1e100, 1e-300]
DOUBLES += [2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308, 5e-324, 9.5, 100.0, 1e23, 4.35]


def test_doubles_keep_every_bit(table: Table) -> None:
    given = {f"{sign}{number}": value * factor for number, value in enumerate(DOUBLES) for sign, factor in SIGNS}
    text = json.dumps({"PartitionKey": "p", "RowKey": "r"} | given)
    table.insert(text).expect(201)
    for level in (NONE, MINIMAL, FULL):
        row = table.get("p", "r", accept=level).json()
        assert {name: row[name] for name in given} == given
        assert all(isinstance(row[name], float) for name in given)


def test_an_annotation_may_follow_its_value(table: Table) -> None:
    table.insert(
        '{"PartitionKey":"p","RowKey":"r","N":"5","S":"x","N@odata.type":"Edm.Int64","D":4,"D@odata.type":"Edm.Double"}'
    ).expect(201)
    row = table.get("p", "r").json()
    assert (row["N"], row["N@odata.type"], row["S"]) == ("5", "Edm.Int64", "x")
    assert b'"D":4.0' in table.get("p", "r").body


@pytest.mark.unverified
@pytest.mark.parametrize(("given", "out"), [("INF", "Infinity"), ("-INF", "-Infinity")])
def test_xml_spellings_of_infinity_are_understood_or_rejected(table: Table, given: str, out: str) -> None:
    answer = table.insert(content("Edm.Double", f'"{given}"'))
    assert answer.status in {201, 400}
    if answer.status == 201:
        assert answer.json()["V"] == out


@pytest.mark.unverified
def test_minus_zero_is_a_number(table: Table) -> None:
    answer = table.insert(content("Edm.Double", "-0.0")).expect(201)
    assert answer.json()["V"] == 0


REJECTED = [
    ("Edm.Boolean", '"yes"'),
    ("Edm.Boolean", '""'),
    ("Edm.Int32", '"abc"'),
    ("Edm.Int32", '"2147483648"'),
    ("Edm.Int32", "2147483648"),
    ("Edm.Int32", "1.5"),
    ("Edm.Int32", '""'),
    ("Edm.Int64", '"abc"'),
    ("Edm.Int64", '"9223372036854775808"'),
    ("Edm.Int64", '"-9223372036854775809"'),
    ("Edm.Int64", '"1.5"'),
    ("Edm.Int64", "true"),
    ("Edm.Double", '"abc"'),
    ("Edm.Double", "true"),
    ("Edm.Double", "1e400"),
    ("Edm.Double", '"1e400"'),
    (None, "1e400"),
    (None, "-1e400"),
    ("Edm.Guid", '"not-a-guid"'),
    ("Edm.Guid", f'"{GUID}0"'),
    ("Edm.Guid", '""'),
    ("Edm.Guid", "5"),
    ("Edm.Binary", '"***"'),
    ("Edm.Binary", '"AAA"'),
    ("Edm.Binary", "5"),
    ("Edm.DateTime", '"yesterday"'),
    ("Edm.DateTime", '"2020-13-01T00:00:00Z"'),
    ("Edm.DateTime", '"2019-02-29T00:00:00Z"'),
    ("Edm.DateTime", '"2020-01-01T25:00:00Z"'),
    ("Edm.DateTime", '"10000-01-01T00:00:00Z"'),
    ("Edm.DateTime", '""'),
    ("Edm.DateTime", "5"),
    ("Edm.Unknown", '"x"'),
    ("Edm.Single", "1.5"),
    ("string", '"x"'),
    ("", '"x"'),
    (None, "{}"),
    (None, '{"a":1}'),
    (None, "[]"),
    (None, "[1]"),
    ("Edm.String", "{}"),
]


@pytest.mark.parametrize(("declared", "given"), REJECTED)
def test_values_that_do_not_fit(shared_table: Table, declared: str | None, given: str) -> None:
    annotation = f'"V@odata.type":"{declared}",' if declared is not None else ""
    text = f'{{"PartitionKey":"x","RowKey":"x",{annotation}"V":{given}}}'
    answer = shared_table.insert(text)
    assert answer.status == 400
    assert answer.rejection.code in {"InvalidInput", "InvalidValueType"}
    assert shared_table.page("$filter=PartitionKey%20eq%20'x'").rows == []


@pytest.mark.parametrize("given", ["{}", "[]"])
def test_values_that_are_no_scalars_are_invalid_input(shared_table: Table, given: str) -> None:
    assert shared_table.insert(content(None, given)).code == (400, "InvalidInput")


@pytest.mark.parametrize("given", ["2147483648", "-2147483649", "9223372036854775807", "1" * 30])
@pytest.mark.unverified
def test_an_integer_beyond_int32_needs_a_type(shared_table: Table, given: str) -> None:
    answer = shared_table.insert(content(None, given))
    assert answer.code == (400, "InvalidInput")


@pytest.mark.parametrize(("declared", "given"), [("Edm.Double", "5e-400"), (None, "1e-400")])
@pytest.mark.unverified
def test_double_underflow_does_not_break(shared_table: Table, declared: str | None, given: str) -> None:
    answer = shared_table.write("PUT", shared_table.at("p", "r"), content(declared, given))
    assert answer.status in {204, 400}


@pytest.mark.unverified
def test_more_than_seven_fraction_digits_are_cut_or_rejected(shared_table: Table) -> None:
    given = '"2014-05-07T08:20:53.12345678Z"'
    answer = shared_table.write("PUT", shared_table.at("p", "r"), content("Edm.DateTime", given))
    assert answer.status in {204, 400}
    if answer.status == 204:
        assert shared_table.get("p", "r").json()["V"].startswith("2014-05-07T08:20:53.123456")


@pytest.mark.parametrize(
    ("given", "shown"),
    [("1600-12-31T23:59:59Z", "12/31/1600 23:59:59"), ("0001-01-01T00:00:00Z", "01/01/0001 00:00:00")],
)
def test_dates_before_1601_are_out_of_range(shared_table: Table, given: str, shown: str) -> None:
    rejection = shared_table.insert(content("Edm.DateTime", f'"{given}"')).rejection
    assert rejection == (400, "OutOfRangeInput", f"The 'V' parameter of value '{shown}' is out of range.")


MALFORMED = ["", "{", "nonsense", "[]", '"text"', "5", "null", '{"A":1', '{"A":01}', '{"A":+1}', "{'A':1}", '{"A":1,}']
MALFORMED += ['{"A":NaN}', '{"A":Infinity}', '{"A":1}{"B":2}', '{"A" 1}', '{"A":"\\x"}', '{"A":tru}', '{"A":1} x']


@pytest.mark.parametrize("text", MALFORMED)
@pytest.mark.parametrize("method", ["POST", "PUT", "MERGE"])
def test_malformed_json_is_rejected(shared_table: Table, method: str, text: str) -> None:
    path = shared_table.path if method == "POST" else shared_table.at("malformed", "r")
    assert shared_table.write(method, path, text).code == (400, "InvalidInput")
    assert shared_table.page("$filter=PartitionKey%20eq%20'malformed'").rows == []


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
def test_deep_json_is_rejected(shared_table: Table, depth: int) -> None:
    answer = shared_table.insert(f'{{"PartitionKey":"p","RowKey":"d","V":{"[" * depth}{"]" * depth}}}')
    assert answer.code == (400, "InvalidInput")


@pytest.mark.parametrize("raw", [b'{"A":"\xff"}', b'{"A":"\xc3"}', b"\xff\xfe{\x00}\x00"])
def test_a_body_that_is_not_utf8_is_rejected(shared_table: Table, raw: bytes) -> None:
    answer = shared_table.client.send("PUT", shared_table.at("u", "u"), body=raw)
    assert answer.code == (400, "InvalidInput")


@pytest.mark.unverified
def test_half_a_surrogate_pair_does_not_break(shared_table: Table) -> None:
    answer = shared_table.write("PUT", shared_table.at("p", "r"), '{"A":"\\ud83d"}')
    assert answer.status in {204, 400}
    shared_table.get("p", "r").expect(200).json()


def test_a_type_may_change(table: Table) -> None:
    for value in ("1", '"x"', "true", "2.5"):
        table.write("MERGE", table.at("p", "r"), f'{{"V":{value}}}').expect(204)
        assert literal(table.get("p", "r").body, "V") == value
