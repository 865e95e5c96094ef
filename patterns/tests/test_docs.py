"""The examples of the pages run, each page in one namespace, and print what the pages say."""

import contextlib
import importlib
import io
import pkgutil
import re
from pathlib import Path

import pytest

import lazulite_patterns

ROOT = Path(__file__).parents[1]
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fences(page: str) -> list[tuple[str, str]]:
    """Return language and text of each fenced block of a page."""
    return _FENCE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in PAGES if any(language == "python" for language, _ in fences(page))])
def test_a_page_prints_what_it_says(page: str, connection_string: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_CONNECTION_STRING", connection_string)
    names: dict[str, object] = {"__name__": "page"}
    printed = ""
    for language, text in fences(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, f"{page}: {text.partition(chr(10))[0]}", "exec", dont_inherit=True), names)
            printed = output.getvalue()
        elif language == "output":
            assert printed == text
            printed = ""
        is_program = "__main__" in text  # It defines functions here; `test_workers.py` runs it.
        assert not (language == "python" and not (printed or is_program) and "print(" in text), "it has no `output`"


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_is_of_a_known_kind(page: str) -> None:
    assert {language for language, _ in fences(page)} <= {"python", "output", "sh", "text"}


SECTIONS = ["The problem", "The pattern", "What holds", "Crash points", "When not to use it", "Costs"]


_OTHERS = ("README", "chooser", "existing", "protocols", "workers")
NOT_OF_A_PATTERN = {"README.md", *(f"docs/{each}.md" for each in _OTHERS)}
PATTERNS = [page for page in PAGES if page not in NOT_OF_A_PATTERN]


def section(page: str, title: str) -> str:
    """Return the text of a section, up to the next one."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("page", PATTERNS)
def test_a_page_of_a_pattern_has_all_sections(page: str) -> None:
    assert [each for each in SECTIONS if not section(page, each)] == []
    assert "```python" in section(page, "The pattern")


@pytest.mark.parametrize("page", PATTERNS)
def test_a_page_tells_what_is_atomic_and_what_is_eventual(page: str) -> None:
    assert {"**Atomic**", "**Eventual**"} <= set(re.findall(r"\*\*\w+\*\*", section(page, "What holds")))


@pytest.mark.parametrize("page", PATTERNS)
def test_a_page_counts_requests_and_what_is_stored(page: str) -> None:
    costs = section(page, "Costs").lower()
    assert re.search(r"round trip|request", costs)
    assert re.search(r"entit|\brows?\b", costs)


def test_every_kind_of_finding_is_on_the_page_of_audits() -> None:
    names = [each.name for each in pkgutil.walk_packages(lazulite_patterns.__path__, "lazulite_patterns.")]
    modules = [module for name in names if "Finding" in vars(module := importlib.import_module(name))]
    constants = {value for each in modules for name, value in vars(each).items() if name.isupper()}
    kinds = {value for value in constants if isinstance(value, str) and " " in value}
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert len(kinds) > 30
    assert sorted(kind for kind in kinds if f"| {kind} |" not in page) == []


def test_every_page_is_linked_from_the_index_and_named_by_the_readme() -> None:
    index, readme = ((ROOT / page).read_text(encoding="utf-8") for page in ("docs/README.md", "README.md"))
    items = dict(re.findall(r"^- \[([^]]+)\]\(([\w.]+)\)", index, re.MULTILINE))
    assert sorted(items.values()) == sorted(Path(page).name for page in set(PAGES) - {"README.md", "docs/README.md"})
    assert [name for name in items if f"\n- **{name}**: " not in readme] == []


def test_links_of_the_readme_lead_somewhere_on_a_package_index() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [target for target in re.findall(r"\]\(([^)]+)\)", readme) if not target.startswith("https://")] == []
