"""Markdown, as far as tests read it: headings with their anchors, links, and prose without code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[([^\]\[]*)\]\([^)\s]+\)")


class Heading(NamedTuple):
    """A heading of a page; `level` counts its number signs."""

    level: int
    title: str

    @property
    def anchor(self) -> str:
        """The fragment by which a URL names this heading, as GitHub makes it."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")


class Link(NamedTuple):
    """A link of a page: its text, and its target, a URL or a path with an optional fragment."""

    text: str
    target: str

    def leads_somewhere(self, page: Path) -> bool:
        """Tell whether a relative link of this page names an existing file and a heading in it."""
        path, _, fragment = self.target.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            return False
        return not fragment or fragment in {each.anchor for each in headings(target.read_text(encoding="utf-8"))}


def without_fences(text: str) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", text)


def headings(text: str) -> list[Heading]:
    """Return the headings of a page, in order."""
    found = re.findall(r"^(#+) (.+)$", without_fences(text), re.MULTILINE)
    return [Heading(len(signs), title) for signs, title in found]


def links(text: str) -> list[Link]:
    """Return the links of a page, in order; those in fenced blocks are text."""
    return [Link(*found) for found in re.findall(r"\[([^\]\[]*)\]\(([^)\s]+)\)", without_fences(text))]


def prose(text: str) -> str:
    """Return a page without code, headings and links: the text in which a name is nothing but a name."""
    text = _SPAN.sub("", without_fences(text))
    text = re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\[[^\]\[]*\]\([^)\s]+\)", "", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page: of paragraphs, items of lists and cells of tables. A code span is one word."""
    for block in _blocks(without_fences(text)):
        plain = _LINK.sub(r"\1", _SPAN.sub("CODE", block))
        yield from re.split(r"(?<=[.!?])\s+", plain)


def _blocks(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=\||\s*- |\s*\d+\. |#)", re.sub(r"<!--.*?-->", "", text)):
        if paragraph.startswith("|"):
            yield from paragraph.strip("|").split("|")
        else:
            yield " ".join(re.sub(r"^\s*(?:- |\d+\. |#+ )", "", paragraph).split())
