"""Links of the documentation lead to a file and a heading; files that texts and sources name exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .docs_support import PAGES, PATTERNS, ROOT, page_text
from .markdown import headings, links, without_fences
from .protocol_reference import FOLDER

INDEXES = ("README.md", "docs/README.md")
RESULTS = ["benchmarks/RESULTS.md", "examples/data/README.md"]
PROTOCOL = [str(page.relative_to(ROOT)) for page in sorted(FOLDER.glob("*.md"))]
LINKING = [*PAGES, *PATTERNS, *RESULTS, *PROTOCOL]
PACKAGES = "app|auth|cli|engine|migration|protocol|records|server|service|settings|table|testing"
_NAMED = re.compile(rf"`((?:src|tests|docs|examples|benchmarks|deploy|{PACKAGES})/[\w./-]+\.\w+)`")
_NAMED_IN_SOURCE = re.compile(
    r"(?<![\w./-])((?:docs|deploy|examples)/[\w./-]*\w\.(?:md|toml|cfg|conf|yaml|service|json|py|csv))\b(#[\w-]+)?"
)
_SOURCES = ("src/**/*.py", "tests/**/*.py", "tests/conformance/behaviours/*.toml", "benchmarks/*.py", "deploy/*")


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_to_a_file_and_a_heading(page: str) -> None:
    found = links(page_text(page))
    assert [link for link in found if "://" not in link.target and not link.leads_somewhere(ROOT / page)] == []
    assert {link.target.partition("://")[0] for link in found if "://" in link.target} <= {"https"}


@pytest.mark.parametrize("page", LINKING)
def test_every_link_is_one_that_the_tests_follow(page: str) -> None:
    text = without_fences(page_text(page))
    bare = re.sub(r"`[^`\n]*`", "", text)
    assert len(links(text)) == len(re.findall(r"\]\(", bare))
    assert re.findall(r"\]\[|^\[[^\]]+\]:", bare, re.MULTILINE) == [], "use inline links"


@pytest.mark.parametrize("page", LINKING)
def test_headings_of_a_page_have_different_anchors(page: str) -> None:
    anchors = [heading.anchor for heading in headings(page_text(page))]
    assert sorted(anchors) == sorted(set(anchors))


@pytest.mark.parametrize("page", PAGES)
def test_files_named_by_a_page_exist(page: str) -> None:
    for name in _NAMED.findall(page_text(page)):
        assert (ROOT / name).exists() or (ROOT / "src" / "lazulite" / name).exists(), name


def sources() -> Iterator[Path]:
    yield from (ROOT / "Makefile", ROOT / "pyproject.toml")
    for pattern in _SOURCES:
        yield from (path for path in ROOT.glob(pattern) if path.is_file() and "node_modules" not in path.parts)


def test_pages_named_by_a_source_exist() -> None:
    wrong = []
    for path in sources():
        for name, fragment in _NAMED_IN_SOURCE.findall(path.read_text(encoding="utf-8", errors="replace")):
            target = ROOT / name
            anchors = (
                {heading.anchor for heading in headings(target.read_text(encoding="utf-8"))} if fragment else set()
            )
            if not target.exists() or fragment.removeprefix("#") not in anchors | {""}:
                wrong.append(f"{path.relative_to(ROOT)}: {name}{fragment}")
    assert wrong == []


def test_every_page_is_linked_from_the_index() -> None:
    linked = {((ROOT / index).parent / link.target).resolve() for index in INDEXES for link in links(page_text(index))}
    for page in {*PAGES} - set(INDEXES):
        assert (ROOT / page).resolve() in linked, page
