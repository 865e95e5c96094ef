"""Reference §9: the If-Match matrix, verb × header × what is there."""

from typing import NamedTuple

import pytest

from .answers import Rejection
from .tables import STALE, Table, entity

SUCCESS = Rejection(204, "", "")
NOT_FOUND = Rejection(404, "ResourceNotFound", "The specified resource does not exist.")
NOT_SATISFIED = Rejection(
    412, "UpdateConditionNotSatisfied", "The update condition specified in the request was not satisfied."
)
BOTH = Rejection(
    400,
    "InvalidInput",
    "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. Please specify either one of "
    "the headers or none of them.",
)
NO_ETAGS = Rejection(
    400,
    "InvalidInput",
    "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.",
)
WRITES = ["PUT", "MERGE", "PATCH"]


def malformed(tag: str) -> Rejection:
    """What a tag that is none gives."""
    return Rejection(
        400,
        "InvalidInput",
        f"The etag value '{tag}' specified in one of the request headers is not valid. Please make sure only one etag "
        "value is specified and is valid.",
    )


class Row(NamedTuple):
    """One line of the matrix: a header, then what an entity that is missing and one that exists give."""

    if_match: str | None
    missing: Rejection
    exists: Rejection


MALFORMED = ["foo", '"x"', "W/foo", "''", 'W/"a",W/"b"', 'W/"a", W/"b"', "W/", '"', '*,W/"a"', "**"]
UPDATES = [
    Row(None, SUCCESS, SUCCESS),
    Row("*", NOT_FOUND, SUCCESS),
    Row(STALE, NOT_FOUND, NOT_SATISFIED),
    Row('W/"foo"', NOT_FOUND, NOT_SATISFIED),
    Row('W/"0x5B168C7B6E589D2"', NOT_FOUND, NOT_SATISFIED),
    Row('W/""', NOT_FOUND, NOT_SATISFIED),
    *(Row(tag, malformed(tag), malformed(tag)) for tag in MALFORMED),
]
DELETES = [row for row in UPDATES if row.if_match is not None]


def attempt(table: Table, method: str, if_match: str | None, address: str) -> Rejection:
    """Write or delete under a condition."""
    body = None if method == "DELETE" else {"B": 2}
    return table.write(method, address, body, If_Match=if_match).rejection


@pytest.mark.parametrize("row", UPDATES, ids=lambda row: str(row.if_match))
@pytest.mark.parametrize("method", WRITES)
def test_update_of_an_existing_entity(table: Table, method: str, row: Row) -> None:
    table.add(entity("p", "r", A=1))
    before = table.get("p", "r").body
    assert attempt(table, method, row.if_match, table.at("p", "r")) == row.exists
    after = table.get("p", "r")
    if row.exists == SUCCESS:
        assert after.json()["B"] == 2
        assert ("A" in after.json()) is (method != "PUT")
    else:
        assert after.body == before


@pytest.mark.parametrize("row", UPDATES, ids=lambda row: str(row.if_match))
@pytest.mark.parametrize("method", WRITES)
def test_update_of_a_missing_entity(table: Table, method: str, row: Row) -> None:
    assert attempt(table, method, row.if_match, table.at("p", "r")) == row.missing
    assert len(table.page().rows) == (1 if row.missing == SUCCESS else 0)


@pytest.mark.parametrize("row", DELETES, ids=lambda row: str(row.if_match))
def test_delete_of_an_existing_entity(table: Table, row: Row) -> None:
    table.add(entity("p", "r", A=1))
    assert attempt(table, "DELETE", row.if_match, table.at("p", "r")) == row.exists
    assert len(table.page().rows) == (0 if row.exists == SUCCESS else 1)


