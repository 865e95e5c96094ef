import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.table.credentials import TableSas, sign_table_sas
from lazulite.table.model import property_reader, row
from lazulite.table.operations.entity_read import clip
from tests.table.client import FOREVER, Client, header, values

texts = st.sampled_from(["", "a", "a\0", "b", "\uffff", "\U0001f600"])
keys = st.tuples(texts, texts)
ranges = st.builds(KeyRange, keys, st.one_of(st.none(), keys))


@pytest.fixture(name="people", autouse=True)
async def _people(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "people"})
    for partition in "abc":
        for number in range(4):
            body = {"PartitionKey": partition, "RowKey": f"{number}", "Age": number * 10}
            await client("POST", "people", body=body)


async def _query(client: Client, text: str, more: str = "") -> tuple[list[str], str, int, int]:
    response = await client("GET", "people()", f"$filter={quote(text, safe='')}{more}")
    timing = header(response, "Server-Timing") or ""
    match = re.fullmatch(r'query;desc="([a-z ]+)";dur=[0-9.]+, scanned;desc="(\d+)", returned;desc="(\d+)"', timing)
    assert match, timing
    found = [entity["PartitionKey"] + entity["RowKey"] for entity in values(response)]
    assert len(found) == int(match[3])
    return found, match[1], int(match[2]), int(match[3])


@pytest.mark.parametrize(
    ("text", "rows", "name", "scanned"),
    [
        ("PartitionKey eq 'b' and RowKey eq '2'", "b2", "point", 1),
        ("PartitionKey eq 'b' and RowKey ge '2'", "b2 b3", "row range", 2),
        ("PartitionKey eq 'b' and RowKey gt '0' and RowKey lt '3' and Age gt 10", "b2", "row range", 2),
        ("PartitionKey eq 'b' and Age eq 10", "b1", "partition scan", 4),
        ("PartitionKey gt 'a' and PartitionKey lt 'c' and Age lt 20", "b0 b1", "partition range", 4),
        ("Age eq 30", "a3 b3 c3", "table scan", 12),
        (
            "(PartitionKey eq 'a' and RowKey eq '1') or (PartitionKey eq 'c' and RowKey eq '2')",
            "a1 c2",
            "table scan",
            2,
        ),
        ("PartitionKey eq 'b' and (RowKey eq '0' or RowKey eq '3')", "b0 b3", "partition scan", 2),
        ("PartitionKey eq 'x' and PartitionKey eq 'y'", "", "partition scan", 0),
        ("false", "", "table scan", 0),
        (
            "Age eq 30 and not (A eq 1 or B eq 1 or C eq 1 or D eq 1 or E eq 1 or F eq 1 or G eq 1 or H eq 1)",
            "a3 b3 c3",
            "table scan",
            12,
        ),
    ],
)
async def test_each_class_touches_its_rows_only(client: Client, text: str, rows: str, name: str, scanned: int) -> None:
    found, query_class, rows_scanned, _ = await _query(client, text)
    assert found == rows.split()
    assert (query_class, rows_scanned) == (name, scanned)


async def test_a_point_query_says_its_class(client: Client) -> None:
    response = await client("GET", "people(PartitionKey='a',RowKey='1')", "$select=Age,Gone")
    assert json.loads(response.body) == {"Age": 10, "Gone": None}
    assert 'query;desc="point"' in (header(response, "Server-Timing") or "")
    assert header(response, "ETag") is not None
    for path in ("people(PartitionKey='a',RowKey='9')", "nobody(PartitionKey='a',RowKey='9')"):
        assert (await client("GET", path)).status == 404


async def test_a_token_survives_the_row_it_names(client: Client) -> None:
    response = await client("GET", "people()", "$top=5")
    assert len(values(response)) == 5
    await client("DELETE", "people(PartitionKey='b',RowKey='1')", headers={"if-match": "*"})
    partition, row = (header(response, f"x-ms-continuation-Next{name}Key") for name in ("Partition", "Row"))
    rest = await client("GET", "people()", f"NextPartitionKey={partition}&NextRowKey={row}")
    assert [entity["PartitionKey"] + entity["RowKey"] for entity in values(rest)][:2] == ["b2", "b3"]


async def test_a_token_for_a_partition_starts_there_and_stays_in_the_filter(client: Client) -> None:
    found, _, _, _ = await _query(client, "PartitionKey lt 'c' and RowKey ge '2'", "&NextPartitionKey=b")
    assert found == ["b2", "b3"]


