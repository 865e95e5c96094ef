"""Reference §4: which format is spoken, by version, `$format`, Accept and the body's type."""

import pytest

from .answers import Answer
from .atom import ENTRY_TYPE, ERROR_TYPE, FEED_TYPE, VERSIONS, entity, old, writing
from .client import HeaderChanges
from .tables import Table

MINIMAL_TYPE = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
NONE_TYPE = "application/json;odata=nometadata;streaming=true;charset=utf-8"
BEFORE_JSON = [version for version in VERSIONS if version < "2013-08-15"]
BOTH = [version for version in VERSIONS if version >= "2013-08-15"]


def query(table: Table, headers: HeaderChanges, option: str = "") -> Answer:
    return table.client.send("GET", table.path, option, headers=headers)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("accept", [None, "*/*", "application/atom+xml", "application/xml", "text/html, */*;q=0.1"])
def test_atom_is_the_default_of_its_versions(shared_table: Table, version: str, accept: str | None) -> None:
    assert query(shared_table, old(version, Accept=accept)).expect(200).header("Content-Type") == FEED_TYPE


@pytest.mark.unverified
def test_without_a_version_the_response_is_atom(table: Table) -> None:
    unnamed = {**writing(), "x-ms-version": None}
    created = table.client.send("POST", table.path, headers=unnamed, body=entity()).expect(201)
    assert created.header("Content-Type") == ENTRY_TYPE
    assert query(table, {**old(), "x-ms-version": None}).expect(200).header("Content-Type") == FEED_TYPE


@pytest.mark.parametrize("version", BEFORE_JSON)
def test_there_was_no_json_before_2013_08_15(table: Table, version: str) -> None:
    headers = {"x-ms-version": version, "Accept": "application/json"}
    rejected = (415, "JsonFormatNotSupported", "JSON format is not supported.")
    answer = query(table, headers)
    assert answer.rejection == rejected
    assert answer.header("Content-Type") == ERROR_TYPE
    body = '{"PartitionKey":"p","RowKey":"r"}'
    given = {"x-ms-version": version, "Content-Type": "application/json", "Accept": "application/atom+xml"}
    assert table.client.send("POST", table.path, headers=given, body=body).rejection == rejected
    assert table.page().rows == []


@pytest.mark.parametrize("version", BOTH)
def test_json_and_atom_side_by_side(table: Table, version: str) -> None:
    three = {"DataServiceVersion": "3.0;NetFx", "MaxDataServiceVersion": "3.0;NetFx"}
    table.client.send("POST", table.path, headers={**writing(version), **three}, body=entity()).expect(201)
    for accept, option, expected in [
        ("application/json;odata=nometadata", "", NONE_TYPE),
        ("application/json", "$format=atom", FEED_TYPE),
        ("application/json", "$format=application/atom%2Bxml", FEED_TYPE),
        ("application/atom+xml", "$format=application/json;odata=nometadata", NONE_TYPE),
        ("application/atom+xml;q=0.1,application/json;odata=nometadata", "", NONE_TYPE),
        ("application/atom+xml,application/json;odata=nometadata;q=0.1", "", FEED_TYPE),
        ("application/atom+xml", "", FEED_TYPE),
    ]:
        answer = query(table, {**old(version, Accept=accept), **three}, option).expect(200)
        assert answer.header("Content-Type") == expected, (accept, option)


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("accept", [None, "*/*"])
def test_a_json_body_gets_a_json_response(table: Table, version: str, accept: str | None) -> None:
    given = {"x-ms-version": version, "Accept": accept}
    body = '{"PartitionKey":"p","RowKey":"r"}'
    for expected in (201, 409):
        answer = table.client.send("POST", table.path, headers=given, body=body).expect(expected)
        assert answer.header("Content-Type") == MINIMAL_TYPE


@pytest.mark.parametrize("version", BOTH)
def test_json_needs_odata_3_and_atom_does_not(shared_table: Table, version: str) -> None:
    for headers in ({"MaxDataServiceVersion": "2.0"}, {"MaxDataServiceVersion": None, "DataServiceVersion": "2.0;"}):
        answer = query(shared_table, {"x-ms-version": version, "Accept": "application/json", **headers})
        assert answer.code == (415, "JsonFormatNotSupported")
        assert answer.header("Content-Type") == ERROR_TYPE
        query(shared_table, {"x-ms-version": version, "Accept": "application/atom+xml", **headers}).expect(200)


def test_an_old_client_cannot_ask_for_json_by_the_url(shared_table: Table) -> None:
    assert query(shared_table, old(), "$format=json").expect(200).header("Content-Type") == FEED_TYPE


@pytest.mark.parametrize("version", VERSIONS)
def test_other_types_are_rejected(table: Table, version: str) -> None:
    answer = query(table, old(version, Accept="text/html"))
    assert answer.code == (415, "MediaTypeNotSupported")
    for given in (None, "application/xml", "text/plain"):
        answer = table.client.send("POST", table.path, headers=writing(version, Content_Type=given), body=entity())
        assert answer.code == (415, "MediaTypeNotSupported")
        assert answer.header("Content-Type") == ERROR_TYPE
    assert table.page().rows == []


@pytest.mark.parametrize("version", BOTH)
def test_verbose_json_was_never_spoken(shared_table: Table, version: str) -> None:
    answer = query(shared_table, {"x-ms-version": version, "Accept": "application/json;odata=verbose"})
    assert answer.code == (415, "JsonVerboseFormatNotSupported")


@pytest.mark.parametrize(
    "given", ["application/atom+xml;type=entry", "Application/Atom+XML; type=entry; charset=UTF-8"]
)
def test_an_entry_may_be_announced_in_any_spelling(table: Table, given: str) -> None:
    answer = table.client.send("POST", table.path, headers=writing(Content_Type=given), body=entity()).expect(201)
    assert answer.header("Content-Type") == ENTRY_TYPE


@pytest.mark.parametrize("version", ["2015-12-11", "2019-02-02"])
def test_atom_is_gone_since_2015_12_11(table: Table, version: str) -> None:
    rejected = (415, "AtomFormatNotSupported", "Atom format is not supported.")
    headers = {"x-ms-version": version, "Accept": "application/atom+xml"}
    for answer in (
        query(table, headers),
        query(table, {"x-ms-version": version}, "$format=atom"),
        table.client.send(
            "POST", table.path, headers={"x-ms-version": version, "Content-Type": "application/atom+xml"}, body=entity()
        ),
    ):
        assert answer.rejection == rejected
        assert answer.header("Content-Type") == MINIMAL_TYPE
    assert table.page().rows == []


def test_prefer_works_with_atom(table: Table) -> None:
    quiet = writing("2013-08-15", Prefer="return-no-content")
    answer = table.client.send("POST", table.path, headers=quiet, body=entity()).expect(204)
    assert answer.header("Preference-Applied") == "return-no-content"
    loud = writing("2013-08-15", Prefer="return-content")
    answer = table.client.send("POST", table.path, headers=loud, body=entity("p", "s")).expect(201)
    assert answer.header("Preference-Applied") == "return-content"
    assert answer.header("Content-Type") == ENTRY_TYPE


@pytest.mark.parametrize("version", BEFORE_JSON)
def test_preferences_came_with_2013_08_15(table: Table, version: str) -> None:
    headers = writing(version, Prefer="return-no-content")
    answer = table.client.send("POST", table.path, headers=headers, body=entity()).expect(201)
    assert answer.header("Preference-Applied") is None
    assert answer.header("Content-Type") == ENTRY_TYPE
