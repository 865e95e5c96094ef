"""`lazulite serve` with a clock that jumps, while it runs and while it does not."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
from azure.data.tables import EdmType, TableClient

from lazulite.app.clock import NAME
from tests.docs_support import fences
from tests.server_process import SECONDS_MAX, ServerProcess
from tests.torture.http_client import SAS
from tests.torture.stepping_clock import VARIABLE, SteppingClock

from .test_serve import get
from .test_serve import serving as serving_on

DAYS_NS = 86_400 * 10**9
serving = partial(serving_on, program=("tests.torture.variants", "stepping_clock"))


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SteppingClock]:
    clock = SteppingClock(tmp_path / "clock")
    monkeypatch.setenv(VARIABLE, str(clock.path))
    yield clock
    clock.close()


def post(server: ServerProcess, path: str, document: Mapping[str, object]) -> int:
    url = f"{server.url}devstoreaccount1/{path}?{SAS}"
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return get(Request(url, json.dumps(document).encode(), headers))


def create(server: ServerProcess, table: str) -> int:
    return post(server, "Tables", {"TableName": table})


def lists(server: ServerProcess) -> int:
    return get(f"{server.url}devstoreaccount1/Tables?{SAS}")


def rejection(location: Path, *arguments: str) -> str:
    with serving(location, "-s", *arguments, lines=0) as server:
        out, said = server.process.communicate(timeout=SECONDS_MAX)
        assert (server.process.returncode, out, said.count("\n")) == (1, "", 1)
        return said


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_a_jump_rejects_writes_and_the_next_start_until_it_is_set_back_or_accepted(
    clock: SteppingClock, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    location = tmp_path / "data"
    with serving(location, "-s", *workers) as server:
        assert create(server, "before") == 201
        clock.step(2 * DAYS_NS)
        assert (create(server, "meanwhile"), lists(server), get(f"{server.url}health")) == (503, 200, 503)
        clock.be_right()
        assert create(server, "after") == 201
        clock.step(2 * DAYS_NS)
        assert create(server, "again") == 503
        code, said = server.stop()
        assert code == 0
        assert said.count("the clock has jumped 2.0 days ahead") == 2
        assert said.count("the clock is right again") == 1
    assert "since the last start" in rejection(location, *workers)
    with serving(location, "-s", *workers, "--accept-clock-jump") as server:
        assert create(server, "accepted") == 201
        assert server.stop() == (0, "")
    with serving(location, "-s", *workers) as server:  # Once is enough.
        assert create(server, "usual") == 201
        assert server.stop() == (0, "")
    clock.be_right()
    assert "the newest Timestamp in " in rejection(location, *workers)
    with serving(location, "-s", *workers, "--accept-clock-jump") as server:
        assert create(server, "above") == 201
        assert server.stop() == (0, "")


def test_a_start_after_a_boot_believes_a_clock_that_is_years_later(clock: SteppingClock, tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, "-s") as server:
        assert create(server, "before") == 201
        assert server.stop() == (0, "")
    record = location / NAME
    record.write_text("another-boot " + record.read_text().split()[1])
    clock.step(2000 * DAYS_NS)
    with serving(location, "-s") as server:
        assert create(server, "after") == 201
        assert server.stop() == (0, "")


def test_the_way_back_that_is_documented_gives_new_timestamps_and_the_same_contents(
    clock: SteppingClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = (fence.text for fence in fences("docs/operations/clock.md") if "upsert_entity" in fence.text)
    clock.step(10_000 * DAYS_NS)
    with serving(tmp_path / "old", "-s", "--accept-clock-jump") as old:
        assert create(old, "orders") == 201
        body = {
            "PartitionKey": "p",
            "RowKey": "r",
            "Text": "é",
            "Long@odata.type": "Edm.Int64",
            "Long": "1",
            "On": True,
        }
        assert post(old, "orders", body) == 201
        assert old.stop() == (0, "")
    clock.be_right()
    with serving(tmp_path / "old", "-s", "--accept-clock-jump") as old, serving(tmp_path / "new", "-s") as new:
        strings = [old.lines[1].strip(), new.lines[1].strip()]
        for name, string in zip(("OLD", "NEW"), strings, strict=True):
            monkeypatch.setenv(name, string)
        names: dict[str, Any] = {}
        exec(program, names)
        for client in (names["old"], names["new"]):
            client.close()
        entities = []
        for string in strings:
            with TableClient.from_connection_string(string, "orders") as table:
                entities.append(table.get_entity("p", "r"))
        assert entities[0] == entities[1]
        assert entities[0]["Long"].edm_type is EdmType.INT64
        ahead, now = (entity.metadata["timestamp"] for entity in entities)
        assert ahead is not None
        assert now is not None
        assert 9_999 <= (ahead - now).days <= 10_000
        assert (old.stop(), new.stop()) == ((0, ""), (0, ""))
    with serving(tmp_path / "new", "-s") as new:  # No flag is needed any more.
        assert new.stop() == (0, "")
