"""A container under test: signed requests to its blobs. Expectations are those of the reference."""

import base64
from dataclasses import dataclass
from urllib.parse import quote
from uuid import uuid4
from xml.etree import ElementTree as ET

from tests.conformance.answers import Answer, xml_text
from tests.conformance.client import HeaderChanges
from tests.conformance.xml_service import XmlService


class Blobs(XmlService):
    """The blobs of an account."""

    VERSION = "2021-12-02"
    CONTENT_TYPE = "application/octet-stream"


@dataclass(frozen=True)
class Container:
    """A container that exists, or not."""

    blobs: Blobs
    name: str

    def send(self, method: str, blob: str = "", query: str = "", **options: object) -> Answer:
        """Send a request to the container, or to a blob."""
        path = f"/{self.name}/{quote(blob)}" if blob else f"/{self.name}"
        return self.blobs.send(method, path, query, **options)  # type: ignore[arg-type]  # the same ones

    def put(self, blob: str, data: bytes = b"x", **headers: str) -> Answer:
        """Put a block blob; underscores in the names of headers stand for hyphens."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.send("PUT", blob, body=data, headers={"x-ms-blob-type": "BlockBlob", **named})

    def put_block(self, blob: str, id_: str, data: bytes = b"x") -> Answer:
        """Put a block."""
        return self.send("PUT", blob, f"comp=block&blockid={quote(id_of(id_), safe='')}", body=data)

    def put_list(self, blob: str, *entries: tuple[str, str], headers: HeaderChanges | None = None) -> Answer:
        """Put a list of blocks: the element and the name of each."""
        body = "".join(f"<{source}>{id_of(id_)}</{source}>" for source, id_ in entries)
        return self.send("PUT", blob, "comp=blocklist", body=f"<BlockList>{body}</BlockList>", headers=headers)

    def list(self, query: str = "") -> ET.Element:
        """Return a page of the list of blobs."""
        answer = self.send("GET", query=f"restype=container&comp=list&{query}").expect(200)
        return ET.fromstring(xml_text(answer.body))


def names_of(page: ET.Element) -> list[str]:
    """The names of a page, of blobs and prefixes."""
    return [entry.findtext("Name", "") for entry in page.iterfind("Blobs/*")]


def id_of(text: str) -> str:
    """The id of a block in base64."""
    return base64.b64encode(text.encode()).decode()


def new_name() -> str:
    """The name of a container that no test has used."""
    return f"c-{uuid4().hex}"
