"""The table of complaints: each row names a test that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_complaint_is_answered_by_a_test() -> None:
    page = (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8")
    section = page[page.index("## What people asked of other explorers") :]
    named = re.findall(r"\| `(test_\w+)` \|$", section, re.MULTILINE)
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert len(named) == len(rows)
    folders = ("ui", "transfer")
    sources = [
        path.read_text(encoding="utf-8") for name in folders for path in (ROOT / "tests" / name).rglob("test_*.py")
    ]
    defined = set(re.findall(r"^(?:async )?def (test_\w+)", "\n".join(sources), re.MULTILINE))
    assert not set(named) - defined
