"""The size of modules: one noun each, so none is long."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES_MAX = {"src": 300, "benchmarks": 300, "tests": 500, "patterns/src": 300, "patterns/tests": 500}
"""The most lines of a module, by folder."""


def longer() -> Iterator[str]:
    """Yield the modules that exceed their folder's limit, named from the repository's root."""
    for folder, lines_max in LINES_MAX.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts and len(path.read_text(encoding="utf-8").splitlines()) > lines_max:
                yield path.relative_to(ROOT).as_posix()


def test_modules_are_short() -> None:
    assert list(longer()) == [], "divide these modules"
