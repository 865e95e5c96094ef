"""The behaviours of the service, row by row, and the page and the list that are generated from them.

The rows are tables: one file a section of the reference in `behaviours/`, one table a behaviour, by its id:

    [put-without-if-match]
    does = "A `PUT` without `If-Match` inserts the entity or replaces it."
    shown_by = ["test_if_match::test_update_of_a_missing_entity"]

Invariants: a row says what the real service does or, with `differs` or `unverified`, what ours does instead, or does
where the service's behaviour is not recorded, and why. Every row names the tests that show it, but for what is absent
altogether. A case of a test is named by its id, `test_cors::test_any_path[x]`; a test of queues or blobs by its folder,
`conformance/queue/test_queues::test_x`; a test beside this suite, where HTTP from outside cannot show it, likewise,
`server/net/test_tls::test_x`. A run of the suite fails if a named test is missing or did not pass
(test_compatibility.py).

The page `docs/compatibility.md` counts the rows and has the ones that differ or are unverified. `make pages`
writes it, and the list of all rows with their tests to `build/compatibility.md`. Both depend on the rows alone.
"""

import ast
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests import protocol_reference

HERE = Path(__file__).parent
TESTS = HERE.parent
PAGE = TESTS.parent / "docs" / "compatibility.md"
WHOLE_LIST = TESTS.parent / "build" / "compatibility.md"
_SUITE = "conformance/"
VERDICTS = ("same", "differs", "unverified")
OUTCOMES = pytest.StashKey["dict[str, bool]"]()
"""Of a run: by test case (`test_cors::test_any_path[x]`), whether it passed."""


class Behaviour(NamedTuple):
    """One row."""

    id: str
    does: str
    verdict: str
    why: str
    shown_by: tuple[str, ...]


class Section(NamedTuple):
    """One file: a section of the reference, or what goes with it."""

    reference: str
    title: str
    behaviours: tuple[Behaviour, ...]

    def count(self, verdict: str) -> int:
        """The number of rows of a verdict."""
        return sum(each.verdict == verdict for each in self.behaviours)


def read_sections(folder: Path = HERE / "behaviours") -> list[Section]:
    """The files in the order of their names, which is the order of the reference.

    Raises:
        ValueError: a row has other members than it may have, or lacks one.
    """
    return [_section(path) for path in sorted(folder.glob("*.toml"))]


def _section(path: Path) -> Section:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    reference, title = content.pop("reference"), content.pop("title")
    return Section(reference, title, tuple(_behaviour(path.stem, name, row) for name, row in content.items()))


def _behaviour(section: str, name: str, row: dict[str, str | list[str]]) -> Behaviour:
    does, shown_by = row.pop("does", ""), row.pop("shown_by", [])
    verdict, why = row.popitem() if row else ("same", "")
    if row or verdict not in VERDICTS or not (isinstance(does, str) and does and isinstance(why, str)):
        raise ValueError(f"{section}: {name} is no row")
    if (why == "") is not (verdict == "same") or not isinstance(shown_by, list) or not (shown_by or "absent" in why):
        raise ValueError(f"{section}: {name} lacks its reason or its tests")
    return Behaviour(name, does, verdict, why, tuple(shown_by))


