"""The importer loads its whole data set through the front door, and each query class costs what it promises."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.server_process import serving

EXAMPLES = Path(__file__).parents[1] / "examples"
WEATHER_CSV = EXAMPLES / "data" / "weather.csv"
OBSERVATIONS = 26_115


class Row(NamedTuple):
    scanned: int
    returned: int
    server_ms: float


class Run(NamedTuple):
    loaded: int
    rows: dict[str, Row]


@pytest.fixture(scope="module")
def connection_string(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("examples") / "data") as server:
        yield server.account.connection_string


def run_importer(connection_string: str, *arguments: str) -> Run:
    """Run the example as a user does and read its table."""
    output = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "import_csv.py"), *arguments],
        env=os.environ | {"LAZULITE_CONNECTION_STRING": connection_string},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert output.returncode == 0, output.stderr
    loaded = re.search(r"loaded (\d+) entities", output.stdout)
    table = re.findall(r"^([a-z -]+?) +(\d+) +(\d+) +\d+ +([\d.]+) +[\d.]+  ", output.stdout, re.MULTILINE)
    assert loaded, output.stdout
    return Run(int(loaded[1]), {name: Row(int(s), int(r), float(ms)) for name, s, r, ms in table})


def observations(origin: str, months: tuple[str, ...]) -> list[dict[str, str]]:
    with WEATHER_CSV.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row["origin"] == origin and row["time_hour"][:7] in months]


@pytest.fixture(scope="module")
def first_run(connection_string: str) -> Run:
    return run_importer(connection_string)


def test_loads_every_observation(first_run: Run) -> None:
    assert first_run.loaded == OBSERVATIONS


def test_shows_all_five_query_classes(first_run: Run) -> None:
    assert list(first_run.rows) == ["point", "row range", "partition scan", "partition range", "table scan"]


def test_a_point_query_touches_one_row(first_run: Run) -> None:
    assert first_run.rows["point"][:2] == (1, 1)


def test_a_row_range_touches_exactly_its_rows(first_run: Run) -> None:
    day = [row for row in observations("JFK", ("2013-07",)) if row["time_hour"].startswith("2013-07-04")]
    assert first_run.rows["row range"][:2] == (len(day), len(day))


def test_a_partition_scan_touches_exactly_its_partition(first_run: Run) -> None:
    february = observations("LGA", ("2013-02",))
    freezing = [row for row in february if row["temp"] and float(row["temp"]) < 32]
    assert first_run.rows["partition scan"][:2] == (len(february), len(freezing))


def test_a_partition_range_does_not_scan_outside(first_run: Run) -> None:
    summer = observations("JFK", ("2013-06", "2013-07", "2013-08"))
    rain = [row for row in summer if float(row["precip"]) > 0]
    assert first_run.rows["partition range"][:2] == (len(summer), len(rain))


def test_a_table_scan_touches_everything(first_run: Run) -> None:
    assert first_run.rows["table scan"].scanned == OBSERVATIONS
    assert 0 < first_run.rows["table scan"].returned < 100


def test_the_service_reports_its_time(first_run: Run) -> None:
    assert all(row.server_ms > 0 for row in first_run.rows.values())


@pytest.mark.usefixtures("first_run")
def test_running_again_changes_nothing(connection_string: str, tmp_path: Path) -> None:
    some = tmp_path / "some.csv"
    some.write_text("".join(WEATHER_CSV.read_text(encoding="utf-8").splitlines(keepends=True)[:301]), encoding="utf-8")
    again = run_importer(connection_string, "--csv", str(some), "--threads", "1")
    assert again.loaded == 300
    assert again.rows["table scan"].scanned == OBSERVATIONS
