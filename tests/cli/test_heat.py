"""`lazulite heat`: what requests of a running server look like, with workers and without."""

import json
import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueServiceClient

from lazulite.app.commands import KEY_SAMPLE, TRAFFIC, KeySampleArguments, TrafficArguments
from lazulite.control.command import ControlError
from lazulite.control.socket_file import SOCKET
from lazulite.testing import Account, Storage
from lazulite.testing import server as storage_server

from .test_serve import lazulite, rejected, serving
from .test_serve_workers import BOTH


def work(connection_string: str) -> None:
    """Insert 50 entities by themselves and 50 in batches, read each of the first 50, and query them all."""
    with TableServiceClient.from_connection_string(connection_string) as service:
        table = service.create_table("Orders")
        for number in range(50):
            table.create_entity({"PartitionKey": f"p{number % 10}", "RowKey": str(number), "Text": "x" * 100})
        for batch in range(5):
            rows = [{"PartitionKey": "batch", "RowKey": f"{batch}-{row}"} for row in range(10)]
            table.submit_transaction([("create", row) for row in rows])
        for number in range(50):
            table.get_entity(f"p{number % 10}", str(number))
        assert len(list(table.list_entities())) == 100
        assert len(list(table.query_entities("PartitionKey eq 'p1' and Text eq 'none'"))) == 0


def totals(storage: Storage, account: Account) -> dict[str, float]:
    head, *_ = storage.control.stream(TRAFFIC, TrafficArguments("Orders", account.name))
    assert isinstance(head, dict)
    names = ("read", "scanned", "written", "bytes_in", "bytes_out", "requests", "refused")
    return dict(zip(names, head["totals"], strict=True))


def test_requests_are_counted() -> None:
    with storage_server(meter=True) as storage:
        account = storage.account()
        work(account.connection_string)
        found = totals(storage, account)
        assert (found["read"], found["written"], found["refused"]) == (50, 100, 0)
        assert found["scanned"] == 100 + 5
        assert found["requests"] == 50 + 5 + 50 + 1 + 1
        assert found["bytes_in"] > 50 * 100
        assert found["bytes_out"] > 50 * 100 * 2
        with pytest.raises(ControlError, match="there are several accounts"):
            list(storage.control.stream(TRAFFIC, TrafficArguments("Orders")))
        with pytest.raises(ControlError, match="there is no account other"):
            list(storage.control.stream(TRAFFIC, TrafficArguments("Orders", "other")))
        with pytest.raises(ControlError, match="table Other of account"):
            list(storage.control.stream(TRAFFIC, TrafficArguments("Other", account.name)))


def test_a_server_without_a_meter_says_so(tmp_path: Path) -> None:
    with storage_server(tmp_path):
        assert "start it with --meter" in lazulite("heat", "Orders", "-l", str(tmp_path)).stderr