@pytest.mark.parametrize("row", DELETES, ids=lambda row: str(row.if_match))
def test_delete_of_a_missing_entity(table: Table, row: Row) -> None:
    assert attempt(table, "DELETE", row.if_match, table.at("p", "r")) == row.missing


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_current_etag_is_accepted(table: Table, method: str) -> None:
    tag = table.insert(entity("p", "r", A=1)).expect(201).etag
    assert attempt(table, method, tag, table.at("p", "r")) == SUCCESS
    second = NOT_FOUND if method == "DELETE" else NOT_SATISFIED
    assert attempt(table, method, tag, table.at("p", "r")) == second


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
@pytest.mark.parametrize("colon", [":", "%3a"])
@pytest.mark.unverified
def test_the_current_tag_in_other_spellings(table: Table, method: str, colon: str) -> None:
    """Some clients decode the tag; comparing the instant as well is harmless."""
    tag = table.insert(entity("p", "r")).expect(201).etag
    assert attempt(table, method, tag.replace("%3A", colon), table.at("p", "r")) == SUCCESS


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_the_tag_of_another_entity(table: Table, method: str) -> None:
    table.add(entity("p", "r"))
    other = table.insert(entity("p", "other")).expect(201).etag
    assert attempt(table, method, other, table.at("p", "r")) == NOT_SATISFIED


@pytest.mark.unverified
@pytest.mark.parametrize("exists", [True, False])
def test_delete_without_a_condition_is_rejected(table: Table, exists: bool) -> None:
    if exists:
        table.add(entity("p", "r"))
    answer = table.write("DELETE", table.at("p", "r"))
    assert answer.status == 400
    assert answer.rejection.code in {"InvalidInput", "MissingRequiredHeader"}
    assert len(table.page().rows) == int(exists)


@pytest.mark.parametrize("tag", ["*", STALE])
@pytest.mark.parametrize("exists", [True, False])
def test_if_none_match(table: Table, tag: str, exists: bool) -> None:
    if exists:
        table.add(entity("p", "r"))
    for method, words in [("PUT", "PUT"), ("DELETE", "DELETE")]:
        body = None if method == "DELETE" else "{}"
        answer = table.write(method, table.at("p", "r"), body, If_None_Match=tag)
        message = f"If-None-Match HTTP header cannot be specified for {words} operations."
        assert answer.rejection == (400, "InvalidInput", message)
    assert len(table.page().rows) == int(exists)


@pytest.mark.unverified
@pytest.mark.parametrize("method", ["MERGE", "PATCH"])
def test_if_none_match_on_merge_is_rejected(table: Table, method: str) -> None:
    assert table.write(method, table.at("p", "r"), "{}", If_None_Match="*").code == (400, "InvalidInput")


@pytest.mark.parametrize("method", [*WRITES, "DELETE"])
def test_if_match_with_if_none_match(table: Table, method: str) -> None:
    body = None if method == "DELETE" else "{}"
    assert table.write(method, table.at("p", "r"), body, If_Match="*", If_None_Match="*").rejection == BOTH


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_neither_on_an_insert(table: Table, header: str) -> None:
    headers = {header: "*"}
    answer = table.client.send("POST", table.path, headers=headers, body='{"PartitionKey":"p","RowKey":"r"}')
    assert answer.rejection == NO_ETAGS
    assert table.page().rows == []


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_neither_on_the_creation_of_a_table(missing: Table, header: str) -> None:
    body = f'{{"TableName":"{missing.name}"}}'
    assert missing.client.send("POST", "/Tables", headers={header: "*"}, body=body).rejection == NO_ETAGS
    missing.client.send("GET", f"/Tables('{missing.name}')").expect(404)


def test_existence_comes_before_the_tag(table: Table) -> None:
    for method in (*WRITES, "DELETE"):
        assert attempt(table, method, STALE, table.at("p", "r")) == NOT_FOUND


def test_blanks_around_the_tag_are_no_part_of_it(table: Table) -> None:
    tag = table.insert(entity("p", "r")).expect(201).etag
    assert attempt(table, "MERGE", f" {tag} ", table.at("p", "r")) == SUCCESS
