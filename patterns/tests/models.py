"""Count the states of every model: `make models`, or in `patterns` `python -m tests.models [a part of a path …]`.

A model is a test module that calls `explore`. The command runs its tests that need no service, prints how many states
their explorations went through, and writes these numbers to the page of protocols. With `PATTERNS_CAMPAIGN=1`, it runs
the searches that take minutes, too.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import lazulite_patterns_simulation
from lazulite_patterns_simulation import Explored

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "protocols.md"
_CALL = re.compile(r"\bexplore\(")
_ROW = re.compile(r"^\| `(\w+/\w+)` \|.*\|\n", re.MULTILINE)


class Model(NamedTuple):
    """The explorations of a test module that found its invariant to hold."""

    name: str
    """The path of the module in `tests`, without `test_` and `.py`."""
    explorations: tuple[Explored, ...]

    @property
    def row(self) -> str:
        """The line of a table."""
        states = [each.states_count for each in self.explorations]
        complete = "yes" if all(each.complete for each in self.explorations) else "no"
        return f"| `{self.name}` | {len(states)} | {sum(states):,} | {max(states):,} | {complete} |\n"


class Recorder:
    """A plugin of pytest that keeps what `explore` returns, by the name of the model."""

    def __init__(self) -> None:
        self.explored: dict[str, list[Explored]] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out tests that need a service, and let the others record."""
        wanted = [each for each in items if "connection_string" not in getattr(each, "fixturenames", ())]
        config.hook.pytest_deselected(items=[each for each in items if each not in wanted])
        items[:] = wanted
        for module in {each.module for each in items if isinstance(each, pytest.Function)}:
            self._record(module)

    def _record(self, module: ModuleType) -> None:
        kept = self.explored.setdefault(name_of(Path(str(module.__file__))), [])

        def explore(*args: Any, **options: Any) -> Explored:
            kept.append(lazulite_patterns_simulation.explore(*args, **options))
            return kept[-1]

        vars(module)["explore"] = explore


def name_of(path: Path) -> str:
    """Return the name of the model of a test module."""
    return path.relative_to(TESTS).with_suffix("").as_posix().replace("test_", "")


def modules(parts: Iterable[str] = ("",)) -> list[Path]:
    """Return the test modules of the models whose names have one of these parts."""
    found = sorted(set(TESTS.rglob("test_*.py")) - set(TESTS.rglob("simulation/*.py")))
    models = [each for each in found if _CALL.search(each.read_text(encoding="utf-8"))]
    return [each for each in models if any(part in name_of(each) for part in parts)]


def explored(paths: Iterable[Path]) -> list[Model]:
    """Run the tests of models, and return what they explored.

    Raises:
        RuntimeError: a test fails.
    """
    recorder = Recorder()
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "-x"]
    if pytest.main([*options, *map(str, paths)], plugins=[recorder]) != pytest.ExitCode.OK:
        raise RuntimeError("a test of a model fails")
    return [Model(name, tuple(each)) for name, each in sorted(recorder.explored.items()) if each]


def rows() -> dict[str, str]:
    """Return the rows on the page, by the names of the models."""
    return {found[1]: found[0] for found in _ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def write(models: Iterable[Model]) -> None:
    """Replace the rows of these models on the page."""
    on_page = rows()
    new = "".join(text for _, text in sorted({**on_page, **{each.name: each.row for each in models}}.items()))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace("".join(on_page.values()), new), encoding="utf-8")


def main() -> None:
    """Run the models of the arguments, or all."""
    found = explored(modules(sys.argv[1:] or ("",)))
    print("".join(each.row for each in found), end="")
    write(found)


if __name__ == "__main__":
    main()
