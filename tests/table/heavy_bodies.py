"""Bodies of up to 4 MiB that are as costly to read as bodies can be, by the operation that reads them.

Each repeats one text: an escape, a bracket, a number, a tag, a head. Some are legal, others are rejected. `python -m
tests.table.stretches` measures how long each holds the event loop; tests count the steps in which each is read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

BODY_BYTES = 4 * 1024 * 1024
STRING_UNITS = 32 * 1024
"""UTF-16 units of the longest String."""
STRINGS = 15
"""So many of the longest Strings are nearly as large as an entity may be."""
PARTS = 100
BATCH_TYPE = "multipart/mixed; boundary=b"
_BRACKETS = "{" * 40
"""In a string, they make a body look nested."""
_KEYS = '"PartitionKey":"p","RowKey":"r"'
_UNITS = {
    "line feeds": (r"\n", 1),
    "escaped quotes": (r"\"", 1),
    "backslashes": (r"\\", 1),
    "escaped Han": (r"\u4e2d", 1),
    "surrogate pairs": (r"\ud83d\ude00", 2),
    "every other escaped": (r"a\n", 2),
    "Han": ("中", 1),
    "line feeds in Han": (r"\n中", 2),
    "commas and quotes": (r",\"", 2),
}
"""What a JSON string can be full of, and its UTF-16 units."""
_TOKENS = {
    "objects": '{"a":',
    "arrays": "[",
    "empty arrays": "[],",
    "empty objects": "{},",
    "small objects": '{"a":1},',
    "zeros": "0,",
    "fractions": "1.5e10,",
    "integers of 4,290 digits": "1" * 4290 + ",",
    "integers of 9,000 digits": "1" * 9000 + ",",
    "digits": "1",
    "strings": '"",',
    "escaped strings": r'"\n",',
    "blanks": " ",
    "colons": ":",
    "members": '"a":1,',
    "nulls": "null,",
    "quotes": '"',
    "backslashes": "\\",
}
_XML_UNITS = {
    "letters": ("a", 1),
    "references": ("&amp;", 1),
    "numbered references": ("&#65;", 1),
    "Han": ("中", 1),
    "line ends": ("\r\n", 1),
    "brackets": ("]]", 2),
}
_MARKUP = {
    "comments": "<!---->",
    "instructions": "<?a?>",
    "sections": "<![CDATA[]]>",
    "elements": "<d:A/>",
    "nested elements": "<d:A>",
    "openings": "<",
    "closings": ">",
}
_SPANS = {
    "comment": ("<!--", "-->"),
    "section": ("<d:S><![CDATA[", "]]></d:S>"),
    "instruction": ("<?a ", "?>"),
    "attribute": ('<d:S x="', '"/>'),
    "tag": ("<d:S ", "/>"),
}
_ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom" xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><content><m:properties>'
    "<d:PartitionKey>p</d:PartitionKey><d:RowKey>r</d:RowKey>"
)
_ENTRY_END = "</m:properties></content></entry>"


class Heavy(NamedTuple):
    """A body."""

    name: str
    body: bytes
    legal: bool = False


def filled(before: str, unit: str, after: str = "") -> bytes:
    """Return `unit` between two texts, as often as there is room in 4 MiB."""
    opening, each, closing = before.encode(), unit.encode(), after.encode()
    return opening + each * ((BODY_BYTES - len(opening) - len(closing)) // len(each)) + closing


def json_entities() -> Iterator[Heavy]:
    """Yield bodies of one entity in JSON."""
    start = f'{{{_KEYS},"odata.a":"{_BRACKETS}"'
    for name, (text, units) in _UNITS.items():
        long = text * (STRING_UNITS // units)
        members = "".join(f',"S{number}":"{long}"' for number in range(STRINGS))
        yield Heavy(f"an entity of {name}", f"{start}{members}}}".encode(), legal=True)
        yield Heavy(f"an ignored string of {name}", filled(f'{start},"odata.b":"', text, '"}'), legal=True)
        yield Heavy(f"a string of {name}", filled(f'{start},"S":"', text, '"}'))
        yield Heavy(f"a name of {name}", filled(f'{start},"', text, '":1}'))
        yield Heavy(f"an endless string of {name}", filled(f'{start},"S":"', text))
    for name, text in _TOKENS.items():
        yield Heavy(f"an ignored array of {name}", filled(f'{start},"odata.b":[', text, "0]}"))
        yield Heavy(f"an array of {name}", filled(f'{start},"S":[', text, "0]}"))
        yield Heavy(f"{name} alone", filled("", text))
        yield Heavy(f"{name} as members", filled(f"{start},", text, '"Z":0}'))
    for edm in ("Binary", "Boolean", "DateTime", "Guid", "Int64", "Double"):
        for text in ("QUFB", "1", "中"):
            yield Heavy(f"{edm}: {text}", filled(f'{start},"S@odata.type":"Edm.{edm}","S":"', text, '"}'))
    wide: dict[str, Iterable[str]] = {
        "970 integers of 4,000 digits": (f'"P{n}":{"1" * 4000}' for n in range(970)),
        "1,000 names of Han": (f'"{"中" * 251}{n:04}":null' for n in range(1000)),
        "2,000 ignored members": (f'"odata.{n}":"{"a" * 2000}"' for n in range(2000)),
    }
    for name, many in wide.items():
        yield Heavy(name, f"{start},{','.join(many)}}}".encode(), legal="integers" not in name)


def tables() -> Iterator[Heavy]:
    """Yield bodies of one table in JSON."""
    for name, text in {"letters": "a", "line feeds": r"\n", "Han": "中"}.items():
        yield Heavy(f"a table's name of {name}", filled('{"TableName":"a', text, '"}'))
    yield Heavy("a table among objects", filled('{"TableName":"abc","odata.x":[', '{"a":1},', "0]}"))


def atom_entities() -> Iterator[Heavy]:
    """Yield bodies of one entity in Atom."""
    for name, (text, units) in _XML_UNITS.items():
        long = text * (STRING_UNITS // units)
        properties = "".join(f"<d:S{number}>{long}</d:S{number}>" for number in range(STRINGS))
        yield Heavy(f"an entry of {name}", f"{_ENTRY}{properties}{_ENTRY_END}".encode(), legal=True)
        yield Heavy(f"a text of {name}", filled(f"{_ENTRY}<d:S>", text, f"</d:S>{_ENTRY_END}"))
        for span, (opening, closing) in _SPANS.items():
            yield Heavy(f"one {span} of {name}", filled(_ENTRY + opening, text, closing + _ENTRY_END))
            yield Heavy(f"an endless {span} of {name}", filled(_ENTRY + opening, text))
    for name, text in _MARKUP.items():
        yield Heavy(f"an entry among {name}", filled(_ENTRY, text, _ENTRY_END))
        yield Heavy(f"{name} alone", filled("", text))
    yield Heavy("a crowded tag", filled(f"{_ENTRY}<d:A", ' a="1"', f"/>{_ENTRY_END}"))
    crowd = " ".join(f'a{number}=""' for number in range(60))
    wide = "".join(f"<d:A{number} {crowd}/>" for number in range(100))
    yield Heavy("wide elements", f"{_ENTRY}{wide}{_ENTRY_END}".encode())


def documents() -> Iterator[Heavy]:
    """Yield the bodies of an ACL and of service properties, as large as they may be, and larger."""
    texts = {"elements": "<a/>", "letters": "a", "references": "&amp;", "comments": "<!---->", "attributes": ' a="1"'}
    for size in (64 * 1024 - 200, BODY_BYTES - 200):
        for name, text in texts.items():
            for root in ("SignedIdentifiers", "StorageServiceProperties"):
                body = f"<{root}{'' if name == 'attributes' else '>'}{text * (size // len(text))}</{root}>"
                yield Heavy(f"{root}, {size} bytes of {name}", body.encode())


def _batch(parts: Iterable[bytes]) -> bytes:
    opening = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
    return opening + b"".join(b"--c\r\n%b\r\n" % part for part in parts) + b"--c--\r\n--b--\r\n"


def _part(
    body: bytes, number: int, method: str = "PUT", head: str = "", kind: str = "json", partition: str = "p"
) -> bytes:
    """Return one operation of a batch."""
    url = f"/heavy(PartitionKey='{partition}',RowKey='{number}')"
    lines = f"{method} {url} HTTP/1.1\r\nContent-Type: application/{kind}\r\n{head}\r\n"
    return f"Content-Type: application/http\r\n\r\n{lines}".encode() + body


def batches() -> Iterator[Heavy]:
    """Yield bodies of batches."""
    room = BODY_BYTES // PARTS - 400
    for name, (text, units) in _UNITS.items():
        long = text * min(room // len(text.encode()), STRING_UNITS // units)
        body = f'{{"odata.x":"{_BRACKETS}","S":"{long}"}}'.encode()
        for method in ("PUT", "MERGE"):
            parts = [_part(body, number, method) for number in range(PARTS)]
            yield Heavy(f"{PARTS} × {method} of {name}", _batch(parts), legal=True)
    for name, text in {"objects": '{"a":', "empty arrays": '{"odata.x":[' + "[]," * 5000, "members": '"P":1,'}.items():
        body = (text * (room // len(text))).encode()
        yield Heavy(f"{PARTS} parts of {name}", _batch([_part(body, number) for number in range(PARTS)]))
    entry = f"{_ENTRY}<d:A>{'&amp;' * (room // 8)}</d:A>{_ENTRY_END}".encode()
    yield Heavy("entries", _batch(_part(entry, n, kind="atom+xml") for n in range(PARTS)), legal=True)
    heads = {"line feeds": "\n", "one field": "a: b\r\n", "blanks": " \n", "one long field": f"a: {'b' * 63_000}\r\n"}
    for name, line in heads.items():
        head = line * (63 * 1024 // len(line))
        yield Heavy(f"heads of {name}", _batch(_part(b"{}", n, head=head) for n in range(64)), legal="long" in name)
    yield Heavy("long URLs", _batch(_part(b"{}", n, "GET /x?x=" + "%41" * 20_000) for n in range(65)))
    before_part = (
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n"
    )
    for name, text in {"line feeds": "\n", "returns": "\r", "dashes": "-", "inner": "\n--c", "almost": "\n--"}.items():
        yield Heavy(f"{name} alone", filled("", text))
        yield Heavy(f"{name} in a batch", filled("--b\r\n", text, "\r\n--b--\r\n"))
        yield Heavy(f"{name} before a part", filled(before_part, text, "\r\n--c--\r\n--b--\r\n"))
        yield Heavy(f"{name} as a body", _batch([_part(filled("", text)[:-1000], 1)]))
    for name, text in filters().items():
        url = f"/heavy()?$filter={text.replace(' ', '%20')}"
        query = f"--b\r\nContent-Type: application/http\r\n\r\nGET {url} HTTP/1.1\r\n\r\n\r\n--b--\r\n"
        yield Heavy(f"a query by {name}", query.encode())


def large_entities() -> Mapping[str, tuple[bytes, int]]:
    """Return entities of nearly 1 MiB by their text, and of how many of them a batch is measured."""
    return {
        text: (json.dumps({f"S{number}": unit * STRING_UNITS for number in range(STRINGS)}).encode(), count)
        for text, unit, count in (("Han", "中", 10), ("letters", "a", PARTS))
    }


def small_merges(partition: str, count: int) -> bytes:
    """Return a batch of merges of one small property each."""
    return _batch(_part(b'{"A":1}', number, "MERGE", partition=partition) for number in range(count))


def filters() -> Mapping[str, str]:
    """Return filters as long as there may be."""
    return {
        "terms": " or ".join(f"P{n} eq {n}" for n in range(300)),
        "keys": " or ".join(f"(PartitionKey eq 'p{n}' and RowKey gt 'r{n}')" for n in range(150)),
        "keys that differ": " and ".join(f"PartitionKey ne 'p{n}'" for n in range(300)),
        "long keys": " or ".join(f"PartitionKey eq '{'a' * 180}{n}'" for n in range(150)),
        "depth": "(" * 100 + "A eq 1" + ")" * 100,
        "quotes": f"A eq '{chr(39) * 32_000}'",
        "digits": f"A eq {'1' * 32_000}",
        "letters": "a" * 32_000,
        "too many terms": " or ".join("A" for _ in range(6_000)),
    }
