"""`lazulite pull`, `push`, `apply` and `export --state` against servers of this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from azure.storage.queue import QueueServiceClient

import lazulite.testing
from lazulite.cli import main

STATE = """
[tables.Orders]
rows = [{ PartitionKey = "a", RowKey = "1", Total = 1.5 }]

[queues.jobs]
messages = ["first", { text = "hidden", hidden_seconds = 600 }]

[containers.files]
blobs = [{ name = "a.txt", text = "hello" }]
"""


class Side(NamedTuple):
    """A server, and the flags that name it."""

    storage: lazulite.testing.Storage
    flags: tuple[str, ...]
    location: Path


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    locations = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    with lazulite.testing.server(locations[0]) as first, lazulite.testing.server(locations[1]) as second:
        yield _side(first, locations[0]), _side(second, locations[1])


def _side(storage: lazulite.testing.Storage, location: Path) -> Side:
    ports = {"table": storage.port, "queue": storage.queue_port, "blob": storage.blob_port}
    flags = [each for name, port in ports.items() for each in (f"--{name}-port", str(port))]
    return Side(storage, ("--location", str(location), *flags), location)


def test_a_seed_is_applied_pulled_and_written_by_commands(
    sides: tuple[Side, Side], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sides
    monkeypatch.chdir(tmp_path)
    Path("state.toml").write_text(STATE, encoding="utf-8")
    assert main(["apply", "state.toml", *first.flags]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tables: 1 created",
        "rows: 1 created",
        "queues: 1 created",
        "messages: 2 created",
        "containers: 1 created",
        "blobs: 1 created",
    ]
    monkeypatch.setenv("LAZULITE_FROM_CONNECTION", first.storage.connection_string)
    assert main(["pull", "--from-location", str(first.location), *second.flags]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[:4] == ["entities   1", "messages   2", "blobs      1", "bytes      5"]
    assert lines[-1] == "no difference found"
    assert first.storage.development.key not in printed.out + printed.err
    with QueueServiceClient.from_connection_string(second.storage.connection_string) as service:
        queue = service.get_queue_client("jobs")
        assert [each.content for each in queue.peek_messages(5)] == ["first"]
        assert queue.get_queue_properties().approximate_message_count == 2
    assert main(["export", "--state", "copy", *second.flags]) == 0
    assert main(["apply", "copy/state.toml", *first.flags]) == 0
    printed = capsys.readouterr()
    assert "created" not in printed.out
    assert "replaced" not in printed.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "state.toml"]


def test_push_says_what_it_leaves_out_and_tells_machines(
    sides: tuple[Side, Side], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sides
    monkeypatch.chdir(tmp_path)
    Path("other.conn").write_text(second.storage.account("other").connection_string, encoding="utf-8")
    assert main(["push", "--to", "file:other.conn", "--json", *first.flags]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["ok"]
    assert any("leases" in each["text"] for each in told["not_copied"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apply", "wrong.toml"], "wrong.toml, line 2: tables.Orders.row: there is no key"),
        (["apply", "missing.toml"], "cannot read missing.toml"),
        (["apply", "accounts.toml", "--to", "env:OTHER"], "a connection string has one account"),
        (["pull", "--from", "env:NONE"], "the variable NONE has no connection string"),
        (["pull", "--from", "file:none"], "cannot read none"),
        (["pull", "--from", "env:OTHER"], "both sides are the same account"),
        (["pull", "--from", "env:AWAY"], "run the same command again to go on"),
        (["pull", "--from", "env:AWAY", "--from-location", "none"], "no server runs in none"),
        (["export"], "name the table, or pass --state DIR"),
        (["export", "Orders", "--state", "x"], "leave TABLE and --output out"),
    ],
)
def test_a_mistake_is_one_line_without_a_key(
    sides: tuple[Side, Side],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    first, _ = sides
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lazulite.cli.http_sender._RETRY_SECONDS", (0.0,))
    monkeypatch.setenv("OTHER", first.storage.connection_string)
    away = "TableEndpoint=http://127.0.0.1:1/a;BlobEndpoint=http://127.0.0.1:1/a"
    monkeypatch.setenv("AWAY", f"AccountName=a;AccountKey={first.storage.development.key};{away}")
    Path("wrong.toml").write_text("[tables.Orders]\nrow = []", encoding="utf-8")
    Path("accounts.toml").write_text("[accounts.shop.queues.jobs]", encoding="utf-8")
    assert main([*arguments, *first.flags]) in (1, 2)
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()[-1]
    assert first.storage.development.key not in printed.err