def existing_tests() -> set[str]:
    """Every test function, as rows name it."""
    return {
        name
        for path in TESTS.glob("*/**/test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if (name := case_name(f"tests/{path.relative_to(TESTS)}::{node.name}"))
    }


def case_name(node_id: str) -> str | None:
    """A node id of pytest as rows name it; None for tests of no folder."""
    path, _, rest = node_id.partition(".py::")
    module = path.removeprefix("tests/")
    if module.count("/") == 1:
        module = module.removeprefix(_SUITE)
    return f"{module}::{rest}" if path.count("/") > 1 else None


def is_ours(test: str) -> bool:
    """Whether a test that a row names is one of this suite."""
    return "/" not in test.partition("::")[0] or test.startswith(_SUITE)


def unshown(sections: Iterable[Section], outcomes: dict[str, bool]) -> list[str]:
    """The tests that rows name, and that a run had, but did not see pass."""
    passed: dict[str, list[bool]] = {}
    for case, outcome in outcomes.items():
        passed.setdefault(case, []).append(outcome)
        if "[" in case:
            passed.setdefault(case.partition("[")[0], []).append(outcome)
    named = {test for section in sections for behaviour in section.behaviours for test in behaviour.shown_by}
    return sorted(
        test for test in named if test.partition("[")[0] in passed and not (passed.get(test) and all(passed[test]))
    )


PAGE_HEAD = """# Compatibility

This page counts the behaviours of Azure's Table, Queue and Blob services. It lists the ones that
Lazulite does not have, and the ones that are not known well. Sections from
[§25](protocol/queue-service.md#25-queue-service) on are about queues, and those from
[§32](protocol/blob-service.md#32-blob-service) on about blobs. The others are about tables, and
about all services.

- **same**: Lazulite behaves as recordings of the real service, or as its documentation if there is
  no recording.
- **differs**: Lazulite behaves differently; the row states how and why.
- **unverified**: Azure's behaviour is neither recorded nor clearly documented; the row states
  Lazulite's.

The rows are in `tests/conformance/behaviours/`, and each names the tests that show it. From them
`make pages` generates this page, and the list of all rows in `build/compatibility.md`. The
sections are those of the [protocol reference](protocol/README.md).

"""
LIST_HEAD = """# All behaviours

Each row is a behaviour of Azure's Table, Queue or Blob service and states whether Lazulite has it,
too. The page [compatibility](../docs/compatibility.md) explains the verdicts.

"""


def page(sections: Sequence[Section]) -> str:
    """The page: the counts, and the rows that are not the same."""
    lines = [f"| Section | {' | '.join(VERDICTS)} | all |", "|---|---:|---:|---:|---:|"]
    lines += [f"| {_reference(section, PAGE)} {section.title} | {_counts(section)} |" for section in sections]
    total = Section("", "", tuple(row for section in sections for row in section.behaviours))
    lines.append(f"| **All** | {_counts(total)} |")
    for verdict in VERDICTS[1:]:
        lines += ["", f"## {verdict.capitalize()}", "", "| Section | Azure | Lazulite |", "|---|---|---|"]
        for section in sections:
            reference = _reference(section, PAGE)
            rows = (each for each in section.behaviours if each.verdict == verdict)
            lines += [_line(reference, row.does, row.why) for row in rows]
    return PAGE_HEAD + "\n".join(lines) + "\n"


def whole_list(sections: Sequence[Section]) -> str:
    """The list of all rows, with their tests."""
    lines = []
    for section in sections:
        lines += [f"## {section.reference} {section.title}", "", f"Reference: {_reference(section, WHOLE_LIST)}.", ""]
        lines += ["| Id | Behaviour | Verdict | Shown by |", "|---|---|---|---|"]
        for row in section.behaviours:
            verdict = f"**{row.verdict}**: {row.why}" if row.why else row.verdict
            lines.append(_line(f"`{row.id}`", row.does, verdict, ", ".join(map(_link, row.shown_by))))
        lines.append("")
    return LIST_HEAD + "\n".join(lines)


def _reference(section: Section, target_of: Path) -> str:
    sections = protocol_reference.sections()
    numbers = protocol_reference.citations(section.reference)
    return ", ".join(f"[{protocol_reference.SIGN}{each}]({sections[each].target(target_of)})" for each in numbers)


def _counts(section: Section) -> str:
    return " | ".join(str(section.count(verdict)) for verdict in VERDICTS) + f" | {len(section.behaviours)}"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _link(test: str) -> str:
    module, _, name = test.partition("::")
    function, _, case = name.removeprefix("test_").partition("[")
    label = function.replace("_", " ") + (f": {case[:-1]}" if case else "")
    for special in "\\*_`[]<":
        label = label.replace(special, f"\\{special}")
    return f"[{label}](../tests/{'' if '/' in module else _SUITE}{module}.py)"


def main() -> None:
    """Write the page and the list."""
    sections = read_sections()
    WHOLE_LIST.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(sections), encoding="utf-8")
    WHOLE_LIST.write_text(whole_list(sections), encoding="utf-8")
