"""`lazulite targets` and `lazulite partitions`, with workers and without."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableServiceClient

from lazulite.app.commands import PARTITIONS, SET_TARGETS, STATUS, TARGETS, PartitionsArguments, SetTargetsArguments
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.cli.check import verify_location
from lazulite.control.client import Client
from lazulite.control.command import ControlError, NoArguments
from lazulite.partitions.slices import SLICE_SECONDS
from lazulite.testing import Storage
from lazulite.testing import server as storage_server
from tests.postgres.server import shared, until
from tests.server_process import ServerProcess, running

from .test_serve import lazulite, rejected
from .test_serve_telemetry import scrape, series
from .test_serve_workers import BOTH

SOON = """\
server_cap = 1000
partition = 1000000
timeout_share = 0
[balancing]
split_share = 0.02
merge_share = 0.001
decide_after_seconds = 30
"""
"""Targets that split a range that is loaded for half a second, at a time scale of 60."""

SMALL = "server_cap = 40\ntimeout_share = 0\n[balancing]\ndecide_after_seconds = 30\n"
"""Targets that split a range that is loaded for half a minute."""


def insert(table: TableClient, partition: str, rows: Sequence[object]) -> None:
    table.submit_transaction([("upsert", {"PartitionKey": partition, "RowKey": str(row)}) for row in rows])


def test_targets_are_shown_and_set(tmp_path: Path) -> None:
    location = tmp_path / "data"
    here = ("-l", str(location))
    with storage_server(location) as storage:
        assert lazulite("targets", *here).stdout == "targets: off\ntime_scale: 1\n"
        shown = lazulite("targets", "set", "study-2010", *here).stdout
        assert "targets: study-2010\npartition: 500 per second, enforced: 2,500\n" in shown
        assert "decide_after_seconds: 300\n" in shown
        assert "entity_seconds: 0.00039\n" in shown
        assert "split_bytes: 10,737,418,240\n" in shown
        file = tmp_path / "mine.toml"
        file.write_text('base = "study-2010-strict"\npartition = 20\n[balancing]\nservers = 3\n')
        found = json.loads(lazulite("targets", "set", str(file), "--json", *here).stdout)
        assert (found["name"], found["partition"], found["balancing"]["servers"]) == (
            "mine",
            {"target": 20, "cap": 20},
            3,
        )
        assert json.loads(lazulite("targets", "--json", *here).stdout) == found
        with TableServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service:
            table = service.create_table("Orders")
            insert(table, "p", range(20))
            with pytest.raises(HttpResponseError):
                insert(table, "p", range(20))
            lazulite("targets", "set", "off", *here)
            insert(table, "p", range(20))
        assert storage.control.ask(TARGETS, NoArguments()) == {"name": "off", "time_scale": 1}


@pytest.mark.parametrize("workers", [(), BOTH], ids=["alone", "workers"])
def test_a_server_without_targets_gets_some_and_loses_them(workers: tuple[str, ...], tmp_path: Path) -> None:
    """One connection reads an entity, always by the same bytes, so that plans and templates are there."""
    here, file = ("--control-socket", str(tmp_path / "control")), tmp_path / "two.toml"
    file.write_text("partition = 0.0001\nburst_seconds = 20000\nserver_cap = 1000000\ntimeout_share = 0\n")
    with running("--in-memory", *here, *workers, "--silent", "--metrics-port", "0", lines=3) as server:
        with TableClient.from_connection_string(server.lines[1].strip(), "Orders", retry_total=0) as table:
            table.create_table()
            insert(table, "p", [0])
        sas = AccountSas(services="t", resource_types="o", permission="r", expiry="2999-01-01T00:00:00Z")
        path = f"/devstoreaccount1/Orders(PartitionKey='p',RowKey='0')?{sign_account_sas(DEVELOPMENT_ACCOUNT, sas)}"
        with closing(HTTPConnection("127.0.0.1", int(server.port))) as connection:

            def read(count: int) -> list[int]:
                """Return the statuses of reads."""
                statuses = []
                for _ in range(count):
                    connection.request(
                        "GET", path, headers={"Accept": "application/json", "x-ms-version": "2019-02-02"}
                    )
                    with connection.getresponse() as response:
                        response.read()
                    statuses.append(response.status)
                return statuses

            def hits() -> float:
                return series(scrape(server)).get(("template_outcomes_total", "hit"), 0)

            assert read(5) == [200] * 5
            before = hits()
            assert before > 0 or workers
            assert lazulite("targets", *here).stdout == "targets: off\ntime_scale: 1\n"
            for _ in range(2):
                lazulite("targets", "set", str(file), *here)
                assert read(4) == [200, 200, 503, 503]
                lazulite("targets", "set", str(file), *here)
                assert read(3) == [200, 200, 503], "all buckets are full after a change"
                assert hits() == before
                lazulite("targets", "set", "off", *here)
                assert read(5) == [200] * 5
                assert hits() == before + (0 if workers else 5)
                before = hits()
            shown = lazulite("partitions", "Orders", *here).stdout
            assert shown.startswith("Orders: 1 range, 4 virtual servers, targets off\n")


def test_a_server_that_gets_targets_has_the_map_of_its_store(tmp_path: Path) -> None:
    """The range that moves is refused although the server has never read the map before. Without targets it is not."""
    now = datetime.now(UTC)
    file, location = tmp_path / "small.toml", tmp_path / "data"
    file.write_text(SMALL)
    asked = SetTargetsArguments("small", file.read_text())
    with storage_server(location, clock=lambda: now) as storage, tables(storage) as service:
        table, second = service.create_table("Orders"), 0
        storage.control.ask(SET_TARGETS, asked)
        with suppress(HttpResponseError):
            for second in range(100):
                now += timedelta(seconds=1)
                insert(table, f"{second * 7 % 100:02}", range(30))
        assert second < 99, "a half is refused once it moves"
    with storage_server(location, clock=lambda: now) as storage, tables(storage) as service:
        table = service.get_table_client("Orders")
        insert(table, "99", [0])
        storage.control.ask(SET_TARGETS, asked)
        with pytest.raises(HttpResponseError):
            insert(table, "99", [0])
        insert(table, "00", [0])
        storage.control.ask(SET_TARGETS, SetTargetsArguments("off"))
        insert(table, "99", [0])
    with storage_server(location, clock=lambda: now) as storage:
        _, *ranges = storage.control.stream(PARTITIONS, PartitionsArguments("orders"))
        assert len(ranges) == 2, "the command reads the map of a server without targets"


def test_a_table_is_shown_with_what_moves(tmp_path: Path) -> None:
    """A table is loaded in the clock of a test until its range splits, and read while a half moves."""
    now = datetime.now(UTC)
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    with (
        storage_server(clock=lambda: now, targets=str(file)) as storage,
        TableServiceClient.from_connection_string(storage.connection_string, retry_total=0) as service,
    ):
        table = service.create_table("Orders")

        def shown() -> list[Any]:
            return list(storage.control.stream(PARTITIONS, PartitionsArguments("orders")))

        head, only = shown()
        assert head == {
            "table": "Orders",
            "account": "devstoreaccount1",
            "targets": "small",
            "servers": 4,
            "version": 0,
        }
        assert (only["start"], only["end"], only["rate"]) == ("", None, 0)
        second = 0
        with suppress(HttpResponseError):
            for second in range(100):
                now += timedelta(seconds=1)
                insert(table, f"{second * 7 % 100:02}", range(30))
        assert 30 <= second < 99, "a half is refused once it moves"
        _, lower, upper = shown()
        assert lower["end"] == upper["start"] != ""
        assert (lower["moving_seconds"], 0 < upper["moving_seconds"] <= 15) == (0, True)
        assert upper["server"] != lower["server"]
        assert lower["rate"] > 0
        assert (lower["refused"], upper["refused"]) == (0, 1)


def test_a_map_is_kept_by_restarts_backups_and_copies(tmp_path: Path) -> None:
    """The server stops in the middle of a move. A drop of the table removes the map."""
    now = datetime.now(UTC)
    file, location = tmp_path / "small.toml", tmp_path / "data"
    file.write_text(SMALL)

    def served(place: Path) -> AbstractContextManager[Storage]:
        return storage_server(place, clock=lambda: now, targets=str(file))

    def shown(storage: Storage) -> list[Any]:
        _, *ranges = storage.control.stream(PARTITIONS, PartitionsArguments("orders"))
        kept = ("start", "end", "server", "moving_seconds")
        return [{name: each[name] for name in kept} for each in ranges if isinstance(each, dict)]

    with served(location) as storage, tables(storage) as service:
        table, second = service.create_table("Orders"), 0
        with suppress(HttpResponseError):
            for second in range(100):
                now += timedelta(seconds=1)
                insert(table, f"{second * 7 % 100:02}", range(30))
        before = shown(storage)
        assert len(before) == 2
        assert before[1]["moving_seconds"] > 5
    for command in (
        ("backup", str(tmp_path / "backup"), "-l", str(location), "--verify"),
        ("restore", str(tmp_path / "backup"), "-l", str(tmp_path / "restored")),
        ("copy", "--silent", "--from", str(location), "--to", str(tmp_path / "copied")),
    ):
        done = lazulite(*command)
        assert done.returncode == 0, done.stderr
    for place in (location, tmp_path / "restored", tmp_path / "copied"):
        with served(place) as storage, tables(storage) as service:
            assert shown(storage) == before
            table = service.get_table_client("Orders")
            with pytest.raises(HttpResponseError):
                insert(table, "99", [0])
            insert(table, "00", [0])
            service.delete_table("Orders")
            service.create_table("Orders")
            assert [each["start"] for each in shown(storage)] == [""]
        list(verify_location(place, lambda _: None))


def tables(storage: Storage) -> TableServiceClient:
    return TableServiceClient.from_connection_string(storage.connection_string, retry_total=0)


@contextmanager
def two_servers(*flags: str) -> Iterator[tuple[ServerProcess, ...]]:
    """Yield two servers on one database."""
    with shared().database() as dsn, running("--engine", dsn, *flags) as one, running("--engine", dsn, *flags) as other:
        yield one, other


@contextmanager
def two_workers(*flags: str) -> Iterator[tuple[ServerProcess, ...]]:
    """Yield a server with two workers, twice. It has connections at each of them."""
    with running("--in-memory", *BOTH, *flags) as server:
        yield server, server


@pytest.mark.parametrize("processes", [two_servers, two_workers])
def test_two_processes_enforce_one_target_of_an_account(
    processes: Callable[..., AbstractContextManager[tuple[ServerProcess, ...]]], tmp_path: Path
) -> None:
    """They are asked for far more than an account may do in that time, as a clock that is no server's measures it."""
    cap, connections, batches, size = 100, 8, 5, 10
    file = tmp_path / "account.toml"
    file.write_text(f"account = {cap}\ntimeout_share = 0\n")

    def ask(text: str) -> int:
        """Insert batches by connections of their own; return how many entities were taken."""
        passed = 0
        for _ in range(connections):
            with TableClient.from_connection_string(text, "Orders", retry_total=0) as table:
                for _ in range(batches):
                    with suppress(HttpResponseError):
                        insert(table, uuid4().hex, range(size))
                        passed += size
        return passed

    with processes("--silent", "--targets", str(file)) as servers:
        text = servers[0].lines[1].strip()
        texts = [re.sub(r":\d+/", f":{server.port}/", text) for server in servers]
        with TableClient.from_connection_string(text, "Orders", retry_total=20) as table:
            table.create_table()
        with ThreadPoolExecutor(len(texts)) as threads:
            begun = time.monotonic()
            passed = sum(threads.map(ask, texts))
            seconds = time.monotonic() - begun
    error = len(texts) * (cap * SLICE_SECONDS + size)
    assert size <= passed <= cap * (seconds + 1) + error


