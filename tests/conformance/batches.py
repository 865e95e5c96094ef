"""Entity group transactions on the wire: requests in every tolerated layout, responses in the one exact layout.

The parser accepts reference §11.4 and nothing else, for strict multipart readers exist: every line end is CRLF, a part
is head, blank line, body, one CRLF, delimiter, and the closing delimiters end the body.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .answers import Answer
from .client import NONE, Client, HeaderChanges
from .signing import Signer, shared_key
from .tables import Entity, Table

CRLF = "\r\n"
BATCH_TYPE = re.compile(r"multipart/mixed; boundary=(batchresponse_[0-9a-fA-F-]{36})")
CHANGESET_TYPE = re.compile(r"Content-Type: multipart/mixed; boundary=(changesetresponse_[0-9a-fA-F-]{36})")
INDEX = re.compile(r"(\d+):(.*)", re.DOTALL)


class Operation(NamedTuple):
    """One request inside a batch; `mime` are headers of the enclosing part."""

    method: str
    url: str
    content: Entity | str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    mime: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Layout:
    """How a batch is written; every variation is one that real clients send (§11.1, §23)."""

    eol: str = CRLF
    content_type: str = "multipart/mixed; boundary=batch_a1e9d677-b28b-435e-a89e-87e6a768a431"
    changeset_type: str = "multipart/mixed; boundary=changeset_8a28b620-b4bb-458c-a177-0959fb14c977"
    preamble: str = ""
    before_boundary: str = ""
    closed: bool = True
    content_length: bool = False
    content_headers: tuple[str, ...] = ("Content-Type: application/http", "Content-Transfer-Encoding: binary")

    @property
    def batch(self) -> str:
        """The outer boundary."""
        return _boundary(self.content_type)

    @property
    def changeset(self) -> str:
        """The inner boundary."""
        return _boundary(self.changeset_type)


def _boundary(content_type: str) -> str:
    return content_type.partition("boundary=")[2].strip('"')


PLAIN = Layout()


def operation(method: str, url: str, content: Entity | str | None = None, **headers: str) -> Operation:
    """An operation; `If_Match="*"` is the header If-Match."""
    return Operation(method, url, content, tuple((name.replace("_", "-"), value) for name, value in headers.items()))


def insert(table: Table, content: Entity, **headers: str) -> Operation:
    """An insert without echo."""
    return operation("POST", url(table), content, **({"Prefer": "return-no-content"} | headers))


def url(table: Table, key: str = "") -> str:
    """The absolute inner URL of a table, or of the entity whose path is given."""
    return table.client.endpoint.base.rstrip("/") + (key or table.path)


def body(changes: list[Operation], layout: Layout = PLAIN) -> str:
    """A batch of one change set."""
    eol, lines = layout.eol, [f"--{layout.batch}", f"Content-Type: {layout.changeset_type}", ""]
    for each in changes:
        lines += [f"{layout.before_boundary}--{layout.changeset}", *_part(each, layout)]
    if layout.closed:
        lines += [f"--{layout.changeset}--", "", f"--{layout.batch}--", ""]
    return layout.preamble + eol.join(lines)


def query_body(queries: list[Operation], changes: list[Operation] | None = None, layout: Layout = PLAIN) -> str:
    """A batch of queries, each directly in the batch, with perhaps a change set after them."""
    lines: list[str] = []
    for each in queries:
        lines += [f"--{layout.batch}", *_part(each, layout)]
    text = layout.eol.join([*lines, ""])
    return text + (body(changes, layout) if changes else f"--{layout.batch}--{layout.eol}")


def _part(each: Operation, layout: Layout) -> list[str]:
    content = json.dumps(each.content) if isinstance(each.content, dict) else each.content
    headers = [f"{name}: {value}" for name, value in each.headers]
    if content is not None and not any(name.lower() == "content-type" for name, _ in each.headers):
        headers.append(f"Content-Type: {NONE}")
    if not any(name.lower() == "accept" for name, _ in each.headers):
        headers.append("Accept: application/json;odata=minimalmetadata")
    if layout.content_length and content is not None:
        headers.append(f"Content-Length: {len(content.encode())}")
    mime = [f"{name}: {value}" for name, value in each.mime]
    return [*layout.content_headers, *mime, "", f"{each.method} {each.url} HTTP/1.1", *headers, "", content or ""]


def submit(
    client: Client,
    text: str,
    layout: Layout = PLAIN,
    query: str = "",
    *,
    signer: Signer = shared_key,
    headers: HeaderChanges | None = None,
) -> Answer:
    """Send a batch body and return the outer answer."""
    all_headers: dict[str, str | tuple[str, ...] | None] = {
        "Content-Type": layout.content_type,
        "Accept": "application/json",
    }
    return client.send("POST", "/$batch", query, headers=all_headers | dict(headers or {}), body=text, signer=signer)


def run(client: Client, *changes: Operation) -> "list[Part]":
    """Send one change set in the plain layout and return its parts."""
    return changeset(submit(client, body(list(changes))).expect(202))


@dataclass(frozen=True)
class Part:
    """One response inside a batch response."""

    status: int
    reason: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def names(self) -> list[str]:
        """Header names, in order."""
        return [name for name, _ in self.headers]

    def header(self, name: str) -> str | None:
        """A header's value."""
        return dict(self.headers).get(name)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def rejection(self) -> tuple[int, str, int | None, str]:
        """Status, code, index prefix (None without one) and message of an error part."""
        if self.status < 400:
            return self.status, "", None, ""
        error = self.json()["odata.error"]
        text = error["message"]["value"].partition("\nRequestId:")[0]
        match = INDEX.fullmatch(text)
        return (
            (self.status, error["code"], int(match[1]), match[2]) if match else (self.status, error["code"], None, text)
        )


