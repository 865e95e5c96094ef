"""The benchmark without sockets measures every case, and compares two checkouts."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.in_process_cases import CASES

ROOT = Path(__file__).parents[1]


def run(*options: str) -> str:
    command = [sys.executable, "-m", "benchmarks.in_process", "--rounds", "6", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True).stdout


def test_every_case_is_measured() -> None:
    found = json.loads(run())
    assert found.keys() == CASES.keys()
    assert min(found.values()) > 0


def test_another_checkout_is_compared_by_turns() -> None:
    lines = run("--against", str(ROOT), "--only", "by the SDK", "--turns", "2").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert [row[0] for row in rows] == [name for name in CASES if "by the SDK" in name]
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in rows)
