"""The larger example runs as a user runs it, and prints what its page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_company(connection_string: str) -> None:
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    expected = re.findall(r"^```output\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ended = subprocess.run(
        [sys.executable, "-m", "company"],
        cwd=ROOT / "examples",
        env={**os.environ, "STORAGE_CONNECTION_STRING": connection_string},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == (expected[0], 0), ended.stderr
