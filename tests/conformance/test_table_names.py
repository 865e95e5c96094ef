"""Reference §5.1: table names."""

from collections.abc import Callable

import pytest

from .client import Client

Note = Callable[[str], str]
INVALID = (400, "InvalidResourceName", "The specifed resource name contains invalid characters.")
ILLEGAL = ["1abc", "9", "_abc", "abc_def", "abc-def", "abc.def", "abc def", " abc", "abc ", "äbc", "abç", "日本語表"]
ILLEGAL += ["abc/def", "abc\\def", "abc'd", "abc$", "$abc", "abc#", "abc?d", "abc\n", "abc\u0000", "0123456789"]
SHORT_OR_LONG = ["a", "ab", "a" * 64, "a" * 300]


def create(client: Client, name: str) -> object:
    """Try to create a table; what came is status, code and message."""
    escaped = "".join(f"\\u{ord(char):04x}" for char in name)
    return client.send("POST", "/Tables", body=f'{{"TableName":"{escaped}"}}').rejection


@pytest.mark.parametrize("name", [name for name in ILLEGAL if len(name) >= 3])
def test_illegal_characters(client: Client, name: str) -> None:
    assert create(client, name) == INVALID


@pytest.mark.parametrize("name", SHORT_OR_LONG)
def test_table_name_length_is_limited(client: Client, name: str) -> None:
    rejection = client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').rejection
    assert rejection[:2] == (400, "OutOfRangeInput")


@pytest.mark.unverified
@pytest.mark.parametrize("name", SHORT_OR_LONG)
def test_length_has_a_text(client: Client, name: str) -> None:
    rejection = client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').rejection
    assert rejection.message == "The specified resource name length is not within the permissible limits."


@pytest.mark.unverified
@pytest.mark.parametrize("name", ["tables", "Tables", "TABLES"])
def test_tables_is_reserved(client: Client, name: str) -> None:
    assert client.send("POST", "/Tables", body=f'{{"TableName":"{name}"}}').code == (400, "InvalidResourceName")


@pytest.mark.parametrize("suffix", ["", "0", "Z9", "aBcDeFg"])
def test_letters_and_digits(client: Client, name: str, disposable: Note, suffix: str) -> None:
    given = disposable(name + suffix)
    answer = client.send("POST", "/Tables", body=f'{{"TableName":"{given}"}}').expect(201)
    assert answer.json()["TableName"] == given


def test_the_longest_and_the_shortest(client: Client, name: str, disposable: Note) -> None:
    longest = disposable(name.ljust(63, "x"))
    client.send("POST", "/Tables", body=f'{{"TableName":"{longest}"}}').expect(201)
    client.send("GET", f"/Tables('{longest}')").expect(200)
    for shortest in ("zq7", "Q7z"):
        answer = client.send("POST", "/Tables", body=f'{{"TableName":"{shortest}"}}')
        if answer.status == 201:  # another test run may hold this name
            disposable(shortest)
        assert answer.status in {201, 409}


def test_case_is_kept_and_does_not_distinguish(client: Client, name: str, disposable: Note) -> None:
    given = disposable(name.replace("c", "C"))
    client.send("POST", "/Tables", body=f'{{"TableName":"{given}"}}').expect(201)
    for other in (given.lower(), given.upper(), given):
        rejection = client.send("POST", "/Tables", body=f'{{"TableName":"{other}"}}').rejection
        assert rejection == (409, "TableAlreadyExists", "The table specified already exists.")
        assert client.send("GET", f"/Tables('{other}')").expect(200).json()["TableName"] == given
    client.send("DELETE", f"/Tables('{given.upper()}')").expect(204)
    client.send("GET", f"/Tables('{given}')").expect(404)


@pytest.mark.parametrize("content", ['{"TableName":""}', "{}", '{"TableName":null}', '{"TableName":5}', "[]", "{", ""])
def test_a_body_that_names_no_table(client: Client, content: str) -> None:
    answer = client.send("POST", "/Tables", body=content)
    assert answer.status == 400
    assert answer.rejection.code in {"InvalidInput", "PropertiesNeedValue", "OutOfRangeInput", "InvalidResourceName"}


def test_malformed_json_is_invalid_input(client: Client, name: str) -> None:
    for content in ('{"TableName":', "[]", "", f'{{"TableName":"{name}"', '{"TableName":["a"]}'):
        assert client.send("POST", "/Tables", body=content).code == (400, "InvalidInput")


def test_other_members_are_rejected(client: Client, name: str) -> None:
    answer = client.send("POST", "/Tables", body=f'{{"TableName":"{name}","Other":"x"}}')
    assert answer.code == (400, "InvalidInput")
    client.send("GET", f"/Tables('{name}')").expect(404)


@pytest.mark.parametrize("path", ["/ab", "/a_b", "/a-b", "/1abc", f"/{'a' * 64}"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_name_that_no_table_can_have_is_rejected_in_addresses(client: Client, path: str, method: str) -> None:
    answer = client.send(method, path, body='{"PartitionKey":"p","RowKey":"r"}' if method == "POST" else None)
    assert answer.status in {400, 404}
    assert answer.rejection.code in {
        "InvalidResourceName",
        "OutOfRangeInput",
        "InvalidInput",
        "TableNotFound",
        "InvalidUri",
        "ResourceNotFound",
    }
