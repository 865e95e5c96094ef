"""`lazulite advise` with what it observes: a recording, logs, and a sample of rows, here and of another emulator."""

import asyncio
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.data.tables import TableServiceClient

import lazulite.testing
from lazulite.app.commands import END_RECORDING, RECORD, EndRecordingArguments, RecordArguments
from lazulite.app.traffic import end_recording_of, recording_of
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.cli import main
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError
from lazulite.testing import Storage
from lazulite.traffic.meter import Meter, Resource
from lazulite.traffic.recording import joined

from .test_logs import Cloud, cloud
from .test_logs import line as logged

__all__ = ["cloud"]  # A fixture.

ROWS = 200
QUERIES = """
rows = 1_000_000

[[queries]]
name = "orders of a city"
filter = "City eq 'city1'"
per_hour = 5

[[writes]]
name = "an order"
rate = 2
"""


def fill(service: TableServiceClient, name: str) -> None:
    table = service.create_table(name)
    moment = datetime(2026, 11, 28, tzinfo=UTC)
    for start in range(0, ROWS, 100):
        rows = [
            {
                "PartitionKey": "orders",
                "RowKey": f"{number:05}",
                "City": f"city{number % 10}",
                "Mail": f"{number}@contoso.com",
                "When": moment + timedelta(minutes=number),
            }
            for number in range(start, start + 100)
        ]
        table.submit_transaction([("create", row) for row in rows])


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advise") / "data"


@pytest.fixture(scope="module")
def storage(location: Path) -> Iterator[Storage]:
    with lazulite.testing.server(location, meter=True) as served:
        with TableServiceClient.from_connection_string(served.connection_string) as service:
            fill(service, "Orders")
        yield served


@pytest.fixture
def secret(storage: Storage, tmp_path: Path) -> str:
    path = tmp_path / "connection.txt"
    path.write_text(storage.connection_string)
    return str(path)