class _Reader:
    """A cursor over the body."""

    def __init__(self, content: bytes) -> None:
        self._rest = content

    def line(self) -> str:
        line, separator, self._rest = self._rest.partition(b"\r\n")
        assert separator, f"no CRLF after {line!r}"
        assert b"\n" not in line
        assert b"\r" not in line
        return line.decode("ascii")

    def until(self, delimiter: str) -> bytes:
        """A body: all before the CRLF that belongs to the delimiter."""
        mark = b"--" + delimiter.encode()
        assert not self._rest.startswith(mark), "the CRLF before a delimiter is missing"
        content, separator, rest = self._rest.partition(b"\r\n" + mark)
        assert separator, f"no delimiter {delimiter} after {content!r}"
        self._rest = rest
        return content

    def closes(self) -> bool:
        """What follows a delimiter: `--` and CRLF, or CRLF only."""
        end = self.line()
        assert end in {"", "--"}, f"a delimiter is followed by {end!r}"
        return end == "--"

    def finish(self) -> None:
        assert self._rest == b"", f"bytes after the closing delimiter: {self._rest!r}"


def changeset(answer: Answer) -> list[Part]:
    """The parts of a change set's response, by the exact layout."""
    reader, outer = _open(answer)
    match = CHANGESET_TYPE.fullmatch(reader.line())
    assert match, "the change set's Content-Type is not as recorded"
    assert reader.line() == ""
    assert reader.line() == f"--{match[1]}"
    parts, closed = [], False
    while not closed:
        parts.append(_read_part(reader, match[1]))
        closed = reader.closes()
    assert reader.line() == f"--{outer}--"
    reader.finish()
    return parts


def query_part(answer: Answer) -> Part:
    """The one part of a query's response, which stands directly in the batch."""
    reader, outer = _open(answer)
    part = _read_part(reader, outer)
    assert reader.closes()
    reader.finish()
    return part


def sole_part(answer: Answer) -> Part:
    """The one part of an error's response, in or outside a change set."""
    return changeset(answer)[0] if b"changesetresponse_" in answer.body else query_part(answer)


def _open(answer: Answer) -> tuple[_Reader, str]:
    match = BATCH_TYPE.fullmatch(answer.required("Content-Type"))
    assert match, answer.header("Content-Type")
    reader = _Reader(answer.body)
    assert reader.line() == f"--{match[1]}"
    return reader, match[1]


def _read_part(reader: _Reader, boundary: str) -> Part:
    assert reader.line() == "Content-Type: application/http"
    assert reader.line() == "Content-Transfer-Encoding: binary"
    assert reader.line() == ""
    protocol, status, reason = reader.line().split(" ", 2)
    assert protocol == "HTTP/1.1"
    headers: list[tuple[str, str]] = []
    while line := reader.line():
        name, separator, value = line.partition(": ")
        assert separator, f"{line!r} is not a header"
        headers.append((name, value))
    part = Part(int(status), reason, headers, reader.until(boundary))
    assert (part.body == b"") is (part.status == 204), part
    return part
