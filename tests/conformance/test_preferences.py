"""Reference §4: `Prefer` and `Preference-Applied`."""

from collections.abc import Callable

import pytest

from .client import Client
from .tables import Table, entity

ROWS = [(None, 201, None), ("return-content", 201, "return-content"), ("return-no-content", 204, "return-no-content")]


@pytest.mark.parametrize(("given", "status", "applied"), ROWS)
def test_preference_of_an_insert(table: Table, given: str | None, status: int, applied: str | None) -> None:
    answer = table.insert(entity("p", "r"), Prefer=given).expect(status)
    assert answer.header("Preference-Applied") == applied
    assert (answer.body == b"") is (status == 204)
    table.get("p", "r").expect(200)


@pytest.mark.parametrize(("given", "status", "applied"), ROWS)
def test_preference_of_create_table(
    client: Client,
    name: str,
    disposable: Callable[[str], str],
    given: str | None,
    status: int,
    applied: str | None,
) -> None:
    text = f'{{"TableName":"{disposable(name)}"}}'
    answer = client.send("POST", "/Tables", body=text, headers={"Prefer": given}).expect(status)
    assert answer.header("Preference-Applied") == applied
    assert (answer.body == b"") is (status == 204)


@pytest.mark.parametrize("given", [None, "return-no-content"])
def test_on_a_table_that_exists(table: Table, given: str | None) -> None:
    text = f'{{"TableName":"{table.name}"}}'
    answer = table.client.send("POST", "/Tables", body=text, headers={"Prefer": given})
    assert answer.code == (409, "TableAlreadyExists")
    assert answer.header("Preference-Applied") == given


@pytest.mark.unverified
def test_on_a_table_that_exists_with_content(table: Table) -> None:
    text = f'{{"TableName":"{table.name}"}}'
    answer = table.client.send("POST", "/Tables", body=text, headers={"Prefer": "return-content"}).expect(409)
    assert answer.header("Preference-Applied") in {None, "return-content"}


@pytest.mark.unverified
@pytest.mark.parametrize("path", ["/Tables", "{path}"])
def test_on_other_rejections_it_is_not_applied(table: Table, path: str) -> None:
    headers = {"Prefer": "return-no-content"}
    answer = table.client.send("POST", path.format(path=table.path), body="{}", headers=headers).expect(400)
    assert answer.header("Preference-Applied") is None


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize("given", ["return-content", "return-no-content"])
@pytest.mark.parametrize("condition", ["*", None])
def test_is_ignored_on_updates(table: Table, method: str, given: str, condition: str | None) -> None:
    table.add(entity("p", "r"))
    answer = table.write(method, table.at("p", "r"), {}, Prefer=given, If_Match=condition).expect(204)
    assert answer.header("Preference-Applied") is None
    assert answer.body == b""
