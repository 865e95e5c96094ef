import json
from typing import Any

import pytest

from lazulite.engine.contract import Engine
from lazulite.table.model.edm import parse_datetime
from tests.table.client import BASE, Client, header

PATH = "people(PartitionKey='p',RowKey='r')"
STALE = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""


@pytest.fixture(name="people", autouse=True)
async def _people(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "people"})


async def _insert(client: Client) -> str:
    response = await client("POST", "people", body={"PartitionKey": "p", "RowKey": "r", "A": 1, "B": 1})
    etag = header(response, "ETag")
    assert etag is not None
    return etag


async def _stored(client: Client) -> dict[str, Any] | None:
    response = await client("GET", PATH)
    if response.status == 404:
        return None
    found = json.loads(response.body)
    assert isinstance(found, dict)
    return {name: value for name, value in found.items() if name in "ABC"}


# The matrix of reference §9: (verb, If-Match, exists) -> status and what is stored afterwards.
KEPT = {"A": 1, "B": 1}
REPLACED = {"C": 2}
MERGED = {"A": 1, "B": 1, "C": 2}
MATRIX = [
    ("PUT", None, False, 204, REPLACED),
    ("PUT", None, True, 204, REPLACED),
    ("PUT", "*", False, 404, None),
    ("PUT", "*", True, 204, REPLACED),
    ("PUT", "current", True, 204, REPLACED),
    ("PUT", STALE, True, 412, KEPT),
    ("PUT", STALE, False, 404, None),
    ("PUT", "foo", True, 400, KEPT),
    *(
        (verb, *row)
        for verb in ("MERGE", "PATCH")
        for row in (
            (None, False, 204, REPLACED),
            (None, True, 204, MERGED),
            ("*", False, 404, None),
            ("*", True, 204, MERGED),
            ("current", True, 204, MERGED),
            (STALE, True, 412, KEPT),
            (STALE, False, 404, None),
            ("foo", True, 400, KEPT),
        )
    ),
    ("DELETE", None, True, 400, KEPT),
    ("DELETE", "*", False, 404, None),
    ("DELETE", "*", True, 204, None),
    ("DELETE", "current", True, 204, None),
    ("DELETE", STALE, True, 412, KEPT),
    ("DELETE", "foo", True, 400, KEPT),
]


@pytest.mark.parametrize(("verb", "condition", "exists", "status", "stored"), MATRIX)
async def test_the_if_match_matrix(
    client: Client, verb: str, condition: str | None, exists: bool, status: int, stored: dict[str, int] | None
) -> None:
    etag = await _insert(client) if exists else STALE
    headers = {} if condition is None else {"if-match": etag if condition == "current" else condition}
    body: Any = b"" if verb == "DELETE" else {"C": 2}
    response = await client(verb, PATH, body=body, headers=headers)
    assert response.status == status
    assert (header(response, "ETag") is not None) == (status == 204 and verb != "DELETE")
    assert await _stored(client) == stored


async def test_an_insert_answers_as_preferred(client: Client) -> None:
    body = {"PartitionKey": "p'", "RowKey": "r s", "A": None}
    quiet = await client("POST", "people()", "timeout=20", body, {"prefer": "return-no-content"})
    location = f"{BASE}people(PartitionKey='p''',RowKey='r%20s')"
    assert (quiet.status, header(quiet, "Location"), header(quiet, "DataServiceId")) == (204, location, location)
    again = await client("POST", "people", body=body)
    assert (again.status, again.error_code) == (409, "EntityAlreadyExists")
    echoed = await client("POST", "people", body={**body, "RowKey": ""}, headers={"prefer": "return-content"})
    assert (echoed.status, header(echoed, "Preference-Applied")) == (201, "return-content")
    assert list(json.loads(echoed.body)) == ["PartitionKey", "RowKey", "Timestamp"]
    assert header(echoed, "ETag") is not None


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        ({"PartitionKey": "p"}, {}, 400, "PropertiesNeedValue"),
        ({"PartitionKey": "p", "RowKey": None}, {}, 400, "PropertiesNeedValue"),
        ({"PartitionKey": "p/", "RowKey": "r"}, {}, 400, "OutOfRangeInput"),
        ({"PartitionKey": "p" * 1025, "RowKey": "r"}, {}, 400, "KeyValueTooLarge"),
        ({"PartitionKey": "p", "RowKey": "r"}, {"if-match": "*"}, 400, "InvalidInput"),
        ({"PartitionKey": "p", "RowKey": "r"}, {"prefer": "nothing"}, 400, "InvalidHeaderValue"),
        ({"PartitionKey": "p", "RowKey": "r"}, {"content-type": "text/plain"}, 415, "MediaTypeNotSupported"),
        ({"PartitionKey": "p", "RowKey": "r"}, {"content-type": "application/atom+xml"}, 415, "AtomFormatNotSupported"),
        ({"PartitionKey": "p", "RowKey": "r"}, {"accept": "application/atom+xml"}, 415, "AtomFormatNotSupported"),
        ([], {}, 400, "InvalidInput"),
    ],
)
async def test_inserts_rejected(client: Client, body: Any, headers: dict[str, str], status: int, code: str) -> None:
    response = await client("POST", "people", body=body, headers=headers)
    assert (response.status, response.error_code) == (status, code)
    assert json.loads((await client("GET", "people()")).body) == {"value": []}


async def test_a_merge_may_not_break_a_limit(client: Client) -> None:
    many = {f"P{index}": index for index in range(252)}
    await client("PUT", PATH, body=many)
    response = await client("PATCH", PATH, body={"One": "more"})
    assert response.error_code == "TooManyProperties"
    assert (await client("PATCH", PATH, body={"P0": "changed type"})).status == 204


async def test_nulls_leave_merged_properties_and_end_replaced_ones(client: Client) -> None:
    await _insert(client)
    await client("PATCH", PATH, body={"A": None})
    assert await _stored(client) == {"A": 1, "B": 1}
    await client("PUT", PATH, body={"A": None, "B": 2})
    assert await _stored(client) == {"B": 2}


async def test_every_write_is_newer_though_the_clock_steps_back(engine: Engine) -> None:
    client = Client(engine)
    etags = [await _insert(client)]
    for _ in range(5):
        response = await client("PATCH", PATH, body={})
        etags.append(header(response, "ETag") or "")
    instants = [parse_datetime(etag.partition("'")[2].partition("'")[0].replace("%3A", ":")) for etag in etags]
    assert instants == sorted(set(instants))


async def test_writes_to_a_table_that_is_not_there(client: Client) -> None:
    response = await client("POST", "nobody", body={"PartitionKey": "p", "RowKey": "r"})
    assert (response.status, response.error_code) == (404, "TableNotFound")


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize("version", ["2009-04-14", "2009-09-19"])
async def test_before_2011_08_18_there_are_no_upserts(client: Client, method: str, version: str) -> None:
    response = await client(method, PATH, body={"C": 2}, headers={"x-ms-version": version})
    assert (response.status, response.error_code) == (400, "InvalidInput")
    assert b"If-Match HTTP header must be specified" in response.body
    # With a condition, and since there are upserts, only the format is rejected.
    for headers in ({"x-ms-version": version, "if-match": "*"}, {"x-ms-version": "2011-08-18"}):
        later = await client(method, PATH, body={"C": 2}, headers=headers)
        assert later.error_code == "JsonFormatNotSupported"
    assert await _stored(client) is None
