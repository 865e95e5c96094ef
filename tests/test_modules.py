"""The size of modules: a module holds one noun and everything that runs with it; two nouns are what divides it."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES_MAX = {
    "src": 600,
    "benchmarks": 600,
    "tests": 800,
    "patterns/src": 600,
    "patterns/simulation/src": 600,
    "patterns/tests": 800,
}
"""The lines beyond which a module is suspected of two nouns, by folder."""


def longer() -> Iterator[str]:
    """Yield the modules that exceed their folder's limit, named from the repository's root."""
    for folder, lines_max in LINES_MAX.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts and len(path.read_text(encoding="utf-8").splitlines()) > lines_max:
                yield path.relative_to(ROOT).as_posix()


def test_modules_are_short() -> None:
    assert list(longer()) == [], "look for a second noun in these modules"
