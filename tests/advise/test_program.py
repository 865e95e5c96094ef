"""The program of the advice runs against a server: a dry run first, then the rows with their new keys."""

import ast
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from azure.data.tables import TableServiceClient

import lazulite.testing
from lazulite.advise.advice import Advice
from lazulite.advise.program import program

from .workloads import advised

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def service() -> Iterator[TableServiceClient]:
    with lazulite.testing.server() as storage:
        client = TableServiceClient.from_connection_string(storage.connection_string)
        client.__dict__["text"] = storage.connection_string
        with client:
            yield client


@pytest.fixture
def main(
    service: TableServiceClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Advice], Callable[..., int]]:
    monkeypatch.setenv("STORAGE_CONNECTION_STRING", service.__dict__["text"])
    monkeypatch.chdir(tmp_path)

    def made(advice: Advice) -> Callable[..., int]:
        names: dict[str, Any] = {"__name__": "rekey"}
        exec(compile(program(advice.best), "rekey.py", "exec"), names)
        found: Callable[..., int] = names["main"]
        return found

    return made


def rows(service: TableServiceClient, name: str) -> list[dict[str, object]]:
    return [dict(each) for each in service.get_table_client(name).list_entities()]


def test_logs_get_their_buckets(
    service: TableServiceClient,
    main: Callable[[Advice], Callable[..., int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = service.create_table("Logs")
    for number in range(120):
        old.create_entity(
            {
                "PartitionKey": "2026-11-28",
                "RowKey": f"{number:04}",
                "Component": "web",
                "Instance": f"web-{number % 2}",
                "Time": NOON + timedelta(seconds=number),
                "Id": UUID(int=number),
                "Text": "x/y",
            }
        )
    rekey = main(advised("component_logs"))
    assert rekey("Logs", "NewLogs", write=False) == 0
    said = capsys.readouterr().out
    assert "such as PartitionKey 'web!web-" in said
    assert "120 rows in 8 partitions" in said
    assert [each.name for each in service.list_tables()] == ["Logs"], "a dry run writes nothing"
    for _ in range(2):  # A second run writes the same keys.
        service.create_table_if_not_exists("NewLogs")
        assert rekey("Logs", "NewLogs", write=True) == 0
    new = rows(service, "NewLogs")
    assert len(new) == 120
    assert {str(each["PartitionKey"]).rsplit("!", 1)[0] for each in new} == {"web!web-0", "web!web-1"}
    first = [each for each in new if each["PartitionKey"] == "web!web-0!0"]
    assert [each["Time"] for each in first] == sorted(str_time(each) for each in first), "in the order of time"
    assert all(each["Text"] == "x/y" for each in new)


def str_time(entity: dict[str, object]) -> datetime:
    found = entity["Time"]
    assert isinstance(found, datetime)
    return found


def test_kinds_are_told_apart(
    service: TableServiceClient,
    main: Callable[[Advice], Callable[..., int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = service.create_table("Rentals")
    old.create_entity({"PartitionKey": "members", "RowKey": "1", "MemberId": "m-1", "Count": 1})
    old.create_entity({"PartitionKey": "rentals", "RowKey": "1", "MemberId": "m-1", "Movie": "The General"})
    old.create_entity({"PartitionKey": "others", "RowKey": "1"})
    assert main(advised("rentals"))("Rentals", "None", write=False) == 1
    said = capsys.readouterr().out
    assert "such as PartitionKey 'm-1', RowKey 'Member'" in said
    assert "such as PartitionKey 'm-1', RowKey 'Rental!The General'" in said
    assert "1 entities without the property MemberId" in said


def test_an_entity_is_stored_under_each_row_key(
    service: TableServiceClient, main: Callable[[Advice], Callable[..., int]], capsys: pytest.CaptureFixture[str]
) -> None:
    old = service.create_table("Staff")
    old.create_entity({"PartitionKey": "s", "RowKey": "1", "Department": "Sales", "Id": "1", "Mail": "a@b.c"})
    old.create_entity({"PartitionKey": "s", "RowKey": "2", "Department": "Sales", "Id": "1", "Mail": "d@b.c"})
    assert main(advised("employees"))("Staff", "None", write=False) == 1
    said = capsys.readouterr().out
    assert "RowKey 'id!1'" in said
    assert "RowKey 'mail!a@b.c'" in said
    assert "1 rows have the keys of another one" in said


def test_names_of_properties_are_no_code() -> None:
    advice = advised("movies", ("Category", "PartitionKey"), ("movies of a category", '\\"\\"\\"; import os #\\\\'))
    assert "; import os #: partition scan" in str(ast.get_docstring(ast.parse(program(advice.best))))
    weird = advised("component_logs", ("Instance", "class"), ('"report of a component"', r'"a\nb\u0007"'))
    text = program(weird.best)
    compile(text, "rekey.py", "exec")
    assert "value(entity, 'class')" in text
