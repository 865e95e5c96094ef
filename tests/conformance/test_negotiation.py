"""Reference §4: request content types, Accept, `$format`, and the ASCII of JSON answers."""

from urllib.parse import quote

import pytest

from .client import Client
from .tables import Table, entity

LEVELS = ("nometadata", "minimalmetadata", "fullmetadata")
ACCEPTED = [(f"application/json;odata={level}", level) for level in LEVELS] + [
    ("application/json", "minimalmetadata"),
    ("application/json; odata=minimalmetadata", "minimalmetadata"),
    ("application/json; odata=fullmetadata", "fullmetadata"),
    ("application/json ; odata=nometadata", "nometadata"),
    ("Application/JSON;OData=FullMetadata", "fullmetadata"),
    ("application/json;odata=nometadata;q=0.9", "nometadata"),
    ("application/json;odata=nometadata;charset=utf-8", "nometadata"),
    ("application/json;odata=fullmetadata, text/plain;q=0.1", "fullmetadata"),
    ("text/html, application/json;odata=nometadata", "nometadata"),
    ("text/html;q=0.9,application/json;odata=nometadata;q=0.5", "nometadata"),
]
FORMATS = [(quote(f"application/json;odata={level}", safe=""), level) for level in LEVELS] + [
    ("json", "minimalmetadata"),
    ("application/json;odata=fullmetadata", "fullmetadata"),
    ("application%2Fjson%3Bodata%3Dminimalmetadata", "minimalmetadata"),
]
ATOM = (415, "AtomFormatNotSupported", "Atom format is not supported.")


def content_type(level: str) -> str:
    """What an answer at a level calls itself."""
    return f"application/json;odata={level};streaming=true;charset=utf-8"


@pytest.mark.parametrize(("accept", "level"), ACCEPTED)
def test_accept_header_decides_the_format(shared_table: Table, accept: str, level: str) -> None:
    answer = shared_table.query(accept=accept).expect(200)
    assert answer.header("Content-Type") == content_type(level)


@pytest.mark.parametrize(("text", "level"), FORMATS)
@pytest.mark.parametrize("accept", ["application/json;odata=nometadata", "application/atom+xml", None])
def test_format_comes_before_accept(shared_table: Table, text: str, level: str, accept: str | None) -> None:
    answer = shared_table.client.send("GET", shared_table.path, f"$format={text}", headers={"Accept": accept})
    assert answer.expect(200).header("Content-Type") == content_type(level)


@pytest.mark.parametrize(("text", "level"), FORMATS)
def test_format_on_writes(table: Table, text: str, level: str) -> None:
    answer = table.insert(entity("p", "r"), f"$format={text}").expect(201)
    assert answer.header("Content-Type") == content_type(level)
    assert "?" not in answer.required("Location")


@pytest.mark.unverified
@pytest.mark.parametrize("accept", ["*/*", None, "application/*"])
def test_without_a_preference_the_answer_is_minimal(shared_table: Table, accept: str | None) -> None:
    answer = shared_table.client.send("GET", shared_table.path, headers={"Accept": accept}).expect(200)
    assert answer.header("Content-Type") == content_type("minimalmetadata")


@pytest.mark.parametrize("accept", ["application/atom+xml", "application/atom+xml,application/xml", "application/xml"])
def test_atom_is_gone(shared_table: Table, accept: str) -> None:
    assert shared_table.query(accept=accept).rejection == ATOM


@pytest.mark.parametrize("query", ["$format=atom", "$format=application/atom%2Bxml"])
def test_atom_by_format_is_gone(shared_table: Table, query: str) -> None:
    assert shared_table.query(query).rejection == ATOM


@pytest.mark.parametrize("query", ["", "$format=application/json;odata=verbose", "$format=verbosejson"])
def test_verbose_json_is_rejected(shared_table: Table, query: str) -> None:
    answer = shared_table.query(query, accept="application/json;odata=verbose")
    if query == "$format=verbosejson":
        assert answer.status in {400, 415}
    else:
        assert answer.code == (415, "JsonVerboseFormatNotSupported")


