"""The recorded requests of a running server, by its command and by `lazulite requests`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.app.commands import REQUESTS, RecordedArguments
from lazulite.app.inspector import requests_of_workers
from lazulite.cli import main
from lazulite.cli.requests import follow
from lazulite.control.command import ControlError
from lazulite.testing.storage import Storage

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
OTHER_KEY = "AAAA" * 10


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def storage(location: Path) -> Iterator[Storage]:
    with lazulite.testing.server(location) as storage:
        assert [*storage.control.stream(REQUESTS, RecordedArguments())][1:] == [], "nothing before the first look"
        use(storage)
        yield storage


def use(storage: Storage) -> None:
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        table = service.create_table("Orders")
        table.upsert_entity({"PartitionKey": "a", "RowKey": "1", "City": "SECRET"})
        for _ in range(5):
            table.get_entity("a", "1")
        list(table.query_entities("City eq 'b'"))
        with pytest.raises(ResourceNotFoundError):
            table.get_entity("a", "none")
        endpoint = service.url
    with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
        queues.create_queue("jobs").send_message("SECRET")
    with BlobServiceClient.from_connection_string(storage.connection_string) as blobs:
        blobs.create_container("box").upload_blob("a b", b"SECRET")
    credential = AzureNamedKeyCredential("devstoreaccount1", OTHER_KEY)
    with TableServiceClient(endpoint, credential=credential) as service, pytest.raises(HttpResponseError):
        list(service.list_tables())


def asked(storage: Storage, **arguments: Any) -> list[Any]:
    return [*storage.control.stream(REQUESTS, RecordedArguments(**arguments))][1:]


def test_requests_of_all_services_are_recorded(storage: Storage) -> None:
    found = asked(storage)
    assert {item["service"] for item in found} == {"table", "queue", "blob"}
    assert [item["ended"] for item in found] == sorted((item["ended"] for item in found), reverse=True)
    assert "SECRET" not in json.dumps([asked(storage, id=item["id"], limit=1) for item in found])
    point = asked(storage, text="RowKey='1'", status="200")
    assert len(point) == 5, "those that templates answered, too"
    assert {item["cost"]["line"].partition(" · ")[0] for item in point} == {"point"}
    assert {(item["method"], item["authorization"], item["account"]) for item in point} == {
        ("GET", "Shared Key", "devstoreaccount1")
    }
    assert len({item["client_request_id"] for item in point}) == 5


def test_a_query_has_its_cost(storage: Storage) -> None:
    (query,) = asked(storage, text="QueryEntities")
    cost = query["cost"]
    assert (cost["query_class"], cost["scanned"], cost["returned"], cost["indexes"]) == ("table scan", 1, 0, [])
    assert cost["advice"].startswith("Compare PartitionKey")


def test_a_template_answered_as_the_first_request_was(storage: Storage) -> None:
    first, *_, last = [
        asked(storage, id=item["id"], limit=1)[0] for item in asked(storage, text="RowKey='1'", status="200")
    ]
    names = [name for name, _ in first["request_fields"]]
    assert sorted(names) == sorted(name for name, _ in last["request_fields"])
    for name in ("path", "query", "method", "version", "operation", "scanned", "returned", "bytes_in", "bytes_out"):
        assert first[name] == last[name]
    assert dict(first["request_fields"])["x-ms-date"].endswith("GMT")


def test_a_refused_signature_is_explained(storage: Storage) -> None:
    (item,) = asked(storage, status="refused")
    assert (item["status"], item["error"], item["account"]) == (403, "AuthenticationFailed", "devstoreaccount1")
    (whole,) = asked(storage, id=item["id"], limit=1)
    refusal = whole["refusal"]
    assert refusal["string_to_sign"].endswith("\n/devstoreaccount1/devstoreaccount1/Tables")
    assert 0 < refusal["tries"] <= 16
    assert OTHER_KEY not in json.dumps(whole)
    assert KEY not in json.dumps(whole)


def test_the_command_prints_them(storage: Storage, location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> str:
        assert main(["requests", "-l", str(location), *arguments]) == 0
        return capsys.readouterr().out

    lines = printed("--service", "table").splitlines()
    assert "POST  /devstoreaccount1/Tables  CreateTable" in lines[0]
    assert "403" in lines[-1]
    item = json.loads(printed("--status", "refused", "--json"))
    text = printed(item["id"])
    assert "refused (Shared Key): The signature is not made by a key of this account" in text
    assert '  "/devstoreaccount1/devstoreaccount1/Tables"\n' in text
    assert printed("--text", "nothing has it").startswith("no requests yet")
    assert main(["requests", "-l", str(location), "none"]) == 1
    assert "is not recorded" in capsys.readouterr().err
    assert main(["requests", "-l", str(location), "--status", "many"]) == 1
    assert "status is such as" in capsys.readouterr().err


def test_follow_prints_each_request_once(storage: Storage) -> None:
    looks = 0

    def pause(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise KeyboardInterrupt
        with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
            list(queues.list_queues(name_starts_with=f"look{looks}"))

    found: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(follow(storage.control, RecordedArguments("queue", text="queue", limit=2), pause))
    assert [item["query"].partition("look")[2][:1] for item in found[-3:]] == ["1", "2", "3"]
    assert len({item["id"] for item in found}) == len(found) == 4


def test_bounds_of_the_command(storage: Storage) -> None:
    for limit in (0, 1001):
        with pytest.raises(ControlError, match="limit"):
            asked(storage, limit=limit)
    assert len(asked(storage, limit=2)) == 2


async def test_a_worker_that_does_not_answer_is_named() -> None:
    def connect() -> Any:
        raise OSError("gone")

    items = [item async for item in requests_of_workers(lambda: {"worker 1": connect})(RecordedArguments())]
    assert items == [{"since": ""}, {"process": "worker 1", "error": "gone"}]
