"""The benchmark harness runs, signs as the protocol says, and refuses to measure wrong answers."""

import base64
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import uvloop

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # `benchmarks` is run from the repository's root, never installed

from benchmarks import front_ends  # noqa: E402
from benchmarks.background import beside  # noqa: E402  # needs the path above
from benchmarks.bench import Bench, Contender  # noqa: E402
from benchmarks.border import print_border  # noqa: E402
from benchmarks.catalogue import Catalogue  # noqa: E402
from benchmarks.entities import entity, wide_entity  # noqa: E402
from benchmarks.exchange import exchange, probe  # noqa: E402
from benchmarks.load import run_asyncio, run_fixed  # noqa: E402
from benchmarks.measurement import BenchmarkError, Limits, Load, latency  # noqa: E402
from benchmarks.plan import Plan  # noqa: E402
from benchmarks.plots import PLOTS, draw  # noqa: E402
from benchmarks.processes import Server  # noqa: E402
from benchmarks.profile import EVENT_LOOP, shares  # noqa: E402
from benchmarks.report import render  # noqa: E402
from benchmarks.rows import Row, read_conditions, read_rows, write_conditions, write_rows  # noqa: E402
from benchmarks.signing import account_sas, shared_key  # noqa: E402
from benchmarks.stage import stages  # noqa: E402
from benchmarks.subjects import BARE, bare, floor, lazulite  # noqa: E402
from benchmarks.targets import TARGETS, Results, ratio  # noqa: E402
from benchmarks.workload import MARK, NUMBERS_PER_RUN, Workload  # noqa: E402
from benchmarks.wrk import run_wrk, wrk_version  # noqa: E402

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
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    return Harness(done.returncode, done.stdout + done.stderr)


def workload(request: bytes = GET, *, status: int = 200, witness: bytes = b"") -> Workload:
    return Workload("test", "requests", 1, 2, status, [request], witness)


def row(subject: str, number: int, seconds: float) -> Row:
    found = Row("table", "point GET, SAS", subject, connections=32, round=number, requests=100, seconds=seconds)
    return replace(found, p50_ms=1.5, server_cpu_s=0.25, rss_mb=60.0, peak_mb=61.0)


ROWS = [row(subject, number, seconds) for number in (0, 1) for subject, seconds in (("lazulite", 2.0), ("floor", 1.0))]


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
    rows = read_rows(results)
    assert sum(each.requests * each.units for each in rows if each.workload == "load") == 1000
    assert {(each.workload, each.mode) for each in rows} >= set(itertools.product(BESIDE, ["closed", "fixed"]))
    measured = [target for target in TARGETS if target.measured(Results(rows)) is not None]
    assert len(measured) == 4 + 8 + 3, "the operations, the reads beside other load, start and memory"
    report = (results / "RESULTS.md").read_text(encoding="utf-8")
    assert "![growth.svg]" in report
    assert "- 1,000 entities were loaded by transactions in " in report


def test_measures_the_other_sections(tmp_path: Path) -> None:
    sections = ["--section", "startup", "--section", "connections", "--section", "growth"]
    harness = run_harness(tmp_path, *TINY, *sections, "--only", "insert")
    assert harness.code == 0, harness.output
    found = re.findall(r"^- section (\w+):", harness.output, re.MULTILINE)
    assert found == ["startup", "connections", "growth"], harness.output


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
    sent = itertools.islice(Catalogue("localhost", 2000).preload().numbered(0), 20)
    keys = [key for request in sent for key in re.findall(rb'"PartitionKey": "(\w+)", "RowKey": "(\w+)"', request)]
    assert len(set(keys)) == len(keys) == 2000
    assert (b"r000000000001", b"000999") in keys


def test_entities_are_one_kilobyte_that_does_not_compress() -> None:
    sent = entity("r0001", "000123")
    assert len(sent) == 1024
    assert len(zlib.compress(sent)) > 600


def test_wide_entities_have_so_many_properties() -> None:
    names = [name for name in json.loads(wide_entity("p", "r", 252)) if "@" not in name]
    assert len(names) == 252 + len(("PartitionKey", "RowKey"))


def test_a_run_is_bounded_in_requests() -> None:
    with floor(200, 10, pin=False) as server:
        found = run_asyncio(workload(), server.port, 0, Limits(seconds=10, requests=25))
    assert (found.requests, found.errors) == (25, 0)


def test_a_fixed_rate_sends_all_that_was_due() -> None:
    with floor(200, 10, pin=False) as server:
        found = run_fixed(workload(), server.port, 0, Limits(seconds=0.2, requests=1000), rate=500, nap_s=0.0001)
    assert (found.requests, found.errors) == (100, 0)
    assert found.seconds >= 99 / 500, "the last one left too early"