def test_a_picture_of_a_location(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with storage_server(location, meter=True) as storage:
        work(storage.connection_string)
        here = ("heat", "orders", "-l", str(location), "--account", "devstoreaccount1")
        for ending in ("html", "svg", "png", "json"):
            path = tmp_path / f"heat.{ending}"
            done = lazulite(*here, "--last", "30m", "-o", str(path))
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert "batch" in (tmp_path / "heat.html").read_text()
        drawn = json.loads((tmp_path / "heat.json").read_text())
        writes = sum(map(sum, drawn["writes"])) * drawn["seconds"]
        assert writes == pytest.approx(100, rel=1e-4)
        assert "50 read, 105 scanned, 100 written" in lazulite(*here).stdout
        assert "partition 'batch': " in lazulite(*here).stdout
        assert lazulite(*here, "--findings").stdout == "no findings\n"
        both = tmp_path / "both.json"
        assert lazulite(*here, "--findings", "-o", str(both)).stdout == "no findings\n"
        assert json.loads(both.read_text())["name"] == "orders"
        missing = tmp_path / "none" / "heat.svg"
        assert f"cannot write {missing}: No such file" in rejected(1, *here, "-o", str(missing))
        assert "container orders of account" in rejected(1, *here, "--service", "blob")


def test_a_queue_has_no_partitions(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with storage_server(location, meter=True) as storage:
        with QueueServiceClient.from_connection_string(storage.connection_string) as service:
            service.create_queue("orders").send_message("hello")
        here = ("heat", "orders", "--service", "queue", "-l", str(location), "--account", "devstoreaccount1")
        printed = lazulite(*here).stdout
        assert "2 written" in printed
        assert "partition" not in printed
        assert lazulite(*here, "-o", str(tmp_path / "heat.html")).returncode == 0
        assert "Busiest" not in (tmp_path / "heat.html").read_text()


def test_queries_that_scan_name_their_property(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with storage_server(location, meter=True) as storage:
        work(storage.connection_string)
        with TableServiceClient.from_connection_string(storage.connection_string) as service:
            table = service.get_table_client("Orders")
            for _ in range(3):
                assert list(table.query_entities("PartitionKey eq 'batch' and City eq 'Oslo' and Paid")) == []
        here = ("heat", "Orders", "-l", str(location), "--account", "devstoreaccount1", "--findings")
        (line,) = lazulite(
            *here, "--threshold", "pages-min=3", "--threshold", "scanned-per-returned=1"
        ).stdout.splitlines()
        assert re.search(r"most by queries of the class partition scan, 9\d% of those by City", line)


def test_workers_are_added(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *BOTH, "--silent", "--meter") as server:
        work(server.lines[1])
        (line, *_) = lazulite("heat", "Orders", "-l", str(tmp_path / "data")).stdout.splitlines()
        assert line.startswith("Orders: 50 read, 105 scanned, 100 written, ")
        assert server.stop()[0] == 0


def test_the_servers_of_a_database_are_added(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    with ExitStack() as stack:
        servers = [stack.enter_context(storage_server(tmp_path / name, meter=True)) for name in names]
        for server in servers[:2]:
            work(server.connection_string)
        sockets = [each for name in names for each in ("--control-socket", str(tmp_path / name / SOCKET))]
        here = ("heat", "Orders", "--account", "devstoreaccount1")
        assert "100 read, 210 scanned, 200 written" in lazulite(*here, *sockets).stdout
        assert "table Orders of account" in lazulite(*here, *sockets[4:]).stderr, "the third has had no traffic"


def test_partitions_of_one_row_are_found_in_the_store(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with storage_server(location, meter=True) as storage:
        with TableServiceClient.from_connection_string(storage.connection_string) as service:
            table = service.create_table("Orders")
            for number in range(120):
                table.create_entity({"PartitionKey": f"user{number:03d}", "RowKey": "2026-11"})
            for _ in range(40):
                table.get_entity("user007", "2026-11")
        here = ("heat", "Orders", "-l", str(location), "--account", "devstoreaccount1", "--findings")
        assert "append-only: " in lazulite(*here).stdout
        (line,) = lazulite(*here, "--threshold", "rows-min=100", "--threshold", "end-share=2").stdout.splitlines()
        assert line.startswith("too-fine: 100% of 120 partitions have one row")
        assert "the rest the RowKey: 'user1' and '19'" in line
        hot = ("--threshold", "end-share=2", "--threshold", "hot-share=0.2", "--threshold", "partition-target=1")
        assert "such as 'user007;2026'" in lazulite(*here, *hot).stdout
        for partition, row in (("user007", "2026-11"), ("user0071", None), ("", None), ("zzz", None)):
            sample = storage.control.ask(KEY_SAMPLE, KeySampleArguments("Orders", "devstoreaccount1", partition))
            assert isinstance(sample, dict)
            assert sample["row"] == row


def test_a_table_that_is_not_there_has_no_sample() -> None:
    with storage_server() as storage, pytest.raises(ControlError, match="there is no table Other"):
        storage.control.ask(KEY_SAMPLE, KeySampleArguments("Other", storage.account().name))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--last", "1w"), "such as 30m"),
        (("--last", "29d"), "at most 28 days"),
        (("--last", "m"), "such as 30m"),
        (("-o", "heat.gif"), "ends in none of"),
        (("--threshold", "partition-target=0"), "above 0"),
        (("--threshold", "partition-target"), "above 0"),
        (("--threshold", "colour=1"), "there is no threshold 'colour', but partition-target, hot-share"),
        (("--service", "files"), "'files' is not one of table, queue, blob"),
    ],
)
def test_wrong_flags(flags: tuple[str, ...], message: str) -> None:
    assert message in rejected(2, "heat", "Orders", *flags)


@pytest.mark.parametrize("flags", [(), BOTH], ids=["one process", "workers"])
def test_metrics_have_numbers_and_no_names(tmp_path: Path, flags: tuple[str, ...]) -> None:
    options = (*flags, "--silent", "--meter", "--metrics-port", "0")
    with serving(tmp_path / "data", *options, lines=3) as server:
        work(server.lines[1])
        address = server.lines[2].removeprefix("metrics: ").strip()
        with urlopen(address) as response:
            page = response.read().decode()
    found = dict(re.findall(r"^lazulite_metered_(\w+)_total (\S+)$", page, re.M))
    counts = {name: float(value) for name, value in found.items()}
    assert [counts[name] for name in ("read", "scanned", "written", "refused")] == [50, 105, 100, 0]
    assert counts["requests"] == 107
    assert counts["bytes_out"] > counts["bytes_in"] > 5_000
    assert "orders" not in page.lower()
