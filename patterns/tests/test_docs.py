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
        assert not (language == "python" and not printed and "print(" in text), "what is printed has no `output`"


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_is_of_a_known_kind(page: str) -> None:
    assert {language for language, _ in fences(page)} <= {"python", "output", "sh", "text"}


SECTIONS = ["The problem", "The pattern", "What holds", "Crash points", "When not to use it", "Costs"]


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/") and page != "docs/protocols.md"])
def test_a_page_of_a_pattern_has_all_sections(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [each for each in SECTIONS if f"\n## {each}\n" not in text] == []
    assert "```python" in text


def test_every_kind_of_finding_is_on_the_page_of_audits() -> None:
    names = [each.name for each in pkgutil.walk_packages(lazulite_patterns.__path__, "lazulite_patterns.")]
    modules = [module for name in names if hasattr(module := importlib.import_module(name), "Finding")]
    constants = {value for each in modules for name, value in vars(each).items() if name.isupper()}
    kinds = {value for value in constants if isinstance(value, str) and " " in value}
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert len(kinds) > 30
    assert sorted(kind for kind in kinds if f"| {kind} |" not in page) == []


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page for page in PAGES if page != "README.md" and f"]({page})" not in readme] == []