def test_a_fixed_rate_charges_a_stall_to_all_that_waited() -> None:
    """A server that answers nothing for a while delays what was due meanwhile, not only what it had already got."""
    stall_s, rate = 0.3, 200.0
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        limits = Limits(seconds=stall_s, requests=1000)
        one = replace(workload(), connections=1)
        serving = pool.submit(answer_slowly, listener, stall_s, int(rate * stall_s))
        found = run_fixed(one, listener.getsockname()[1], 0, limits, rate=rate, nap_s=0.0001)
        serving.result()
    assert found.requests == rate * stall_s
    assert found.latency.max_ms >= stall_s * 1000
    assert found.latency.p50_ms >= stall_s * 1000 / 3, "only the first request was charged with the stall"


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
    with floor(404, 10, pin=False) as server:
        found = load(workload(), server.port, 0, Limits(seconds=1, requests=20))
    assert found.errors == found.requests > 0
    assert 0 < found.latency.p50_ms <= found.latency.p99_ms <= found.latency.p999_ms <= found.latency.max_ms


def test_a_wrong_answer_is_not_measured() -> None:
    with floor(403, 1024, pin=False) as server:
        with pytest.raises(BenchmarkError, match="status 403"):
            probe(workload(), server, 0)
        with pytest.raises(BenchmarkError, match="not 1 results"):
            probe(workload(status=403, witness=b"RowKey"), server, 0)


def test_load_beside_goes_on_until_the_end(tmp_path: Path) -> None:
    with lazulite(tmp_path / "data", pin=False) as server:
        catalogue = Catalogue(server.host, 1000)
        exchange(server.port, catalogue.requests.create_table())
        run_asyncio(catalogue.preload(), server.port, 0, Limits(30, 10))
        for kind in ("ingest", "scan"):
            with beside(kind, server, 1000, pin=False) as background:
                found = run_asyncio(catalogue.get(), server.port, 0, Limits(1, 500))
            assert found.errors == 0
            assert background.done.rows >= background.done.requests > 0, kind


def test_load_beside_that_gets_wrong_answers_fails() -> None:
    with (
        floor(500, 10, pin=False) as server,
        pytest.raises(BenchmarkError, match="the scan beside failed"),
        beside("scan", server, 1000, pin=False),
    ):
        run_asyncio(replace(workload(), status=500), server.port, 0, Limits(0.2, 10**6))


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "table.csv", ROWS)
    write_conditions(tmp_path, "table", ["old"])
    write_conditions(tmp_path, "big", ["kept, with a comma"])
    write_conditions(tmp_path, "table", ["new"])
    assert read_rows(tmp_path) == ROWS
    assert read_conditions(tmp_path) == [("big", "kept, with a comma"), ("table", "new")]


def test_quantiles_are_of_the_ordered_latencies() -> None:
    assert latency([each / 1000 for each in range(1000, 0, -1)]) == pytest.approx((501, 991, 1000, 1000))
    assert latency([0.25]) == (250, 250, 250, 250)


def test_ratios_are_taken_within_a_round() -> None:
    ours, theirs = [row("lazulite", n, s) for n, s in enumerate((1, 10, 4))], [row("floor", n, 2) for n in range(3)]
    assert ratio(ours, theirs, lambda each: each.rate) == 0.5


def test_the_report_tells_which_targets_are_met() -> None:
    text = render(ROWS, [("table", "on a machine")])
    assert "- on a machine" in text
    assert "| point GET, SAS, 32 connections | at least 60% of the floor | 50% of the floor | **not met** |  |" in text
    assert "| `lazulite --help`, median | at most 150.0 ms | – | not measured |  |" in text
    least = [replace(each, subject=BARE, seconds=1.25) for each in ROWS if each.subject == "lazulite"]
    assert "50% of the floor | **not met** | 80% of the floor |" in render([*ROWS, *least], [])
    fast = render([replace(each, seconds=1.0) for each in ROWS], [])
    assert "| point GET, SAS, 32 connections | at least 60% of the floor | 100% of the floor | met |  |" in fast


def test_warming_up_reads_all_that_will_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def note(workload: Workload, _: int, first: int, limits: Limits) -> None:
        asked.extend(itertools.islice(workload.numbered(first), int(limits.requests)))

    monkeypatch.setattr("benchmarks.bench.run_asyncio", note)
    many = replace(workload(), requests=[b"%d" % number for number in range(100)])
    plan = Plan(run_asyncio, 1.0, 1, 10**6, 1000, 0, 0.0, azurite=False, pin=False)
    Bench(plan, tmp_path, "big").warm(Contender("lazulite", Server(0, 0), many), 60.0)
    assert asked == many.requests


