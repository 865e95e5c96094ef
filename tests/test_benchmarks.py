"""The benchmark harness runs, signs as the protocol says, and refuses to measure wrong answers."""

import base64
import itertools
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # `benchmarks` is run from the repository's root, never installed

from benchmarks.comparison import NUMBERS_PER_RUN, probe  # noqa: E402  # needs the path above
from benchmarks.load import run_asyncio  # noqa: E402
from benchmarks.measurement import BenchmarkError, Limits, Load  # noqa: E402
from benchmarks.processes import running  # noqa: E402
from benchmarks.signing import account_sas, shared_key  # noqa: E402
from benchmarks.workload import MARK, Workload, entity  # noqa: E402
from benchmarks.wrk import run_wrk, wrk_version  # noqa: E402

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROWS = ["point GET, SAS", "point GET, Shared Key", "durable insert", "entity group transaction", "full-page query"]


class Harness(NamedTuple):
    code: int
    rows: list[str]
    output: str


def run_harness(location: Path, *arguments: str) -> Harness:
    command = [sys.executable, "-W", "error", "-m", "benchmarks", "--location", str(location), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("| ")]
    return Harness(done.returncode, rows[2:], done.stdout + done.stderr)


def workload(request: bytes = GET, *, status: int = 200, witness: bytes = b"") -> Workload:
    return Workload("test", "requests", 1, witness, 2, status, [request])


def test_measures_every_row(tmp_path: Path) -> None:
    tiny = ["--client", "asyncio", "--seconds", "0.4", "--rounds", "2", "--entities", "200", "--max-requests", "30"]
    harness = run_harness(tmp_path, *tiny)
    assert harness.code == 0, harness.output
    assert harness.rows == ROWS, harness.output
    assert "one fdatasync of 4096 bytes takes" in harness.output
    assert not list(tmp_path.iterdir()), "the temporary location stays behind"


@pytest.mark.skipif(wrk_version() is None, reason="wrk is not installed")
def test_measures_with_wrk(tmp_path: Path) -> None:
    harness = run_harness(tmp_path, "--client", "wrk", "--quick", "--entities", "200", "--only", "transaction")
    assert harness.code == 0, harness.output
    assert harness.rows == ["entity group transaction"], harness.output


def test_signs_as_the_reference_vectors() -> None:
    assert account_sas("2030-01-01T00:00:00Z").endswith("sig=2%2Fd58i4%2BJROW5cOSI9tFJNZYQKyAwfsgJowJg6WzqHQ%3D")
    signed = shared_key("GET", "/devstoreaccount1/Tables", "Mon, 27 Jun 2016 15:25:14 GMT")
    assert signed == "SharedKey devstoreaccount1:6x3Y/FLgh8/ozJ8YPcIAguM4et4HbaViJozb+kRb6aI="
    assert len(base64.b64decode(signed.partition(":")[2])) == 32


def test_numbers_never_repeat_and_keep_the_length() -> None:
    marked = workload(b"a" + MARK + b"b" + MARK + b"c")
    sent = list(itertools.islice(marked.numbered(7 * NUMBERS_PER_RUN), 1000))
    assert len(set(sent)) == 1000
    assert {len(request) for request in sent} == {len(marked.requests[0])}


def test_entities_are_one_kilobyte() -> None:
    assert len(entity("r0001", "000123")) == 1024


def test_a_run_is_bounded_in_requests() -> None:
    with running("benchmarks.floor", "--body-bytes", "10", pin=False) as floor:
        found = run_asyncio(workload(), floor.port, 0, Limits(seconds=10, requests=25))
    assert (found.requests, found.errors) == (25, 0)


@pytest.mark.parametrize(
    "load", [run_asyncio, pytest.param(run_wrk, marks=pytest.mark.skipif(wrk_version() is None, reason="no wrk"))]
)
def test_wrong_statuses_are_counted(load: Load) -> None:
    with running("benchmarks.floor", "--status", "404", pin=False) as floor:
        found = load(workload(), floor.port, 0, Limits(seconds=1, requests=20))
    assert found.errors == found.requests > 0


def test_a_wrong_answer_is_not_measured() -> None:
    with running("benchmarks.floor", "--status", "403", pin=False) as server:
        with pytest.raises(BenchmarkError, match="status 403"):
            probe(workload(), server, 0)
        with pytest.raises(BenchmarkError, match="not 1 results"):
            probe(workload(status=403, witness=b"RowKey"), server, 0)