def test_what_a_server_lacks_is_said() -> None:
    with storage_server(targets="current") as storage:
        with pytest.raises(ControlError, match="account devstoreaccount1 has no table Orders"):
            list(storage.control.stream(PARTITIONS, PartitionsArguments("Orders")))
        with pytest.raises(ControlError, match="there is no account other"):
            list(storage.control.stream(PARTITIONS, PartitionsArguments("Orders", "other")))
        for asked in (
            SetTargetsArguments("none"),
            SetTargetsArguments("/etc/passwd"),
            SetTargetsArguments("x", "partition = 0"),
            SetTargetsArguments("x", "= ="),
            SetTargetsArguments("x", "a = " + "[" * 10_000),
        ):
            with pytest.raises(ControlError) as caught:
                storage.control.ask(SET_TARGETS, asked)
            assert caught.value.code == "bad-request"
        described: Any = storage.control.ask(TARGETS, NoArguments())
        assert described["name"] == "current"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("targets", "set"), "needs a NAME"),
        (("targets", "get"), "set: 'get' is not one of set"),
    ],
)
def test_wrong_flags(arguments: tuple[str, ...], message: str) -> None:
    assert message in rejected(2, *arguments)


@pytest.mark.parametrize(
    ("name", "message"), [("nothing", "no targets 'nothing'"), ("missing.toml", "cannot read missing.toml")]
)
def test_targets_that_do_not_exist(name: str, message: str) -> None:
    assert message in rejected(1, "targets", "set", name)


