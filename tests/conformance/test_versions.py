"""Reference §2: `x-ms-version`, `api-version` and the OData version headers."""

import pytest

from .client import Client, HeaderChanges
from .sas import account_sas
from .signing import anonymous
from .tables import Table, entity

ACCEPTED = ["2015-12-11", "2016-05-31", "2017-04-17", "2018-03-28", "2018-11-09", "2019-02-02", "2019-07-07"]
ACCEPTED += ["2019-12-12", "2020-02-10", "2020-04-08", "2020-12-06", "2021-06-08", "2026-10-06", "2031-12-24"]


@pytest.mark.parametrize("version", ACCEPTED)
def test_a_version_is_accepted_and_echoed(client: Client, version: str) -> None:
    answer = client.send("GET", "/Tables", "$top=1", headers={"x-ms-version": version}).expect(200)
    assert answer.header("x-ms-version") == version


@pytest.mark.parametrize(
    "version", ["yesterday", "2019-02-02x", "20190202", "19-02-02", "2019-2-2", "2019-02-30", "2019-13-01"]
)
def test_a_malformed_version_is_rejected(client: Client, version: str) -> None:
    answer = client.send("GET", "/Tables", headers={"x-ms-version": version})
    assert answer.rejection == (
        400,
        "InvalidHeaderValue",
        "The value for one of the HTTP headers is not in the correct format.",
    )


@pytest.mark.unverified
def test_a_request_without_a_version_is_served_as_json(client: Client) -> None:
    answer = client.send("GET", "/Tables", "$top=1", headers={"x-ms-version": None}).expect(200)
    assert "value" in answer.json()


def test_api_version_comes_before_the_header_and_the_header_before_sv(client: Client) -> None:
    sas = account_sas(client.endpoint, {"sv": "2018-11-09"})
    for query, header, applied in [
        (sas + "&api-version=2019-07-07", "2018-03-28", "2019-07-07"),
        (sas, "2018-03-28", "2018-03-28"),
        (sas, None, "2018-11-09"),
    ]:
        answer = client.send("GET", "/Tables", query, headers={"x-ms-version": header}, signer=anonymous)
        assert answer.expect(200).header("x-ms-version") == applied


ODATA_VERSIONS: list[HeaderChanges] = [
    {"DataServiceVersion": None, "MaxDataServiceVersion": None},
    {"DataServiceVersion": "3.0;", "MaxDataServiceVersion": None},
    {"DataServiceVersion": "3.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"},
    {"DataServiceVersion": "1.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"},
    {"DataServiceVersion": None, "MaxDataServiceVersion": "3.0"},
]


@pytest.mark.parametrize("headers", ODATA_VERSIONS)
def test_odata_version_headers_may_take_any_form_or_be_absent(table: Table, headers: HeaderChanges) -> None:
    table.client.send("POST", table.path, body='{"PartitionKey":"p","RowKey":"r"}', headers=headers).expect(201)
    table.client.send("GET", table.path, headers=headers).expect(200)
    delete = {**headers, "If-Match": "*", "Accept": "application/json"}
    table.client.send("DELETE", table.at("p", "r"), headers=delete).expect(204)


OLD: list[HeaderChanges] = [
    {"DataServiceVersion": "1.0", "MaxDataServiceVersion": "1.0"},
    {"DataServiceVersion": "2.0;", "MaxDataServiceVersion": "2.0;NetFx"},
    {"x-ms-version": "2012-02-12"},
    {"x-ms-version": "2011-08-18"},
]


@pytest.mark.parametrize("headers", OLD)
def test_json_needs_version_2013_08_15_and_odata_3(table: Table, headers: HeaderChanges) -> None:
    answer = table.client.send("POST", table.path, body='{"PartitionKey":"p","RowKey":"r"}', headers=headers)
    assert answer.status == 415
    assert table.page().rows == []


def test_json_before_odata_3_has_a_code_of_its_own(table: Table) -> None:
    old = {"DataServiceVersion": "2.0", "MaxDataServiceVersion": "2.0"}
    answer = table.client.send("POST", table.path, body='{"PartitionKey":"p","RowKey":"r"}', headers=old)
    assert answer.rejection == (415, "JsonFormatNotSupported", "JSON format is not supported.")


def test_a_row_is_the_same_at_every_version(table: Table) -> None:
    table.add(entity("p", "r", A=1, B="2"))
    bodies = {
        table.client.send("GET", table.at("p", "r"), headers={"x-ms-version": version}).expect(200).body
        for version in ACCEPTED
    }
    assert len(bodies) == 1
