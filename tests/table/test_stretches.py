"""The program that measures how long heavy requests hold the event loop."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_longest_stretches_are_printed() -> None:
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.table.stretches",
        "--repeats",
        "1",
        "--only",
        "among objects",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert "400 | table: a table among objects" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 requests")