async def test_a_sas_sees_its_key_range_only(client: Client) -> None:
    sas = TableSas(
        table="people",
        permission="r",
        expiry=FOREVER,
        start_partition="a",
        start_row="2",
        end_partition="b",
        end_row="1",
    )
    client.sas = sign_table_sas(DEVELOPMENT_ACCOUNT, sas)
    found, _, scanned, _ = await _query(client, "")
    assert found == ["a2", "a3", "b0", "b1"]
    assert scanned == 4
    assert (await _query(client, "PartitionKey eq 'c'"))[0] == []
    assert (await _query(client, "", "&NextPartitionKey=c"))[0] == []
    assert (await client("GET", "people(PartitionKey='b',RowKey='1')")).status == 200
    rejected = await client("GET", "people(PartitionKey='b',RowKey='2')")
    assert (rejected.status, rejected.error_code) == (403, "AuthorizationFailure")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("$top=1001", 400, "InvalidInput"),
        ("$top=-1", 400, "InvalidInput"),
        ("$filter=PartitionKey%20eq%20null", 400, "InvalidInput"),
        ("$filter=aaa%20bbb%20ccc", 400, "InvalidInput"),
        ("$orderby=Age", 501, "NotImplemented"),
        ("$filter=startswith(RowKey,'a')", 501, "NotImplemented"),
        ("NextPartitionKey=1!4!x", 400, "InvalidQueryParameterValue"),
        ("$format=atom", 415, "AtomFormatNotSupported"),
    ],
)
async def test_rejections(client: Client, query: str, status: int, code: str) -> None:
    response = await client("GET", "people()", query)
    assert (response.status, response.error_code) == (status, code)


async def test_no_rows_no_token(client: Client) -> None:
    response = await client("GET", "people()", "$top=0")
    assert values(response) == []
    assert header(response, "x-ms-continuation-NextPartitionKey") is None
    exact = await client("GET", "people()", "$top=12")
    assert len(values(exact)) == 12
    assert header(exact, "x-ms-continuation-NextPartitionKey") is None


@pytest.mark.parametrize("path", ["people()", "people(PartitionKey='a',RowKey='0')"])
@pytest.mark.parametrize(
    ("version", "stated", "code"),
    [
        ("2009-09-19", {}, "InvalidInput"),
        ("2011-08-18", {}, ""),
        ("2013-08-15", {"maxdataserviceversion": "1.0"}, "InvalidInput"),
        ("2013-08-15", {"maxdataserviceversion": "2.0"}, ""),
        ("2013-08-15", {}, ""),
        ("2019-02-02", {"accept": "application/json", "maxdataserviceversion": "1.0"}, "JsonFormatNotSupported"),
        ("2019-02-02", {"accept": "application/json"}, ""),
    ],
)
async def test_select_needs_odata_2(client: Client, path: str, version: str, stated: dict[str, str], code: str) -> None:
    headers = {"accept": "application/atom+xml", "x-ms-version": version, **stated}
    assert (await client("GET", path, "$select=Age", headers=headers)).error_code == code
    if version == "2009-09-19":
        assert (await client("GET", path, "$select=", headers=headers)).error_code == ""


@pytest.mark.parametrize(
    ("text", "taken_apart"),
    [
        ("Gone eq 1 or Lost eq 2", 0),
        (" or ".join(f"(P{n} eq 1)" for n in range(9)), 1),
        (" or ".join("(Gone eq 1 and Lost eq 2)" for _ in range(9)), 1),
    ],
)
async def test_a_row_that_is_searched_often_is_taken_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch, text: str, taken_apart: int
) -> None:
    """To look for a property in a row takes longer the larger the row is: it is done a bounded number of times."""
    rows = len(values(await client("GET", "people()")))
    decode_row, decoded = row.decode_row, 0

    def count(value: bytes) -> row.DecodedRow:
        nonlocal decoded
        decoded += 1
        return decode_row(value)

    monkeypatch.setattr(property_reader, "decode_row", count)
    assert values(await client("GET", "people()", f"$filter={quote(text)}")) == []
    assert decoded == taken_apart * rows


def _holds(bounds: KeyRange, key: Key) -> bool:
    def order(each: Key) -> tuple[bytes, bytes]:
        return ordinal(each[0]), ordinal(each[1])

    return order(bounds.lower) <= order(key) and (bounds.upper is None or order(key) < order(bounds.upper))


@given(st.lists(ranges, max_size=3), ranges, keys)
def test_clipping_is_intersection(some: list[KeyRange], within: KeyRange, key: Key) -> None:
    clipped = clip(some, within)
    assert any(_holds(each, key) for each in clipped) == (
        _holds(within, key) and any(_holds(each, key) for each in some)
    )


@pytest.mark.parametrize("upper", [None, ("a", "")])
def test_an_empty_range_is_dropped(upper: Key | None) -> None:
    assert clip([KeyRange(("b", ""), upper)], KeyRange(("a", ""), ("a", "b"))) == ()
