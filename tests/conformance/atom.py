"""Entries and feeds as a client of the Atom era writes and reads them (reference §7), and the headers that it sends."""

import re
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from .answers import Answer
from .client import HeaderChanges

ATOM = "http://www.w3.org/2005/Atom"
DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"
METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
NAMESPACES = f'xmlns:d="{DATA}" xmlns:m="{METADATA}" xmlns="{ATOM}"'
BASE = "{http://www.w3.org/XML/1998/namespace}base"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
ENTRY_TYPE = "application/atom+xml;type=entry;charset=utf-8"
FEED_TYPE = "application/atom+xml;type=feed;charset=utf-8"
ERROR_TYPE = "application/xml;charset=utf-8"
VERSIONS = (
    "2009-09-19",
    "2011-08-18",
    "2012-02-12",
    "2013-08-15",
    "2014-02-14",
    "2015-02-21",
    "2015-04-05",
    "2015-07-08",
)
DECLARATION = '<?xml version="1.0" encoding="utf-8" standalone="yes"?>'

Typed = tuple[str, str | None]
"""A property's type and text; None: a null."""


def old(version: str = "2011-08-18", **changes: str | None) -> HeaderChanges:
    """The headers of a WCF Data Services client; `If_Match="*"` is the header If-Match."""
    headers: dict[str, str | tuple[str, ...] | None] = {
        "x-ms-version": version,
        "DataServiceVersion": "1.0;NetFx",
        "MaxDataServiceVersion": "2.0;NetFx",
        "Accept": "application/atom+xml,application/xml",
        "Accept-Charset": "UTF-8",
    }
    return {**headers, **{name.replace("_", "-"): value for name, value in changes.items()}}


def writing(version: str = "2011-08-18", **changes: str | None) -> HeaderChanges:
    """As `old`, with the type of an entry."""
    return old(version, **{"Content_Type": "application/atom+xml", **changes})


def element(name: str, text: str = "", type_name: str | None = None) -> str:
    """A property's markup."""
    attribute = "" if type_name is None else f' m:type="{type_name}"'
    return f"<d:{name}{attribute}>{escape(text)}</d:{name}>"


def entry(*properties: str) -> str:
    """An entry with the markup of its properties, laid out as the documentation's samples are."""
    return (
        f"{DECLARATION}\n<entry {NAMESPACES}>\n  <title />\n  <updated>2009-03-18T11:48:34.9840639-07:00</updated>\n"
        "  <author>\n    <name />\n  </author>\n  <id />\n"
        f'  <content type="application/xml">\n    <m:properties>{"".join(properties)}</m:properties>\n'
        "  </content>\n</entry>"
    )


def entity(partition: str = "p", row: str = "r", /, *properties: str) -> str:
    """An entity's entry."""
    return entry(element("PartitionKey", partition), element("RowKey", row), *properties)


class Entry(NamedTuple):
    """An entry, taken apart."""

    etag: str | None
    id: str
    title: str
    updated: str
    edit: str
    term: str
    properties: dict[str, Typed]


class Feed(NamedTuple):
    """A feed, taken apart."""

    base: str
    id: str
    title: str
    entries: list[Entry]


def read_entry(answer: Answer) -> Entry:
    """The entry of an answer that has one as its document."""
    assert answer.header("Content-Type") == ENTRY_TYPE
    root = ET.fromstring(answer.body)
    assert root.get(BASE), "an entry by itself has a base"
    return _entry(root)


def read_feed(answer: Answer) -> Feed:
    """The feed of an answer."""
    assert answer.expect(200).header("Content-Type") == FEED_TYPE
    root = ET.fromstring(answer.body)
    assert root.tag == f"{{{ATOM}}}feed"
    link = _child(root, "link")
    assert (link.get("rel"), link.get("href")) == ("self", _text(root, "title"))
    _instant(_text(root, "updated"))
    entries = [_entry(child) for child in root if child.tag == f"{{{ATOM}}}entry"]
    assert (root.find(f"{{{ATOM}}}author") is None) == bool(entries), "only an empty feed has an author"
    return Feed(root.get(BASE) or "", _text(root, "id"), _text(root, "title"), entries)


def _entry(root: ET.Element) -> Entry:
    assert root.tag == f"{{{ATOM}}}entry"
    author, link, category, content = (_child(root, name) for name in ("author", "link", "category", "content"))
    assert _text(author, "name") == ""
    assert link.get("rel") == "edit"
    assert category.get("scheme") == "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"
    assert content.get("type") == "application/xml"
    assert _text(root, "title") == ""
    (properties,) = content
    assert properties.tag == f"{{{METADATA}}}properties"
    return Entry(
        root.get(f"{{{METADATA}}}etag"),
        _text(root, "id"),
        link.get("title") or "",
        _instant(_text(root, "updated")),
        link.get("href") or "",
        category.get("term") or "",
        dict(_property(child) for child in properties),
    )


def _property(node: ET.Element) -> tuple[str, Typed]:
    namespace, _, name = node.tag.rpartition("}")
    assert namespace == f"{{{DATA}"
    if node.get(f"{{{METADATA}}}null") == "true":
        assert not node.text
        return name, ("", None)
    text = node.text or ""
    assert (node.get(SPACE) == "preserve") == (text.strip() != text), "white space at an end is marked"
    return name, (node.get(f"{{{METADATA}}}type", "Edm.String"), text)


def _child(root: ET.Element, name: str) -> ET.Element:
    (found,) = root.findall(f"{{{ATOM}}}{name}")
    return found


def _text(root: ET.Element, name: str) -> str:
    return _child(root, name).text or ""


def _instant(text: str) -> str:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text), text
    return text
