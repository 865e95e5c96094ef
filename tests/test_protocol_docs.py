"""Citations of the protocol reference lead to a section of it, and the links of its pages lead somewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .docs_support import ROOT_PAGES
from .markdown import Heading, Link, links
from .protocol_reference import (
    FOLDER,
    ROOT,
    SIGN,
    Section,
    citations,
    read_sections,
    sections,
    unlinked_citations,
    wrong_citations,
)

CITING = ("src", "tests", "docs", "examples", "benchmarks", "deploy")
SUFFIXES = {".py", ".md", ".toml", ".js", ".mjs", ".java", ".go", ".cs", ".sh", ".conf", ".yaml", ".yml"}
OTHERS = {"node_modules", "__pycache__"}


def citing_files() -> Iterator[Path]:
    yield from ROOT_PAGES
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and not OTHERS & set(path.parts):
                yield path


def linking_pages() -> list[Path]:
    return [path for path in citing_files() if path.suffix == ".md"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_citations_name_sections() -> None:
    wrong = {name(path): found for path in citing_files() if (found := wrong_citations(text_of(path)))}
    assert wrong == {}


@pytest.mark.parametrize("folder", ["src", "tests", "docs"])
def test_citing_folders_are_read(folder: str) -> None:
    read = [path for path in citing_files() if path.is_relative_to(ROOT / folder)]
    assert sum(len(citations(text_of(path))) for path in read) > 20


@pytest.mark.parametrize("page", linking_pages(), ids=name)
def test_citations_in_markdown_are_links(page: Path) -> None:
    assert unlinked_citations(page) == []


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=name)
def test_links_of_the_reference_lead_somewhere(page: Path) -> None:
    found = [link for link in links(text_of(page)) if "://" not in link.target]
    assert [link for link in found if not link.leads_somewhere(page)] == []


def test_index_names_every_section_and_page() -> None:
    index = {(link.text, link.target) for link in links(text_of(FOLDER / "README.md"))}
    for number, section in sections().items():
        assert (f"{SIGN}{number}", section.target(FOLDER / "README.md")) in index
    for page in FOLDER.glob("*.md"):
        assert page.name == "README.md" or page.name in {target for _, target in index}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"Source: reference {SIGN}14.6; {SIGN}8.1–{SIGN}8.4, {SIGN}9.", []),
        (f"{SIGN}9, with 252 properties", []),
        (f"Source: {SIGN}14.66.", [f"{SIGN}14.66"]),
        (f"{SIGN}1, {SIGN}99", [f"{SIGN}99"]),
        (f"{SIGN}8.1–8.4", [f"{SIGN}8.1–8.4"]),
        (f"{SIGN}19, 23", [f"{SIGN}19, 23"]),
        (f"{SIGN} 9", [SIGN]),
        (f"RFC 7518 {SIGN}6", [f"RFC 7518 {SIGN}6"]),
        (f"OpenID Connect Discovery 1.0 {SIGN}4", [f"OpenID Connect Discovery 1.0 {SIGN}4"]),
        (f"RFC 7519; reference {SIGN}2", []),
    ],
)
def test_a_citation_without_a_section_is_wrong(text: str, wrong: list[str]) -> None:
    assert wrong_citations(text) == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"# {SIGN}9 here\nas [{SIGN}9](entities.md#9-entity-operations) and `{SIGN}9` say", []),
        (f"the [table of {SIGN}9](elsewhere.md)", []),
        (f"as {SIGN}9 says", [f"{SIGN}9"]),
        (f"[{SIGN}9](entities.md)", [f"[{SIGN}9](entities.md)"]),
        (f"[{SIGN}9](queries.md#10-query-options)", [f"[{SIGN}9](queries.md#10-query-options)"]),
    ],
)
def test_a_citation_in_markdown_leads_to_its_section(
    text: str, wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"9": Section(tmp_path / "entities.md", Heading(2, f"{SIGN}9 Entity operations"))}
    monkeypatch.setattr("tests.protocol_reference.sections", lambda: known)
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert unlinked_citations(page) == wrong


def test_a_number_belongs_to_one_section(tmp_path: Path) -> None:
    for page in ("a.md", "b.md"):
        (tmp_path / page).write_text(f"## {SIGN}1.1 Here\n```\n## {SIGN}1.2 Code\n```\n", encoding="utf-8")
        assert page == "b.md" or list(read_sections(tmp_path)) == ["1.1"]
    with pytest.raises(ValueError, match=r"a\.md and in b\.md"):
        read_sections(tmp_path)


@pytest.mark.parametrize(
    ("target", "leads"),
    [("#9-here-it-is", True), ("b.md", True), ("b.md#there", True), ("c.md", False), ("b.md#here", False)],
)
def test_a_link_needs_its_file_and_its_heading(target: str, leads: bool, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# {SIGN}9 Here, it is\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("# There\n```\n# here\n```\n", encoding="utf-8")
    assert Link("x", target).leads_somewhere(tmp_path / "a.md") is leads
