"""Targets of the Blob service: whole requests, and lists of blocks."""

import re
from xml.parsers import expat

from .blob_world import CONTAINER, LARGE, BlobWorld
from .oracles import require
from .request_text import read_request
from .world import ROOT

_BLOCKS = {"AAAA": b"AAAA", "AAAB": b"AAAB", "AAAC": LARGE}
_COMMITTED, _UNCOMMITTED = {"AAAA"}, {"AAAC"}
_DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*\?>")
_UNTOUCHED = {"host", "x-ms-date", "x-ms-version", "content-length", "authorization", "date"}
"""Headers that make the request another one, or an unsigned one."""


def blobs(world: BlobWorld, data: bytes) -> None:
    """A request to the container and its blobs. What is not written reads as before; a read of any range fits.

    `{large}` in its body stands for more than a row holds.
    """
    sent = read_request(data)
    fields = {name: value for name, value in sent.fields.items() if name not in _UNTOUCHED - {"x-ms-version"}}
    done = world.ask(sent.method, ROOT + sent.path, sent.query, fields, sent.body.replace(b"{large}", LARGE, 1))
    if not done.wrote:
        found = world.ask("GET", f"{ROOT}{CONTAINER}/large")
        require(found.response.body == LARGE, "what was not written reads as before")
    if done.status == 206:
        length = done.header("Content-Range") or ""
        start, stop = (int(each) for each in length.removeprefix("bytes ").partition("/")[0].split("-"))
        if sent.method == "GET" and done.header("x-ms-structured-body") is None:
            require(len(done.response.body) == stop - start + 1, "a range has its length")


def lists(world: BlobWorld, data: bytes) -> None:
    """A list of blocks. One that is accepted reads back as a strict parser has it; another one changes nothing."""
    path = f"{ROOT}{CONTAINER}/blocks"
    done = world.ask("PUT", path, "comp=blocklist", body=data)
    require(done.status in (201, 400, 413), "a list is done, or it is wrong")
    found = world.ask("GET", path).response.body
    if done.status != 201:
        require(found == b"AAAA", "a rejected list changes nothing")
        return
    root, entries = _read_list(_DECLARATION.sub(b"", data, count=1))
    require(root == "BlockList", "an accepted body is a list")
    known = {"Committed": _COMMITTED, "Uncommitted": _UNCOMMITTED, "Latest": _COMMITTED | _UNCOMMITTED}
    require(all(id_ in known[source] for source, id_ in entries), "an accepted list names blocks that are there")
    require(found == b"".join(_BLOCKS[id_] for _, id_ in entries), "an accepted list is the blob")
    names = re.findall(rb"<Name>([^<]*)</Name>", world.ask("GET", path, "comp=blocklist").response.body)
    require(names == [id_.encode() for _, id_ in entries], "an accepted list reads back")


def _read_list(data: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Return the name of the root, and name and text of each element below. Expat alone: it knows no namespaces."""
    opened: list[list[str]] = []
    roots: list[str] = []
    found: list[tuple[str, str]] = []

    def start(name: str, _: object) -> None:
        roots.append(name)
        opened.append([])

    def end(name: str) -> None:
        text = "".join(opened.pop())
        if len(opened) == 1:
            found.append((name, text.strip()))

    def characters(text: str) -> None:
        opened[-1].append(text)

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    parser.Parse(data, True)
    return roots[0], found