def test_a_remark_stands_beside_the_rows_of_its_section() -> None:
    text = render(ROWS, [("table", "on a machine"), ("table", "remark: it was raining"), ("big", "remark: no rows")])
    targets, section = text.index("## Targets"), text.index("## The workloads of the targets")
    assert [found.start() > targets for found in re.finditer("^- it was raining$", text, re.MULTILINE)] == [True, True]
    assert section < text.rindex("- it was raining") < text.index("## Memory")
    assert text.count("- no rows\n") == 1


def test_the_plots_are_the_same_for_the_same_rows(tmp_path: Path) -> None:
    rows = [replace(each, section="growth", workload="durable insert by properties", variant="5") for each in ROWS]
    assert draw(rows, tmp_path) == ["growth.svg"]
    once = (tmp_path / "growth.svg").read_bytes()
    assert draw(rows, tmp_path) == ["growth.svg"]
    assert (tmp_path / "growth.svg").read_bytes() == once


def test_every_plot_can_be_drawn(tmp_path: Path) -> None:
    assert draw([replace(each, section="connections") for each in ROWS], tmp_path) == list(PLOTS)


def test_the_emulator_is_pinned_and_its_lockfile_names_no_registry() -> None:
    wanted = json.loads((ROOT / "benchmarks/azurite/package.json").read_text(encoding="utf-8"))["dependencies"]
    lock = json.loads((ROOT / "benchmarks/azurite/package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert lock["node_modules/azurite"]["version"] == wanted["azurite"]
    assert not [name for name, package in lock.items() if "resolved" in package]


def test_the_bare_path_answers_what_the_targets_ask(tmp_path: Path) -> None:
    with bare(tmp_path / "bare", pin=False) as server:
        catalogue = Catalogue(server.host, 1000)
        assert exchange(server.port, catalogue.requests.create_table()).status == 201
        for number in range(10):
            probe(catalogue.preload(), server, number)
        assert exchange(server.port, next(catalogue.preload().numbered(0))).status == 409, "they are there"
        bodies = [probe(each, server, 0).body for each in (catalogue.get(), catalogue.get_signed())]
        assert all(json.loads(body)["Count@odata.type"] == "Edm.Int64" for body in bodies)
        for each in (catalogue.insert(), catalogue.transaction()):
            probe(each, server, 1)
            assert exchange(server.port, next(each.numbered(1))).status == 409
        forged = next(catalogue.get().numbered(0)).replace(b"sp=r", b"sp=w")
        assert exchange(server.port, forged).status == 403


def test_threads_that_wait_for_work_are_no_samples() -> None:
    waiting = "run (/usr/lib/python3.11/threading.py:982);_worker (/usr/lib/python3.11/concurrent/futures/thread.py:81)"
    assert shares(f"{waiting} 5\n{waiting};_sync (/srv/lazulite/src/lazulite/engine/rocksdb/database.py:120) 1\n") == {
        "engine: commit, sync, RocksDB": 1.0
    }


def test_a_sample_counts_for_the_innermost_function_of_ours() -> None:
    serve = "_serve (/srv/lazulite/src/lazulite/server/http/connection.py:270)"
    decode = "raw_decode (/srv/lazulite/.venv/lib/python3.11/json/decoder.py:353)"
    body = "read_members (/srv/lazulite/src/lazulite/table/payload/json_reader.py:75)"
    found = shares(f"run (asyncio/runners.py:118) 5\n{serve} 3\n{serve};{body};{decode} 2\n")
    assert found == {EVENT_LOOP: 0.5, "HTTP: framing, limits, turns, answers": 0.3, "bodies in and out": 0.2}


def test_the_border_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uvloop.run(print_border(tmp_path, rounds=1, gets=64, commits=64))
    printed = capsys.readouterr().out
    assert [tuple(each) for each in re.findall(r"^\| (get|commit) \| (\d+) \|", printed, re.MULTILINE)] == list(
        itertools.product(("get", "commit"), ("1", "4", "16", "64"))
    )


@pytest.mark.parametrize(("workers", "processes"), [(1, 0), (2, 2)])
def test_what_front_ends_take_is_told_apart_from_what_the_owner_takes(
    tmp_path: Path, workers: int, processes: int
) -> None:
    bench = Bench(Plan(run_asyncio, 5.0, 1, 2000, 1000, 0, 0.0, azurite=False, pin=False), tmp_path, "front ends")
    with stages(bench, emulator=False, options=["--workers", str(workers)]) as [stage]:
        assert len(stage.server.children()) == processes
        found = front_ends.load(bench, stage.server, stage.catalogue.get())
    assert found.rate > 0
    assert found.front_ends > 0
    assert found.owner == 0.0 or workers > 1, "one process is no owner"


def test_the_longest_stretches_are_printed() -> None:
    command = [sys.executable, "-W", "error", "-m", "benchmarks.stretches", "--repeats", "1", "--only", "among objects"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert "400 | table: a table among objects" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 requests")
