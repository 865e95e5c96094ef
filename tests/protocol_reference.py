"""The protocol reference in `docs/protocol/`: its sections, and the citations that name them.

A citation is the section sign and one number. In Markdown it is a link to the section; elsewhere it stands alone:
§14.6. Ranges and lists repeat the sign: §8.1–§8.4. The sign means this reference only; a section of another document
is cited by the word: RFC 7518 section 6.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .markdown import Heading, headings, links, prose

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "protocol"
SIGN = "\N{SECTION SIGN}"
_NUMBER = r"\d+(?:\.\d+)*"
_DEFINITION = re.compile(rf"{SIGN}({_NUMBER}) \S")
_OTHER = r"(?:RFC|OpenID)(?: [A-Z\d][\w.]*)*,? "
_CITATION = re.compile(rf"({_OTHER})?{SIGN}({_NUMBER})?((?:, | ?[-–] ?){_NUMBER})?")


class Section(NamedTuple):
    """A section of the reference: its page and its heading there."""

    page: Path
    heading: Heading

    def target(self, page: Path) -> str:
        """Return a link's target that leads from a page to this section."""
        fragment = f"#{self.heading.anchor}"
        if page == self.page:
            return fragment
        return f"{os.path.relpath(self.page, page.parent)}{fragment}"


def read_sections(folder: Path = FOLDER) -> dict[str, Section]:
    """Return the sections of a folder's pages, by number.

    Raises:
        ValueError: two headings have the same number.
    """
    found: dict[str, Section] = {}
    for page in sorted(folder.glob("*.md")):
        for heading in headings(page.read_text(encoding="utf-8")):
            number = _DEFINITION.match(heading.title)
            if number is None:
                continue
            if number[1] in found:
                raise ValueError(f"{SIGN}{number[1]} is in {found[number[1]].page.name} and in {page.name}")
            found[number[1]] = Section(page, heading)
    return found


sections = cache(read_sections)
"""The sections of the reference, read once."""


def citations(text: str) -> list[str]:
    """Return the numbers that a text cites, in order; a sign that no number follows gives an empty one."""
    return [found[2] or "" for found in _CITATION.finditer(text)]


def wrong_citations(text: str) -> list[str]:
    """Return the citations of a text that no reader could follow, as they stand there."""
    return [
        found[0]
        for found in _CITATION.finditer(text)
        if found[1] or found[3] or found[2] is None or found[2] not in sections()
    ]


def unlinked_citations(page: Path) -> list[str]:
    """Return the citations of a page of Markdown that are no links, or links to another place than the section."""
    text = page.read_text(encoding="utf-8")
    plain = [found[0] for found in _CITATION.finditer(prose(text))]
    misled = [
        f"[{link.text}]({link.target})"
        for link in links(text)
        if (section := sections().get(link.text.removeprefix(SIGN))) and link.target != section.target(page)
    ]
    return plain + misled
