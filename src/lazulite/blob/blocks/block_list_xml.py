"""Lists of blocks: what Put Block List names, and what Get Block List returns. Source: REST reference.

Usual bodies are read by regular expressions, a few hundred entries in a step. `protocol.xml` reads all others.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import NamedTuple

from lazulite.blob.model.block_id import read_block_id
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml

ENTRIES_MAX = 50_000
"""Blocks of a blob, and entries of a list."""
BODY_BYTES_MAX = 8 * 1024 * 1024
"""The greatest length of a list: 50,000 of the longest entries have less than 6 MiB."""

_ENTRIES_OF_A_STEP = 500
_OPENING = re.compile(
    rb"""(?>(?:\xef\xbb\xbf)?)[ \t\r\n]*+(?>(?:<\?xml[ \t\r\n][ -=@-~]{0,200}\?>)?)[ \t\r\n]*+<BlockList>[ \t\r\n]*+"""
)
_ID = rb"[0-9A-Za-z+/=]{1,88}+"
_ENTRIES = re.compile(
    rb"(?>(?:<(?:Latest>%b</Latest|Committed>%b</Committed|Uncommitted>%b</Uncommitted)>[ \t\r\n]*+){1,%d})"
    % (_ID, _ID, _ID, _ENTRIES_OF_A_STEP)
)
_ENTRY = re.compile(rb"<(\w+)>([^<]+)")
_CLOSING = re.compile(rb"</BlockList>[ \t\r\n]*+")


class Source(Enum):
    """Where a block of a list is looked for, with the name of its element."""

    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"
    LATEST = "Latest"
    """Among the uncommitted blocks first, then among the committed ones."""


_SOURCES = {source.value: source for source in Source}
_SOURCES_ENCODED = {source.value.encode(): source for source in Source}


class Entry(NamedTuple):
    """One block that Put Block List names."""

    source: Source
    id: str
    """Canonical base64."""


class Block(NamedTuple):
    """One block that Get Block List returns."""

    id: str
    size: int
    """In bytes."""


def read_block_list(body: bytes) -> Steps[list[Entry]]:
    """Read the entries of a Put Block List in steps, in their order. An empty list has none.

    Raises:
        ServiceError: `InvalidXmlDocument`; `BlockListTooLong`; `InvalidBlockId`; `RequestBodyTooLarge`.
    """
    if len(body) > BODY_BYTES_MAX:
        raise ServiceError("RequestBodyTooLarge", details=[("MaxLimit", str(BODY_BYTES_MAX))])
    entries = yield from _read_usual(body)
    return entries if entries is not None else (yield from _read_any(body))


def _read_usual(body: bytes) -> Steps[list[Entry] | None]:
    """Read a list as usual clients write it; return None for any other."""
    opening = _OPENING.match(body)
    if opening is None:
        return None
    at = opening.end()
    entries: list[Entry] = []
    while found := _ENTRIES.match(body, at):
        for name, text in _ENTRY.findall(body, at, found.end()):
            entries.append(_entry(_SOURCES_ENCODED[name], text))
        at = found.end()
        if len(entries) > ENTRIES_MAX:
            raise ServiceError("BlockListTooLong")
        yield
    return entries if _CLOSING.fullmatch(body, at) else None


def _read_any(body: bytes) -> Steps[list[Entry]]:
    if body.count(b"</") > ENTRIES_MAX + 1:
        raise ServiceError("BlockListTooLong")
    yield
    root = yield from xml.parse_in_steps(body, max_bytes=BODY_BYTES_MAX, max_elements=ENTRIES_MAX + 1)
    if root.name != "BlockList":
        raise xml.invalid_document("The root must be BlockList.", root.position)
    entries: list[Entry] = []
    for number, node in enumerate(xml.only_children(root)):
        source = _SOURCES.get(node.name)
        if source is None:
            raise xml.invalid_document("Only Committed, Uncommitted and Latest are expected here.", node.position)
        entries.append(_entry(source, xml.text_of(node)))
        if number % _ENTRIES_OF_A_STEP == 0:
            yield
    return entries


def _entry(source: Source, text: str | bytes) -> Entry:
    try:
        return Entry(source, read_block_id(text))
    except ValueError:
        raise ServiceError("InvalidBlockId") from None


def write_block_list(committed: Iterable[Block] | None, uncommitted: Iterable[Block] | None) -> Steps[list[bytes]]:
    """Return the response to a Get Block List in steps, in parts.

    Args:
        committed: the blocks in their order; None: they are not asked for.
        uncommitted: likewise.
    """
    parts = [xml.document("<BlockList>")]
    for name, blocks in (("CommittedBlocks", committed), ("UncommittedBlocks", uncommitted)):
        if blocks is not None:
            yield from _write_blocks(parts, name, iter(blocks))
    parts.append(b"</BlockList>")
    return parts


def _write_blocks(parts: list[bytes], name: str, blocks: Iterator[Block]) -> Steps[None]:
    first = "".join(map(_block, islice(blocks, _ENTRIES_OF_A_STEP)))
    if not first:
        parts.append(xml.element(name).encode())
        return
    parts.append(f"<{name}>{first}".encode())
    yield
    while more := "".join(map(_block, islice(blocks, _ENTRIES_OF_A_STEP))):
        parts.append(more.encode())
        yield
    parts.append(f"</{name}>".encode())


def _block(block: Block) -> str:
    id_, size = block
    return f"<Block><Name>{id_}</Name><Size>{size}</Size></Block>"
