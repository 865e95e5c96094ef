"""The benchmark harness runs, signs as the protocol says, and refuses to measure wrong answers."""

import base64
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # `benchmarks` is run from the repository's root, never installed

from benchmarks.bench import Bench, Contender, Plan  # noqa: E402  # needs the path above
from benchmarks.blobs import CONTAINER, Blobs  # noqa: E402
from benchmarks.catalogue import Catalogue  # noqa: E402
from benchmarks.entities import entity  # noqa: E402
from benchmarks.exchange import exchange, probe  # noqa: E402
from benchmarks.load import run_asyncio, run_wrk, wrk_version  # noqa: E402
from benchmarks.processes import Server  # noqa: E402
from benchmarks.report import render  # noqa: E402
from benchmarks.requests import account_sas, shared_key  # noqa: E402
from benchmarks.rows import Row, read_sections, write_section  # noqa: E402
from benchmarks.sections import SECTIONS  # noqa: E402
from benchmarks.sections.big import load_beside  # noqa: E402
from benchmarks.streams import run_slow, run_whole  # noqa: E402
from benchmarks.subjects import LAZULITE, MINIMAL, WORKERS, baseline, start  # noqa: E402
from benchmarks.targets import TARGETS, ratio  # noqa: E402
from benchmarks.workload import (  # noqa: E402
    MARK,
    NUMBERS_PER_RUN,
    BenchmarkError,
    Limits,
    Load,
    Measurement,
    Workload,
    quantiles,
)

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
TINY = ["--quick", "--client", "asyncio", "--seconds", "0.1", "--entities", "1000", "--max-requests", "20"]
BIG = ["--section", "big", "--big", "1000", "--ingest-seconds", "0.1"]
WORKLOADS = [
    "point GET, SAS",
    "point GET, Shared Key",
    "durable insert",
    "durable insert",
    "fdatasync",
    "entity group transaction",
    "full-page query",
    "full-page query, $select",
    "full-page query, nometadata",
    "full-page query, fullmetadata",
    "partition scan with a filter",
]
BESIDE = {f"point GET {how}" for how in ("alone", "beside scan", "beside ingest")}


class Harness(NamedTuple):
    code: int
    output: str


