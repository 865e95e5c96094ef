"""`lazulite index`: by a running server, with workers and without, by a command alone, and on a database."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from azure.data.tables import TableClient, TableServiceClient

from lazulite.app import indexes
from lazulite.app.commands import (
    INDEX_BUILD,
    INDEX_CREATE,
    INDEX_DROP,
    INDEX_EXPLAIN,
    INDEX_LIST,
    ExplainArguments,
    IndexArguments,
    IndexDeclaration,
    TableArguments,
)
from lazulite.control.command import ControlError
from lazulite.engine.contract import EngineError
from lazulite.table.indexes.build import IndexBuilder
from lazulite.table.indexes.build_notes import BuildCounts, BuildProgress
from lazulite.testing import server as storage_server
from tests.server_process import SECONDS_MAX

from .test_serve import lazulite, rejected, serving
from .test_serve_workers import BOTH

BY_CITY = "City eq 'city3'"


def fill(connection_string: str, start: int = 0) -> None:
    with TableServiceClient.from_connection_string(connection_string) as service:
        table = service.create_table_if_not_exists("Orders")
        for partition in "ab":
            rows = [
                {"PartitionKey": partition, "RowKey": f"{number:04}", "City": f"city{number % 10}", "Total": number}
                for number in range(start, start + 100)
            ]
            table.submit_transaction([("create", row) for row in rows])


def cities(connection_string: str) -> tuple[int, str]:
    """Return how many entities a query finds, and what it cost."""
    timings: list[str] = []
    with TableClient.from_connection_string(connection_string, "Orders") as table:
        found = table.query_entities(
            BY_CITY, raw_response_hook=lambda each: timings.append(each.http_response.headers["Server-Timing"])
        )
        return len(list(found)), timings[0]


def listed(location: Path) -> list[Any]:
    lines = lazulite("index", "list", "Orders", "--json", "-l", str(location)).stdout.splitlines()
    found: list[Any] = [json.loads(line) for line in lines]
    return found


def test_an_index_is_created_used_explained_and_dropped(tmp_path: Path) -> None:
    location = tmp_path / "data"
    here = ("-l", str(location))
    with storage_server(location) as storage:
        fill(storage.connection_string)
        done = lazulite("index", "create", "Orders", "by_city", "--on", "City", "--scope", "table", *here)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.endswith("200 rows gone through\nby_city is ready\n")
        fill(storage.connection_string, 100)
        count, timing = cities(storage.connection_string)
        assert count == 40
        assert 'query;desc="table scan"' in timing
        assert 'scanned;desc="40", returned;desc="40", index;desc="by_city", entries;desc="40"' in timing
        text = "by_city: on City; scope table; ready\n"
        assert lazulite("index", "list", "Orders", *here).stdout == text
        explained = lazulite("index", "explain", "Orders", f"{BY_CITY} and Total gt 5", *here).stdout
        assert explained.splitlines() == [
            "table scan in the cloud; here by by_city",
            "by_city: used: 1 range of entries, in order",
        ]
        explained = lazulite("index", "explain", "Orders", "City ne 'x'", "--json", *here).stdout
        assert json.loads(explained.splitlines()[1]) == {
            "index": "by_city",
            "used": False,
            "why": "not every match must have its first property (eq, gt, ge, lt or le)",
        }
        assert lazulite("index", "rebuild", "Orders", "BY_CITY", *here).returncode == 0
        assert cities(storage.connection_string)[0] == 40
        assert lazulite("index", "drop", "Orders", "by_city", *here).returncode == 0
        assert "index" not in cities(storage.connection_string)[1]
    assert listed(location) == []


def test_workers_keep_and_use_an_index(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, *BOTH, "--silent", "--metrics-port", "0", lines=3) as server:
        fill(server.lines[1])
        here = ("-l", str(location))
        assert lazulite("index", "create", "Orders", "c", "--on", "City", "--scope", "table", *here).returncode == 0
        fill(server.lines[1], 100)
        for _ in range(4):
            count, timing = cities(server.lines[1])
            assert count == 40
            assert 'index;desc="c"' in timing
        with urlopen(server.lines[2].removeprefix("metrics: ").strip(), timeout=SECONDS_MAX) as page:
            lines = page.read().decode().splitlines()
        assert {"lazulite_index_builds 0.0", "lazulite_index_build_rows_total 200.0"} <= {*lines}
        assert "lazulite_index_builds_finished_total 1.0" in lines
        assert server.stop()[0] == 0
    assert "no damage found" in lazulite("check", "-l", str(location)).stdout


def test_a_command_does_it_without_a_server(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with storage_server(location) as storage:
        fill(storage.connection_string)
    here = ("-l", str(location))
    done = lazulite("index", "create", "Orders", "two", "--on", "City", "--on", "Total", *here)
    assert done.returncode == 0
    assert listed(location) == [
        {"name": "two", "on": ["City", "Total"], "scope": "partition", "state": "ready", "rows": None}
    ]


def test_a_build_is_continued_when_the_server_starts(tmp_path: Path) -> None:
    """A build that is not finished has a row; the next process goes on with it."""
    location = tmp_path / "data"
    with storage_server(location) as storage, pytest.MonkeyPatch.context() as patch:
        fill(storage.connection_string)
        patch.setattr("lazulite.app.indexes._Build", Idle)
        assert lazulite("index", "create", "Orders", "c", "--on", "City", "-l", str(location)).returncode == 0
        [index] = listed(location)
        assert index["state"] == "write-only"
    with storage_server(location) as storage:
        list(storage.control.stream(INDEX_BUILD, IndexArguments("Orders", "c")))
        [index] = storage.control.stream(INDEX_LIST, TableArguments("Orders"))
        assert isinstance(index, dict)
        assert index["state"] == "ready"


async def test_builds_are_counted_without_what_an_earlier_process_has_done() -> None:
    goes_on = asyncio.Event()

    async def steps(*rows: int, error: bool = False) -> AsyncGenerator[BuildProgress, None]:
        for each in rows:
            yield BuildProgress(each)
        if error:
            raise EngineError("damaged")
        await goes_on.wait()

    counts = BuildCounts()
    builds = [indexes._Build(work, counts) for work in (steps(5, 7, 10), steps(0, 4, error=True), steps(0, 1))]
    await asyncio.wait([builds[1].task])
    assert (counts.running, counts.rows, counts.finished, counts.failed) == (2, 5 + 4 + 1, 0, 1)
    builds[2].task.cancel()
    goes_on.set()
    await asyncio.wait([build.task for build in builds])
    assert isinstance(builds[1].task.exception(), EngineError)
    assert counts.readings() == {
        "index_builds": 0,
        "index_build_rows_total": 10,
        "index_builds_finished_total": 1,
        "index_builds_failed_total": 1,
    }


class Idle(indexes._Build):
    """A build that ends before it begins."""

    async def _run(self, work: object) -> None:
        self._ended = True
        self._tell()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "Nothing"], "has no table Nothing"),
        (["drop", "Orders", "x"], "the table Orders has no index x"),
        (["create", "Orders", "x", "--on", "RowKey"], "RowKey is a key"),
        (["create", "Orders", "1", "--on", "City"], "the name of an index"),
        (["create", "Orders", "x", "--on", "A", "--on", "B", "--on", "C"], "one property"),
        (["explain", "Orders", "City eq"], "Expression expected"),
        (["list", "Orders", "--account", "other"], "there is no account other"),
    ],
)
def test_what_cannot_be_done_is_told(tmp_path: Path, arguments: list[str], message: str) -> None:
    with storage_server(tmp_path) as storage:
        fill(storage.connection_string)
        assert message in lazulite("index", *arguments, "-l", str(tmp_path)).stderr


def test_the_control_channel_tells_what_is_wrong() -> None:
    with storage_server() as storage:
        fill(storage.connection_string)
        with pytest.raises(ControlError, match="no index x"):
            list(storage.control.stream(INDEX_BUILD, IndexArguments("Orders", "x")))
        with pytest.raises(ControlError, match="has no table"):
            list(storage.control.stream(INDEX_LIST, TableArguments("Orders\ud800")))


def test_explain_tells_which_index_is_preferred() -> None:
    with storage_server() as storage:
        fill(storage.connection_string)
        for name, on in (("by_city", "City"), ("by_total", "Total")):
            list(storage.control.stream(INDEX_CREATE, IndexDeclaration("Orders", name, on, scope="table")))
        arguments = ExplainArguments("Orders", "City eq 'city3' and Total gt 5")
        assert [*storage.control.stream(INDEX_EXPLAIN, arguments)][1:] == [
            {"index": "by_city", "used": True, "why": "1 range of entries, in order"},
            {
                "index": "by_total",
                "used": False,
                "why": "by_city is preferred; this one has 1 range of entries, not in order",
            },
        ]


def test_a_client_is_told_when_its_build_is_ended_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def filled(*_: object) -> AsyncGenerator[BuildProgress, None]:
        yield BuildProgress(1)
        await asyncio.Event().wait()

    monkeypatch.setattr(IndexBuilder, "_filled", filled)
    with storage_server() as storage:
        fill(storage.connection_string)
        creating = storage.control.stream(INDEX_CREATE, IndexDeclaration("Orders", "c", "City"))
        next(creating)
        list(storage.control.stream(INDEX_DROP, IndexArguments("Orders", "c")))
        with pytest.raises(ControlError, match="another command has ended"):
            list(creating)


def test_a_client_is_told_when_the_table_is_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async def filled(
        builder: IndexBuilder, account: str, table: str, *_: object
    ) -> AsyncGenerator[BuildProgress, None]:
        await builder._catalog.delete(account, table)
        yield BuildProgress(1)

    monkeypatch.setattr(IndexBuilder, "_filled", filled)
    with storage_server() as storage:
        fill(storage.connection_string)
        with pytest.raises(ControlError, match="does not exist"):
            list(storage.control.stream(INDEX_CREATE, IndexDeclaration("Orders", "c", "City")))


def test_a_scope_is_one_of_two() -> None:
    assert "is not one of partition, table" in rejected(
        2, "index", "create", "Orders", "x", "--on", "A", "--scope", "all"
    )
