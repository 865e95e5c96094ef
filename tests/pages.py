"""The tables of pages that are generated from the code: `make pages` writes them, and tests compare them.

- docs/versions.md has the changes of each protocol version, and the versions of headers and elements of blobs.
- docs/errors.md has the status and the message of each error code. Its causes and remedies are written there.
- docs/compatibility.md has the rows of behaviours, see `tests.conformance.compatibility`.
"""

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import ModuleType

import lazulite.queue  # noqa: F401 - it registers its codes
from lazulite.blob import versions as blob_versions
from lazulite.blob.errors import CONTAINER_MESSAGES, MESSAGES
from lazulite.protocol import version
from lazulite.protocol.errors import CATALOGUE
from lazulite.queue import versions as queue_versions
from lazulite.table import versions as table_versions
from lazulite.table.errors import MESSAGES as TABLE_MESSAGES

from .conformance import compatibility

DOCS = Path(__file__).parents[1] / "docs"
MODULES = (table_versions, queue_versions, blob_versions, version)
"""Modules with constants whose names end with `_SINCE` or `_BEFORE`."""
CHANGES = "| since | change | older versions |"
OF_BLOBS = "| name | what | since | until |"
CODES = "| code | status | message | cause and remedy |"
OTHER_MESSAGES = "| code | where | message |"
"""The heads of the tables."""

Row = Sequence[str]


def changes(module: ModuleType) -> Iterator[list[str]]:
    """Yield since, what and before of each constant of a module, from the text that stands below it."""
    assert module.__file__ is not None
    statements = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    for statement, following in itertools.pairwise(statements):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=str(name))], value=ast.Constant(value=str(since))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name.endswith(("_SINCE", "_BEFORE")):
                what, _, before = " ".join(text.split()).partition(" Before: ")
                yield [since, what, before[:1].upper() + before[1:]]


def all_changes() -> list[Row]:
    """Return the changes of all modules, the oldest first."""
    return sorted((row for module in MODULES for row in changes(module)), key=itemgetter(0))


def versions_of_blobs() -> list[Row]:
    """Return the rows of headers and elements that only some versions have."""
    tables: Sequence[tuple[str, Mapping[str, str]]] = (
        ("response header", blob_versions.RESPONSE_HEADERS),
        ("element of a blob", blob_versions.BLOB_ELEMENTS),
        ("element of a snapshot", blob_versions.SNAPSHOT_ELEMENTS),
        ("element of a container", blob_versions.CONTAINER_ELEMENTS),
        ("word of `include` of blobs", blob_versions.BLOB_INCLUDES),
        ("word of `include` of containers", blob_versions.CONTAINER_INCLUDES),
    )
    found: list[Row] = [[f"`{name}`", what, since, ""] for what, versions in tables for name, since in versions.items()]
    for (operation, name), since in blob_versions.LATER_HEADERS.items():
        found.append([f"`{name}`", f"response header of {operation}", since, ""])
    found += [[f"`{name}`", "element of a list", "", until] for name, until in blob_versions.ENDED_ELEMENTS.items()]
    return found


def other_messages() -> list[Row]:
    """Return the rows of messages that a service or a container has for a code that all share."""
    places = (("Blob service", MESSAGES), ("container", CONTAINER_MESSAGES), ("Table service", TABLE_MESSAGES))
    return [[f"`{code}`", where, text] for where, messages in places for code, text in messages.items()]


def with_rows(text: str, head: str, rows: Sequence[Row]) -> str:
    """Return a page with other rows in the table with a head."""
    before, _, rest = text.partition(f"{head}\n")
    rule, _, rest = rest.partition("\n")
    after = "\n".join(itertools.dropwhile(lambda line: line.startswith("|"), rest.split("\n")))
    return "\n".join([f"{before}{head}", rule, *(f"| {' | '.join(row)} |" for row in rows), after])


def with_messages(text: str) -> str:
    """Return the page of errors with the status and the message of each code that has a row."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and (known := CATALOGUE.get(cells[0].strip("`"))):
            lines[number] = f"| {cells[0]} | {known[0]} | {known[1]} | {cells[3]} |"
    return "\n".join(lines)


def versions_page(text: str) -> str:
    """Return docs/versions.md as it should be, from what it is."""
    return with_rows(with_rows(text, CHANGES, all_changes()), OF_BLOBS, versions_of_blobs())


def errors_page(text: str) -> str:
    """Return docs/errors.md likewise."""
    return with_messages(with_rows(text, OTHER_MESSAGES, other_messages()))


PAGES = {"versions.md": versions_page, "errors.md": errors_page}
"""By name: what makes a page from itself."""


def main() -> None:
    """Write all pages."""
    compatibility.main()
    for name, generated in PAGES.items():
        page = DOCS / name
        page.write_text(generated(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