def run_harness(location: Path, *arguments: str) -> Harness:
    command = [sys.executable, "-W", "error", "-m", "benchmarks", "--location", str(location), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    return Harness(done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize(("argument", "reason"), [("--entities=150", "a multiple of 100"), ("--rounds=0", "positive")])
def test_sizes_that_would_falsify_a_row_are_rejected(tmp_path: Path, argument: str, reason: str) -> None:
    harness = run_harness(tmp_path, argument)
    assert harness.code == 2
    assert reason in harness.output


def workload(request: bytes = GET, *, status: int = 200, witness: bytes = b"") -> Workload:
    return Workload("test", 1, 2, status, [request], witness)


def row(subject: str, number: int, seconds: float) -> Row:
    found = Row("table", "point GET, SAS", subject, connections=32, round=number, requests=100, seconds=seconds)
    return replace(found, p50_ms=1.5, server_cpu_s=seconds / 8, rss_mb=60.0, peak_mb=61.0)


ROWS = [
    row(subject, number, seconds) for number in (0, 1) for subject, seconds in (("lazulite", 2.0), ("baseline", 1.0))
]


def test_measures_every_workload_without_touching_what_is_published(tmp_path: Path) -> None:
    harness = run_harness(tmp_path, *TINY)
    assert harness.code == 0, harness.output
    named = re.findall(r"^\| (\S[^|]*?) \| (?:[\d,]* )?\| \d+ \| (?:lazulite|disk)", harness.output, re.MULTILINE)
    assert named == WORKLOADS, harness.output
    assert not list(tmp_path.iterdir()), "the temporary location stays behind"


def test_the_big_table_is_loaded_measured_and_written_down(tmp_path: Path) -> None:
    results = tmp_path / "results"
    harness = run_harness(tmp_path, *TINY, *BIG, "--results", str(results))
    assert harness.code == 0, harness.output
    _, rows = read_sections(results)
    assert sum(each.requests * each.units for each in rows if each.workload == "load") == 1000
    assert {(each.workload, each.mode) for each in rows} >= set(itertools.product(BESIDE, ["closed", "fixed"]))
    measured = [target for target in TARGETS if target.measured(rows) is not None]
    assert len(measured) == 4 + 8 + 3, "the operations, the reads beside other load, start and memory"
    assert (results / "RESULTS.md").read_text(encoding="utf-8") in harness.output


def test_blobs_and_large_bodies_are_measured(tmp_path: Path) -> None:
    results = tmp_path / "results"
    sections = [part for name in ("blob", "blob_growth", "streams") for part in ("--section", name)]
    sizes = ["--blobs", "1000", "--blocks", "100", "--stream-mb", "8"]
    harness = run_harness(tmp_path, *TINY, *sections, *sizes, "--results", str(results))
    assert harness.code == 0, harness.output
    _, rows = read_sections(results)
    assert {(row.workload, row.entities) for row in rows if row.subject == "lazulite"} >= {
        ("list", 1000),
        ("list over a long prefix", 1000),
        ("commit of a list of blocks", 100),
    }
    of_rates = [target for target in TARGETS if "processor time" not in target.name]  # Too short to tell that of each.
    measured = [target for target in of_rates if target.measured(rows) is not None]
    assert len(measured) == 2 + 5 + 9, "without Azurite, and with fewer blocks than the target's"
    assert not any(row.errors for row in rows)


def test_queues_are_measured_by_what_is_in_front(tmp_path: Path) -> None:
    results = tmp_path / "results"
    sections = ["--section", "queue", "--section", "queue_growth", "--messages", "5000", "--postgres", "0"]
    harness = run_harness(tmp_path, *TINY, *sections, "--results", str(results))
    assert harness.code == 0, harness.output
    _, rows = read_sections(results)
    measured = [target for target in TARGETS if target.measured(rows) is not None]
    by_wrk = 2 if shutil.which("wrk") else 0
    assert len(measured) == 7 + 13 + by_wrk, "without Azurite and PostgreSQL"
    assert not any(row.errors for row in rows)


def test_bodies_that_get_wrong_responses_are_not_measured() -> None:
    wrong = workload(b"GET / HTTP/1.1\r\n\r\n")
    with baseline(403, 10, pin=False) as server:
        for load in (run_whole, run_slow):
            with pytest.raises(BenchmarkError, match="got 403"):
                load(wrong, server.port, 0, Limits(seconds=0, requests=1))


def test_measures_the_other_sections(tmp_path: Path) -> None:
    sections = ["--section", "startup", "--section", "connections"]
    harness = run_harness(tmp_path, *TINY, *sections, "--only", "insert")
    assert harness.code == 0, harness.output
    found = re.findall(r"^- section (\w+):", harness.output, re.MULTILINE)
    assert sorted(found) == ["connections", "startup"], harness.output


@pytest.mark.skipif(wrk_version() is None, reason="wrk is not installed")
def test_measures_with_wrk(tmp_path: Path) -> None:
    harness = run_harness(tmp_path, "--client", "wrk", "--quick", "--entities", "1000", "--only", "transaction")
    assert harness.code == 0, harness.output
    assert re.search(r"^\| entity group transaction \| 1,000 \| 4 \| lazulite", harness.output, re.MULTILINE)


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


def test_runs_begin_with_different_requests_and_send_all() -> None:
    many = replace(workload(), requests=[b"%d" % number for number in range(100)])
    runs = [list(itertools.islice(many.numbered(run * NUMBERS_PER_RUN), 100)) for run in range(10)]
    assert len({sent[0] for sent in runs}) == 10
    assert all(sorted(sent) == sorted(many.requests) for sent in runs)


def test_the_preload_stores_each_key_once() -> None:
    preload = Catalogue("localhost", 2000).preload()
    sent = [*itertools.islice(preload.numbered(0), 7), *itertools.islice(preload.numbered(7), 13)]
    keys = [key for request in sent for key in re.findall(rb'"PartitionKey": "(\w+)", "RowKey": "(\w+)"', request)]
    assert len(set(keys)) == len(keys) == 2000
    assert (b"r000000000001", b"000999") in keys


def test_entities_are_one_kilobyte_that_does_not_compress() -> None:
    sent = entity("r0001", "000123")
    assert len(sent) == 1024
    assert len(zlib.compress(sent)) > 600


def test_a_run_is_bounded_in_requests() -> None:
    with baseline(200, 10, pin=False) as server:
        found = run_asyncio(workload(), server.port, 0, Limits(seconds=10, requests=25))
    assert (found.requests, found.errors) == (25, 0)


def test_a_request_follows_from_a_response_until_none_does() -> None:
    left, seen = iter([GET] * 5), []

    def follow(status: int, body: bytes) -> bytes | None:
        seen.append((status, body))
        return next(left, None)

    with baseline(200, 10, pin=False) as server:
        found = run_asyncio(replace(workload(), follow=follow), server.port, 0, Limits(seconds=20, requests=1000))
    assert (found.requests, found.errors) == (5, 0), "both requests count as one"
    assert seen == [(200, b"x" * 10)] * 7, "each of the two connections ends when nothing follows"
    assert found.seconds < 10


def test_a_fixed_rate_sends_all_that_was_due() -> None:
    with baseline(200, 10, pin=False) as server:
        found = run_asyncio(workload(), server.port, 0, Limits(seconds=0.2, requests=1000), rate=500, nap_s=0.0001)
    assert (found.requests, found.errors) == (100, 0)
    assert found.seconds >= 99 / 500, "the last one left too early"


def test_a_fixed_rate_charges_a_stall_to_all_that_waited() -> None:
    """A server that answers nothing for a while delays what was due meanwhile, not only what it had already got."""
    stall_s, rate = 0.3, 200.0
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        limits = Limits(seconds=stall_s, requests=1000)
        one = replace(workload(), connections=1)
        serving = pool.submit(answer_slowly, listener, stall_s, int(rate * stall_s))
        found = run_asyncio(one, listener.getsockname()[1], 0, limits, rate=rate, nap_s=0.0001)
        serving.result()
    assert found.requests == rate * stall_s
    assert found.max_ms >= stall_s * 1000
    assert found.p50_ms >= stall_s * 1000 / 3, "only the first request was charged with the stall"


def answer_slowly(listener: socket.socket, stall_s: float, count: int) -> None:
    """Answer `count` requests of one connection, the first one `stall_s` after it came."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as reader:
        for number in range(count):
            while reader.readline() != b"\r\n":
                pass
            if number == 0:
                threading.Event().wait(stall_s)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    "load", [run_asyncio, pytest.param(run_wrk, marks=pytest.mark.skipif(wrk_version() is None, reason="no wrk"))]
)
def test_wrong_statuses_are_counted(load: Load) -> None:
    with baseline(404, 10, pin=False) as server:
        found = load(workload(), server.port, 0, Limits(seconds=1, requests=20))
    assert found.errors == found.requests > 0
    assert 0 < found.p50_ms <= found.p99_ms <= found.p999_ms <= found.max_ms


@pytest.mark.skipif(wrk_version() is None, reason="wrk is not installed")
def test_a_run_of_wrk_without_a_response_is_not_measured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(BenchmarkError, match="no request"):
        run_wrk(workload(), listener.getsockname()[1], 0, Limits(seconds=1, requests=20))


def test_a_wrong_answer_is_not_measured() -> None:
    with baseline(403, 1024, pin=False) as server:
        with pytest.raises(BenchmarkError, match="status 403"):
            probe(workload(), server.port)
        with pytest.raises(BenchmarkError, match="not 1 results"):
            probe(workload(status=403, witness=b"RowKey"), server.port)


def bench(tmp_path: Path, **plan: Any) -> Bench:
    return Bench(
        replace(Plan(pin=False, seconds=1.0, rounds=1, max_requests=2000, entities=1000), **plan), tmp_path, "test"
    )


def test_rows_are_saved_after_each_comparison(tmp_path: Path) -> None:
    saved: list[int] = []
    with baseline(200, 10, pin=False) as server:
        measured = bench(tmp_path, max_requests=20)
        measured.save = lambda: saved.append(len(measured.rows))
        for _ in range(2):
            measured.compare([Contender("test", server, workload())], with_baseline=False)
    assert saved == [1, 2]


def test_load_beside_goes_on_until_the_end(tmp_path: Path) -> None:
    measured = bench(tmp_path, max_requests=10**6)
    with measured.stages(Catalogue, LAZULITE) as [(_, server, catalogue, _)]:
        for kind in (catalogue.table_scan(), catalogue.transaction()):
            with load_beside(measured, Contender(LAZULITE, server, kind), 0.1):
                found = run_asyncio(catalogue.get(), server.port, 0, Limits(1, 500))
            assert found.errors == 0
            row = measured.rows[-1]
            assert row.workload == kind.name
            assert row.requests > 0
            assert row.seconds > 1


def test_load_beside_that_gets_wrong_responses_is_reported(tmp_path: Path) -> None:
    measured = bench(tmp_path, max_requests=20)
    with baseline(500, 10, pin=False) as server, load_beside(measured, Contender("test", server, workload()), 0.1):
        pass
    assert measured.rows[-1].errors == measured.rows[-1].requests == 20


def test_rows_and_conditions_come_back_as_they_were_written(tmp_path: Path) -> None:
    other = replace(ROWS[0], section="big", asked_rate=2.5, errors=1)
    write_section(tmp_path / "table.jsonl", ["old"], [])
    write_section(tmp_path / "table.jsonl", ["of both", "a µ, and a comma"], ROWS)
    write_section(tmp_path / "big.jsonl", ["of both"], [other])
    assert read_sections(tmp_path) == (["of both", "a µ, and a comma"], [other, *ROWS])


def test_quantiles_are_of_the_ordered_latencies() -> None:
    assert quantiles([each / 1000 for each in range(1000, 0, -1)]) == pytest.approx([501, 991, 1000, 1000])
    assert quantiles([0.25]) == [250, 250, 250, 250]
    with pytest.raises(BenchmarkError, match="no request was answered"):
        quantiles([])


def test_ratios_are_taken_within_a_round() -> None:
    ours, theirs = [row("lazulite", n, s) for n, s in enumerate((1, 10, 4))], [row("baseline", n, 2) for n in range(3)]
    assert ratio(ours, theirs) == 0.5


def test_the_report_tells_which_targets_are_met() -> None:
    lazulite = [each for each in ROWS if each.subject == "lazulite"]
    text = render(
        [each if each not in lazulite else replace(each, seconds=4.0, server_cpu_s=0.5) for each in ROWS],
        ["on a machine"],
    )
    assert "- on a machine" in text
    assert (
        "| point GET, SAS, 32 connections, for the same processor time | at least 38% of the baseline "
        "| 25% of the baseline | **not met** |  |" in text
    )
    assert "| `lazulite --help`, median | at most 150.0 ms | – | not measured |  |" in text
    least = [replace(each, subject=MINIMAL, seconds=1.25, server_cpu_s=1.25 / 8) for each in lazulite]
    assert "50% of the baseline | met | 80% of the baseline |" in render([*ROWS, *least], [])
    fast = render([replace(each, seconds=1.0, server_cpu_s=0.125) for each in ROWS], [])
    assert "time | at least 38% of the baseline | 100% of the baseline | met |  |" in fast


def test_warming_up_reads_all_that_will_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def note(workload: Workload, _: int, first: int, limits: Limits) -> Measurement:
        asked.extend(itertools.islice(workload.numbered(first), int(limits.requests)))
        return Measurement(limits.requests, 0, 1.0, 0, *quantiles([1.0]))

    monkeypatch.setattr("benchmarks.bench.run_asyncio", note)
    many = replace(workload(), requests=[b"%d" % number for number in range(100)])
    bench(tmp_path).warm(Contender("lazulite", Server(0, 0), many), 60.0)
    assert asked == many.requests


def test_the_emulator_is_pinned_and_its_lockfile_names_no_registry() -> None:
    wanted = json.loads((ROOT / "benchmarks/azurite/package.json").read_text(encoding="utf-8"))["dependencies"]
    lock = json.loads((ROOT / "benchmarks/azurite/package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert lock["node_modules/azurite"]["version"] == wanted["azurite"]
    assert not [name for name, package in lock.items() if "resolved" in package]


def test_the_minimal_server_answers_the_workloads_of_the_targets(tmp_path: Path) -> None:
    with start(MINIMAL, "--location", tmp_path / "minimal", pin=False) as server:
        catalogue = Catalogue(server.host, 1000)
        assert exchange(server.port, catalogue.requests.create_table()).status == 201
        for number in range(10):
            probe(catalogue.preload(), server.port, number)
        assert exchange(server.port, next(catalogue.preload().numbered(0))).status == 409, "they are there"
        bodies = [probe(each, server.port) for each in (catalogue.get(), catalogue.get(signed=True))]
        assert all(json.loads(body)["Count@odata.type"] == "Edm.Int64" for body in bodies)
        for each in (catalogue.insert(), catalogue.transaction()):
            probe(each, server.port, 1)
            assert exchange(server.port, next(each.numbered(1))).status == 409
        forged = next(catalogue.get().numbered(0)).replace(b"sp=r", b"sp=w")
        assert exchange(server.port, forged).status == 403


def test_the_minimal_server_for_blobs_sends_ranges_of_files(tmp_path: Path) -> None:
    content = os.urandom(5 << 20)
    (tmp_path / CONTAINER).mkdir()
    (tmp_path / CONTAINER / "file").write_bytes(content)
    with start(MINIMAL, tmp_path, pin=False, service=Blobs.service) as server:
        blobs = Blobs(server.host)
        assert probe(blobs.get_ranges("file"), server.port) == content[: 4 << 20]
        requests = {
            403: blobs.download("file").replace(b"sp=r", b"sp=w"),
            404: blobs.download("other"),
        }
        assert all(exchange(server.port, request).status == status for status, request in requests.items())


def test_processor_time_of_workers_and_of_the_primary_is_distinguished(tmp_path: Path) -> None:
    measured = bench(tmp_path)
    measured.section = "workers"
    SECTIONS["workers"][1](measured)
    assert {(row.subject, row.workload, row.connections) for row in measured.rows} == set(
        itertools.product(("lazulite", *WORKERS), ("point GET, SAS",), (32, 1))
    ) | set(itertools.product(("lazulite", *WORKERS), ("durable insert",), (64, 1)))
    assert all((row.store_cpu_s is None) == (row.subject == "lazulite") for row in measured.rows)
    text = render(measured.rows, [])
    assert re.search(r"^\| +\| 1,000 \| 32 \| lazulite, 2 workers \|", text, re.MULTILINE)


def test_every_target_is_in_the_published_report() -> None:
    published = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert len(TARGETS) == 105
    for target in TARGETS:
        assert f"| {target.name} | {target.text} |" in published


def test_every_target_that_is_not_met_is_explained() -> None:
    published = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    explained = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8").partition("## Targets that are not met")[2]
    missed = set(re.findall(r"^\| (.+?) \|.*\*\*not met\*\*", published, re.MULTILINE))
    assert set(re.findall(r"^\| (.+?) \| ", explained, re.MULTILINE)) - {"target"} == missed