def test_other_media_types_are_rejected(shared_table: Table) -> None:
    assert shared_table.query(accept="text/html").code == (415, "MediaTypeNotSupported")


def test_a_list_with_json_in_it_is_served(shared_table: Table) -> None:
    accept = "application/atom+xml,application/json;odata=nometadata;q=0.5"
    assert shared_table.query(accept=accept).status in {200, 415}
    accept = "application/json;odata=nometadata,application/atom+xml"
    assert shared_table.query(accept=accept).expect(200).header("Content-Type") == content_type("nometadata")


CONTENT_TYPES = [
    "application/json",
    "application/json;odata=nometadata",
    "application/json;odata=minimalmetadata",
    "application/json;odata=fullmetadata",
    "application/json; odata=fullmetadata",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8;odata=nometadata",
    "APPLICATION/JSON",
]


@pytest.mark.parametrize("given", CONTENT_TYPES)
def test_a_json_body_may_be_announced_in_any_spelling(table: Table, given: str) -> None:
    table.insert(entity("p", "r"), Content_Type=given).expect(201)
    table.write("MERGE", table.at("p", "r"), {"A": 1}, Content_Type=given).expect(204)


WRITES = [("POST", "/Tables"), ("POST", "/{table}")]
WRITES += [(method, "/{table}(PartitionKey='p',RowKey='r')") for method in ("PUT", "MERGE", "PATCH")]


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize("given", ["application/atom+xml", "application/atom+xml;type=entry;charset=utf-8"])
def test_an_atom_body_is_rejected(table: Table, method: str, path: str, given: str) -> None:
    answer = table.client.send(method, path.format(table=table.name), body="<entry/>", headers={"Content-Type": given})
    assert answer.rejection == ATOM


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize("given", [None, "text/plain", "application/xml", "application/octet-stream", "nonsense"])
def test_other_bodies_are_rejected(table: Table, method: str, path: str, given: str | None) -> None:
    text = '{"PartitionKey":"p","RowKey":"r","TableName":"neverMade"}'
    answer = table.client.send(method, path.format(table=table.name), body=text, headers={"Content-Type": given})
    codes = {"MediaTypeNotSupported"} | ({"AtomFormatNotSupported"} if given == "application/xml" else set())
    assert answer.status == 415
    assert answer.rejection.code in codes
    assert table.page().rows == []


@pytest.mark.parametrize(
    "text", ["grün", "€uro", "日本", "😀 astral", "\u0085\u2028\u2029", "\x00\x01\x1f\x7f", "\ufeffbom"]
)
@pytest.mark.parametrize("level", LEVELS)
def test_json_answers_are_ascii_or_utf8_and_mean_what_was_sent(table: Table, text: str, level: str) -> None:
    table.insert(entity("p", "r", Text=text)).expect(201)
    answer = table.get("p", "r", accept=f"application/json;odata={level}").expect(200)
    assert answer.json()["Text"] == text
    answer.body.decode("utf-8")


def test_non_ascii_characters_are_escaped_as_recorded(table: Table) -> None:
    table.insert(entity("p", "r", Text="é日😀")).expect(201)
    assert b'"Text":"\\u00e9\\u65e5\\ud83d\\ude00"' in table.get("p", "r").body


def test_raw_utf8_and_escapes_are_the_same_on_the_way_in(table: Table) -> None:
    for row, text in [
        ("1", '"é日😀"'),
        ("2", '"\\u00e9\\u65e5\\ud83d\\ude00"'),
        ("3", '"\\u00E9\\u65E5\\uD83D\\uDE00"'),
    ]:
        table.insert(f'{{"PartitionKey":"p","RowKey":"{row}","Text":{text}}}').expect(201)
    assert [row["Text"] for row in table.page().rows] == ["é日😀"] * 3


def test_accept_charset_is_ignored(client: Client) -> None:
    client.send("GET", "/Tables", "$top=1", headers={"Accept-Charset": "UTF-8"}).expect(200)