def load(table: TableClient, stop: threading.Event) -> None:
    """Write to many partitions until the event, whatever is refused."""
    while not stop.is_set():
        for number in range(20):
            with suppress(HttpResponseError):
                insert(table, f"{number:02}", range(10))


def split(server: ServerProcess, control: Client) -> list[Any]:
    """Load a new table until it has two ranges; return them."""
    stop = threading.Event()
    ranges: list[Any] = []

    def is_split() -> bool:
        ranges[:] = shown_ranges(control)
        return len(ranges) > 1

    with (
        TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as service,
        ThreadPoolExecutor(1) as thread,
    ):
        thread.submit(load, service.create_table("Orders"), stop)
        try:
            until(is_split, "the range to split")
        finally:
            stop.set()
    return ranges


def shown_ranges(control: Client) -> list[Any]:
    items: list[Any] = list(control.stream(PARTITIONS, PartitionsArguments("orders")))
    head, *ranges = items
    assert head["targets"] == "small"
    return ranges


def processes_of(control: Client) -> list[Any]:
    """Return what the primary and its workers say of themselves."""
    return list(control.stream(STATUS, NoArguments()))


@pytest.fixture(name="store", params=["location", "database"])
def _store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the flags of a store that workers serve."""
    if request.param == "location":
        yield ("--location", str(tmp_path / "data"))
        return
    with shared().database() as dsn:
        yield ("--engine", dsn)


def test_a_server_that_is_killed_in_the_middle_of_a_move_leaves_its_map(store: tuple[str, ...], tmp_path: Path) -> None:
    """The move takes ten minutes, so it lasts when another process serves the store."""
    here, control = ("--control-socket", str(tmp_path / "control")), Client.at(tmp_path / "control")
    file = tmp_path / "small.toml"
    file.write_text(SOON + "move_seconds = 36000\n")
    flags = (*store, *here, "--silent", "--targets", str(file), "--time-scale", "60")
    with running(*flags) as server:
        before = split(server, control)
        server.process.kill()
        server.process.communicate()
    moving = next(each for each in before if each["moving_seconds"])
    with (
        running(*flags) as server,
        TableClient.from_connection_string(server.lines[1].strip(), "Orders", retry_total=0) as table,
    ):
        after = {each["start"]: each for each in shown_ranges(control)}
        assert after.keys() == {each["start"] for each in before}
        assert after[moving["start"]]["server"] == moving["server"]
        assert 0 < after[moving["start"]]["moving_seconds"] <= moving["moving_seconds"]
        with pytest.raises(HttpResponseError, match="unable to receive requests"):
            insert(table, moving["start"], [0])
        assert server.stop()[0] == 0


def test_workers_have_the_same_targets_and_one_map(store: tuple[str, ...], tmp_path: Path) -> None:
    """A worker that is killed is replaced by one that has the targets, and the map, of the others."""
    here, control = ("--control-socket", str(tmp_path / "control")), Client.at(tmp_path / "control")
    flags = (*store, *here, *BOTH, "--silent", "--targets", "off", "--time-scale", "60")
    with running(*flags) as server:
        assert control.ask(TARGETS, NoArguments()) == {"name": "off", "time_scale": 60}
        described: Any = control.ask(SET_TARGETS, SetTargetsArguments("small", SOON))
        assert described["name"] == "small"
        starts = {each["start"] for each in split(server, control)}
        (_, victim, _) = processes_of(control)

        def is_replaced() -> bool:
            pids = [each.get("pid") for each in processes_of(control)]
            return None not in pids and victim["pid"] not in pids and len(pids) == 3

        os.kill(victim["pid"], signal.SIGKILL)
        until(is_replaced, "its successor to accept requests")
        assert starts <= {each["start"] for each in shown_ranges(control)}
        assert lazulite("partitions", "Orders", *here).stdout.startswith("Orders: ")
        assert "has no table Other" in rejected(1, "partitions", "Other", *here)
        server.process.terminate()
        assert server.process.wait(60) == 0
        server.process.communicate()