@contextmanager
def traffic(storage: Storage) -> Iterator[None]:
    """Have a client ask and write until the block ends."""
    done = threading.Event()

    def work() -> None:
        with TableServiceClient.from_connection_string(storage.connection_string) as service:
            table = service.get_table_client("Orders")
            number = 0
            while not done.is_set():
                number += 1
                list(table.query_entities(f"PartitionKey eq 'orders' and City eq 'city{number % 10}'"))
                table.get_entity("orders", f"{number % ROWS:05}")
                table.upsert_entity({"PartitionKey": "orders", "RowKey": "x", "City": "city1", "Mail": "m"})
                rows = [{"PartitionKey": "orders", "RowKey": f"y{each}", "City": "city1"} for each in range(3)]
                table.submit_transaction([("upsert", row) for row in rows])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_recording_leads_to_advice(
    storage: Storage, location: Path, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with traffic(storage):
        here = ("-l", str(location), "--connection-string-file", secret)
        code = main(["advise", "--record", "5m", "--requests", "60", "--table", "Orders", "--json", *here])
    assert code == 0
    printed = capsys.readouterr().out
    found = json.loads(printed)
    assert found["table"] == "Orders"
    names = {each["name"]: each for each in found["queries"]}
    assert set(names) == {"PartitionKey eq and RowKey eq", "City eq and PartitionKey eq"}
    assert {each["name"]: each["entities"] for each in found["writes"]} == {
        "single writes": "1",
        "batches": "3 with the same PartitionKey, atomic",
    }
    today = {each["name"]: each["class"] for each in found["today"]["queries"]}
    assert today == {"PartitionKey eq and RowKey eq": "point", "City eq and PartitionKey eq": "partition scan"}
    assert "sampled rows." in found["notes"][-1]
    assert [each["command"] for each in found["indexes"]] == [
        "lazulite index create Orders by_city --on City --scope partition"
    ]
    assert "contoso" not in printed
    assert "city1" not in printed


def test_a_recording_is_forgotten_when_its_client_hangs_up(storage: Storage) -> None:
    with closing(storage.control.stream(RECORD, RecordArguments(300))) as items:
        assert next(items) == {"requests": 0}
        with pytest.raises(ControlError, match="another recording is going on"):
            list(storage.control.stream(RECORD, RecordArguments(300)))
    for _ in range(1000):  # The server learns of the hang-up a moment later.
        try:
            with closing(storage.control.stream(RECORD, RecordArguments(300))) as items:
                assert next(items) == {"requests": 0}
            return
        except ControlError as error:
            assert error.code == "busy"
    raise AssertionError("the recording went on")


def test_a_recording_ends_before_its_time_for_who_knows_its_secret(storage: Storage) -> None:
    def end(secret: str) -> object:
        return storage.control.ask(END_RECORDING, EndRecordingArguments(secret))

    with closing(storage.control.stream(RECORD, RecordArguments(300, secret="ours"))) as items:
        assert next(items) == {"requests": 0}
        assert [end("other"), end("ours")] == [False, True]
        assert all(isinstance(each, dict) and "requests" in each for each in items)
    assert end("ours") is False


def test_a_server_without_a_meter_says_so() -> None:
    items = recording_of(None, AccountDirectory({}))(RecordArguments(1))
    with pytest.raises(ControlError, match="start it with --meter"):
        asyncio.run(anext(items))


async def test_the_recordings_of_workers_are_added() -> None:
    channels = []
    table = Resource("acct", "table", "orders")

    def connector(number: int) -> Any:
        meter = Meter(lambda: 0.0)

        async def sleep(_: float) -> None:
            assert meter.recording is not None
            meter.recording.note_query(table, (("City", "eq"),), [("City", "Oslo")], 0)
            meter.recording.note_query(table, (("City", "eq"),), [("City", f"city{number}")], 0)

        channel = Channel("1")
        channel.register(RECORD, recording_of(meter, AccountDirectory({}), sleep=sleep))
        channel.register(END_RECORDING, end_recording_of(meter))
        channels.append(channel)

        def connect() -> socket.socket:
            ours, theirs = socket.socketpair()
            channel.attach(theirs)
            return ours

        return connect

    workers = {f"worker {number}": connector(number) for number in range(2)}
    handler = recording_of(None, AccountDirectory({}), lambda: workers)
    items = [item async for item in handler(RecordArguments(0.5))]
    ended = [item async for item in end_recording_of(None, lambda: workers)(EndRecordingArguments("other"))]
    assert ended == [False]
    for channel in channels:
        await channel.close()
    (record,) = joined(each for each in items if isinstance(each, dict) and "table" in each).values()
    assert record.requests == 4
    assert (record.values["City"].distinct, record.values["City"].busiest) == (3, 0.5), "hashes have one key"


def test_declared_queries_get_their_numbers_from_rows(
    storage: Storage, secret: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = tmp_path / "queries.toml"
    queries.write_text(QUERIES)
    assert main(["advise", str(queries), "--table", "Orders", "--connection-string-file", secret, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (city,) = [each for each in found["properties"] if each["name"] == "City"]
    assert city["distinct"] == "10"
    assert found["candidates"][0]["partition_key"] == "City"
    assert main(["advise", str(queries), "--table", "Absent", "--connection-string-file", secret]) == 1
    assert "TableNotFound" in capsys.readouterr().err


def test_files_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "000000.log"
    line = (
        "1.0;2026-11-28T12:00:0{}.0000000Z;QueryEntities;Success;200;5;4;authenticated;acct;acct;table;"
        '"https://x/acct/Orders()?$filter=City%20eq%20%27a%27";"/acct/Orders";r;0;127.0.0.1:1;2019-02-02;'
        '300;0;200;0;0;;;;;;"agent";;"id"\n'
    )
    log.write_text("".join(line.format(second) for second in range(5)) + "no line\n")
    assert main(["advise", "--log-file", str(log), "--json", "--rows", "1000"]) == 0
    said = capsys.readouterr()
    assert "1 lines could not be read" in said.err
    found = json.loads(said.out)
    assert (found["table"], found["today"]["queries"][0]["class"]) == ("orders", "table scan")
    assert main(["advise", "--log-file", str(log), "--table", "Other"]) == 1
    assert "there were no requests to table Other" in capsys.readouterr().err
    assert main(["advise", "--log-file", str(tmp_path / "absent")]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_one_source_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise"]) == 2
    assert main(["advise", "queries.toml", "--record", "1m"]) == 2
    assert "pass one of FILE.toml, --record, --logs and --log-file" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("azurite-table") is None, reason="Azurite is not installed")
def test_azurite_is_another_endpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [
        "azurite-table",
        "--tablePort",
        str(port),
        "--inMemoryPersistence",
        "--disableTelemetry",
        "--skipApiVersionCheck",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            while "successfully" not in (said := emulator.stdout.readline()):
                assert said, "it ended"
            string = (
                "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1"
                "OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
                f"TableEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
            )
            with TableServiceClient.from_connection_string(string) as service:
                fill(service, "Orders")
            (tmp_path / "azurite.txt").write_text(string)
            queries = tmp_path / "queries.toml"
            queries.write_text(QUERIES)
            here = ("--connection-string-file", str(tmp_path / "azurite.txt"), "--json")
            assert main(["advise", str(queries), "--table", "Orders", *here]) == 0
            assert json.loads(capsys.readouterr().out)["candidates"][0]["partition_key"] == "City"
        finally:
            emulator.terminate()


def test_logs_of_an_account(cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC)
    url = "https://x/acct/Orders()?$filter=City%20eq%20%27a%27"
    lines = [logged(now, "table", "QueryEntities", key="/acct/Orders", url=url) for _ in range(5)]
    cloud.blobs[f"table/{now:%Y/%m/%d/%H}00/000000.log"] = "".join(f"{each}\n" for each in lines).encode()
    (tmp_path / "cloud.txt").write_text(cloud.connection_string)
    here = ("--connection-string-file", str(tmp_path / "cloud.txt"), "--sample", "0", "--rows", "1000", "--json")
    assert main(["advise", "--logs", "1h", *here]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["queries"]] == ["City eq"]
    assert "No rows were sampled" in found["notes"][-1]
